// SPDX-License-Identifier: Apache-2.0
// The trail of a stop: events with the field names that the log and the journal share. They go to the recorder, a child
// that can hang alone; nothing here waits for it but `finish`, after the verdict and within a limit.

import { type Child, EAGAIN, type Host, isErrno, SIGINT, SIGTERM } from "./kernel.ts";
import { limits } from "./limits.ts";
import { printable } from "./printable.ts";
import { waitFor } from "./programs.ts";

export const logPath = "/var/log/ai-tools/stop.log";
export const identifier = "ai-tools-stop";

export type Result =
  | "requested"
  | "refused"
  | "declined"
  | "dry-run"
  | "terminated"
  | "killed"
  | "alive"
  | "reappeared"
  | "stray-ended"
  | "stray-alive"
  | "stopped"
  | "incomplete"
  | "interrupted"
  | "manager-restored"
  | "manager-not-restored"
  | "identity-rejected";

/** Fields of one event; every value is printable ASCII already. */
export type Fields = Record<`AI_TOOLS_${string}`, string | number | boolean>;

/** One line to the recorder: an event, or one of the two words below. */
export interface Event {
  time: string;
  message: string;
  AI_TOOLS_RESULT: Result;
  [field: `AI_TOOLS_${string}`]: string | number | boolean;
}

/** To the recorder: put what you have into the journal too. Never sent between consent and verdict. */
export const journalWord = "journal";
/** To the recorder: that was all, the run has come to its end. */
export const endWord = "end";
/** From the recorder: everything is where it belongs. */
export const doneWord = "done";
/** From the recorder, before a hint for the report. Anything else it says is a sink's failure, in words. */
export const hintWord = "hint: ";

/** What the recorder said at the end. */
export interface Told {
  /** What a person should know about the sinks. */
  problems: string[];
  /** What a stop does not undo. */
  hints: string[];
}

export class Trail {
  readonly #host: Host;
  #recorder: Child | undefined;
  /** All lines so far, for a recorder that is started late. */
  readonly #lines: string[] = [];
  readonly #common: Fields;
  /** Why the recorder could not be started at first. */
  #refusal: string | undefined;
  /** The last error of our own. */
  #error: string | undefined;

  /** Starts the recorder; `common` goes with every event. */
  constructor(host: Host, common: Fields) {
    this.#host = host;
    this.#common = { ...common };
    this.#start();
  }

  #start(): void {
    const recorder = this.#tolerate(() => this.#host.startRecorder()) ?? EAGAIN;
    if (isErrno(recorder)) this.#refusal ??= `the recorder did not start (errno ${recorder})`;
    else this.#recorder = recorder;
  }

  /** An error of our own in the trail is told at the end, and never ends a run. */
  #tolerate<T>(work: () => T): T | undefined {
    try {
      return work();
    } catch (error) {
      this.#error = `an error of its own (${printable(String(error))})`;
      return undefined;
    }
  }

  /** Fields that are known only later (consent) go with the events from now on. */
  add(fields: Fields): void {
    Object.assign(this.#common, fields);
  }

  record(result: Result, message: string, fields: Fields = {}): void {
    this.#tolerate(() => this.#record(result, message, fields));
  }

  #record(result: Result, message: string, fields: Fields): void {
    const time = new Date(this.#host.wallClockMs()).toISOString();
    const event: Event = { time, message, AI_TOOLS_RESULT: result, ...this.#common, ...fields };
    this.#send(JSON.stringify(event));
  }

  /** Lets the journal have the events so far. */
  showInJournal(): void {
    this.#send(journalWord);
  }

  #send(line: string): void {
    this.#lines.push(line);
    this.#tolerate(() => this.#recorder?.send(`${line}\n`));
  }

  /**
   * Hands everything over and waits for it, at most so long. A recorder that could not start before the kill (no free
   * pid), or that the terminal's Ctrl-C ended before it ignored that and hence before it read a line, is started once more.
   */
  async finish(): Promise<Told> {
    if (this.#recorder === undefined || wasInterrupted(this.#recorder)) {
      this.#recorder = undefined;
      this.#start();
      for (const line of this.#lines) this.#tolerate(() => this.#recorder?.send(`${line}\n`));
    }
    const recorder = this.#recorder;
    if (recorder === undefined) {
      return { problems: [`the trail was not written: ${this.#error ?? this.#refusal}`], hints: [] };
    }
    recorder.send(`${endWord}\n`);
    recorder.closeInput();
    const ended = await waitFor(this.#host, recorder, this.#host.nowMs() + limits.trailMs);
    const lines = recorder.output().split("\n");
    if (!ended) recorder.closeInput(true);
    const own = this.#error === undefined ? [] : [`the trail: ${this.#error}`];
    return {
      problems: [...own, ...problemsIn(lines, ended)],
      hints: hintsIn(lines),
    };
  }
}

function wasInterrupted(recorder: Child): boolean {
  return [128 + SIGINT, 128 + SIGTERM].includes(recorder.exitCode() ?? 0);
}

function hintsIn(lines: readonly string[]): string[] {
  return lines.filter((line) => line.startsWith(hintWord)).map((line) => line.slice(hintWord.length));
}

function problemsIn(lines: readonly string[], ended: boolean): string[] {
  const said = lines.filter((line) => line !== "" && line !== doneWord && !line.startsWith(hintWord));
  if (!ended) return ["the trail may be incomplete: the recorder is still waiting for a sink", ...said];
  if (!lines.includes(doneWord)) return ["the trail may be incomplete: the recorder ended early", ...said];
  return said;
}
