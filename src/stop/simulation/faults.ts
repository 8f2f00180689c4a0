// SPDX-License-Identifier: Apache-2.0
// Faults on top of a world: calls through the door that answer an error or take long, by kind of call and path.

import type { Errno } from "../kernel.ts";

/** The calls of the door that a fault can hit. */
export type Call =
  | "readText"
  | "list"
  | "readLink"
  | "lstat"
  | "open"
  | "readAgain"
  | "write"
  | "writeFile"
  | "hold"
  | "signal"
  | "makeDirectory"
  | "createFile"
  | "appendFile"
  | "replaceFile"
  | "remove"
  | "startProgram"
  | "startRecorder";

export interface Fault {
  call: Call | readonly Call[] | "any";
  /** Matched against the whole path (for hold and signal, by number or not: the pid; for programs: the words, joined by blanks). */
  path: RegExp;
  /** What the call answers instead of doing its work. */
  errno?: Errno;
  /** How much longer the call takes. */
  delayMs?: number;
  /** Calls that pass before it begins. */
  after?: number;
  /** How often it strikes; for ever without it. */
  times?: number;
  /** Strikes with this probability; always without it. */
  chance?: number;
  /** Strikes only while this holds. */
  while?: () => boolean;
}

/** The state of one world's faults: how often each has been met. */
export class FaultList {
  readonly #faults: readonly Fault[];
  readonly #met: number[];
  readonly #chance: () => number;

  constructor(faults: readonly Fault[], chance: () => number) {
    this.#faults = faults;
    this.#met = faults.map(() => 0);
    this.#chance = chance;
  }

  get isEmpty(): boolean {
    return this.#faults.length === 0;
  }

  /** The fault that strikes this call, if one does. */
  strike(call: Call, path: string): Fault | undefined {
    for (const [index, fault] of this.#faults.entries()) {
      const calls = fault.call;
      const meant = calls === "any" || calls === call || (Array.isArray(calls) && calls.includes(call));
      if (!meant || !fault.path.test(path) || fault.while?.() === false) continue;
      const met = (this.#met[index] ?? 0) + 1;
      this.#met[index] = met;
      const from = fault.after ?? 0;
      if (met <= from || met > from + (fault.times ?? Number.POSITIVE_INFINITY)) continue;
      if (fault.chance !== undefined && this.#chance() >= fault.chance) continue;
      return fault;
    }
    return undefined;
  }
}
