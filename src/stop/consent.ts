// SPDX-License-Identifier: Apache-2.0
// Consent: a person at a terminal is asked once, and the answer defaults to yes, since whoever pulls this lever in an
// incident means it. Only `n` or `no` declines. A redirected input is never read.

import type { Census } from "./census.ts";
import type { StopRequest } from "./grammar.ts";
import { type Host, isErrno, SIGINT, type Stream } from "./kernel.ts";
import { limits } from "./limits.ts";
import { parseStat } from "./proc-files.ts";

/** How consent came. */
export type Consent =
  | "flag"
  | "prompt"
  | "fallback-prompt"
  | "prompt-timeout"
  | "unreadable"
  | "shared-terminal"
  | "no-tty";

export type Answer =
  | { kind: "go on"; consent: Consent; asked: boolean }
  | { kind: "declined" }
  | { kind: "interrupted" };

const question = `Stop all of it now? [Y/n] (goes on by itself after ${limits.questionMs / 1_000} s) `;

/** Asks, where there is somebody to ask. `tableShown` is false when the table was not taken by the terminal or pipe. */
export async function askConsent(
  host: Host,
  request: StopRequest,
  census: Census,
  tableShown: boolean,
): Promise<Answer> {
  const shared = ignoreSharedKeyboard(host, census);
  if (request.yes) return goOn("flag");
  if (!host.isTerminal(0)) return goOn("no-tty");
  if (shared) return goOn("shared-terminal");
  if (!tableShown) return goOn("unreadable");
  const stream: Stream = !request.json && host.isTerminal(1) ? "out" : "terminal";
  if (!(await host.discardTyped())) return goOn("unreadable");
  host.print(stream, question);
  if (!(await host.flush(limits.tableMs))) return goOn("unreadable");
  return waitForAnswer(host, stream);
}

function goOn(consent: Consent, asked = false): Answer {
  return { kind: "go on", consent, asked };
}

async function waitForAnswer(host: Host, stream: Stream): Promise<Answer> {
  const untilMs = host.nowMs() + limits.questionMs;
  let line = "";
  while (!line.includes("\n")) {
    if (host.interruption() !== 0) return { kind: "interrupted" };
    const typed = host.typed();
    if (typed === undefined) return isNo(line) ? { kind: "declined" } : goOn("unreadable", true);
    line += typed.replaceAll("\r", "\n");
    if (host.nowMs() >= untilMs) {
      host.print(stream, "\nNo answer: going on.\n");
      return goOn("prompt-timeout", true);
    }
    if (typed === "") await host.sleep(limits.keyboardPollMs);
  }
  if (isNo(line)) return { kind: "declined" };
  return goOn(stream === "out" ? "prompt" : "fallback-prompt", true);
}

function isNo(line: string): boolean {
  const word = (line.split("\n")[0] ?? "").trim().toLowerCase();
  return word === "n" || word === "no";
}

/** Where somebody who is to be stopped has the terminal, its Ctrl-C is nobody's word any more. Returns whether so. */
export function ignoreSharedKeyboard(host: Host, census: Census): boolean {
  const shared = sharesTerminal(host, census);
  if (shared) host.ignoreInterruptions([SIGINT]);
  return shared;
}

/**
 * Whether a process that is to be stopped has the operator's own terminal, at descriptor 0 or the controlling one: it
 * could answer, or type Ctrl-C. Where that cannot be told of one of them, it may.
 */
function sharesTerminal(host: Host, census: Census): boolean {
  const stat = host.readText("/proc/self/stat");
  const own = isErrno(stat) ? 0 : (parseStat(stat)?.terminal ?? 0);
  const devices = [host.terminalDevice(), own].filter((device) => device !== 0);
  if (devices.length === 0) return false;
  const counted = [...census.alive, ...census.held];
  return !census.complete || counted.some(({ terminal }) => terminal === undefined || devices.includes(terminal));
}
