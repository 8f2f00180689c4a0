// SPDX-License-Identifier: Apache-2.0
// The trail of a stop: events with the field names that the log and the journal share. They go to the recorder, a child
// that can hang alone; nothing here waits for it but `finish`, after the verdict and within a limit.

import { type Child, type Host, isErrno } from "./kernel.ts";
import { limits } from "./limits.ts";

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
/** From the recorder: everything is where it belongs. Anything else it says is a sink's failure, in words. */
export const doneWord = "done";

export class Trail {
  readonly #host: Host;
  readonly #recorder: Child | undefined;
  readonly #common: Fields;
  #problem: string | undefined;

  /** Starts the recorder; `common` goes with every event. */
  constructor(host: Host, common: Fields) {
    this.#host = host;
    this.#common = { ...common };
    const recorder = host.startRecorder();
    this.#recorder = isErrno(recorder) ? undefined : recorder;
    if (isErrno(recorder)) this.#problem = `the recorder did not start (errno ${recorder})`;
  }

  /** Fields that are known only later (consent) go with the events from now on. */
  add(fields: Fields): void {
    Object.assign(this.#common, fields);
  }

  record(result: Result, message: string, fields: Fields = {}): void {
    const time = new Date(this.#host.wallClockMs()).toISOString();
    const event: Event = { time, message, AI_TOOLS_RESULT: result, ...this.#common, ...fields };
    this.#recorder?.send(`${JSON.stringify(event)}\n`);
  }

  /** Lets the journal have the events so far. */
  showInJournal(): void {
    this.#recorder?.send(`${journalWord}\n`);
  }

  /** Hands everything over and waits for it, at most so long; returns what a person should know about the sinks. */
  async finish(): Promise<string[]> {
    const recorder = this.#recorder;
    if (recorder === undefined) return [`the trail was not written: ${this.#problem}`];
    recorder.send(`${endWord}\n`);
    recorder.closeInput();
    const untilMs = this.#host.nowMs() + limits.reportMs;
    while (recorder.exitCode() === undefined && this.#host.nowMs() < untilMs) {
      recorder.send("");
      await this.#host.sleep(limits.childPollMs);
    }
    const lines = recorder.output().split("\n");
    if (recorder.exitCode() === undefined) {
      recorder.closeInput(true);
      return ["the trail may be incomplete: the recorder is still waiting for a sink", ...problems(lines)];
    }
    if (!lines.includes(doneWord)) return [`the trail may be incomplete: the recorder ended early`, ...problems(lines)];
    return problems(lines);
  }
}

function problems(lines: readonly string[]): string[] {
  return lines.filter((line) => line !== "" && line !== doneWord);
}
