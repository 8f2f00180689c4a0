// SPDX-License-Identifier: Apache-2.0
// The command line of a stop. There is no target: every run covers every session, and a path is an error rather than
// ignored, so that a targeted stop can be added one day without changing what an existing command means.

import { printable } from "./printable.ts";

/** What was asked for. */
export interface StopRequest {
  dryRun: boolean;
  /** Consent was given on the command line: no question. */
  yes: boolean;
  /** No grace. */
  force: boolean;
  /** The report as one JSON document on standard output. */
  json: boolean;
}

export type Parsed =
  | { kind: "stop"; request: StopRequest }
  | { kind: "help" }
  | { kind: "version" }
  | { kind: "usage"; message: string };

/**
 * Parses the options of a stop, in any order and as often as anyone likes. `command` is what the person typed, for the
 * one line that says what to run instead. `--all` is accepted and changes nothing.
 */
export function parseStop(words: readonly string[], command: string): Parsed {
  const request: StopRequest = { dryRun: false, yes: false, force: false, json: false };
  let answer: "help" | "version" | undefined;
  for (const word of words) {
    if (word === "--dry-run") request.dryRun = true;
    else if (word === "-y" || word === "--yes") request.yes = true;
    else if (word === "--force") request.force = true;
    else if (word === "--json") request.json = true;
    else if (word === "--help" || word === "-h") answer ??= "help";
    else if (word === "--version") answer ??= "version";
    else if (word !== "--all") return { kind: "usage", message: whatToRunInstead(word, command) };
  }
  return answer === undefined ? { kind: "stop", request } : { kind: answer };
}

function whatToRunInstead(word: string, command: string): string {
  const all = `To stop every session run: ${command}`;
  if (word === "") return `an empty argument is not an option. Nothing was touched. ${all}`;
  if (word.startsWith("-")) {
    return `unknown option ${printable(word)}. Nothing was touched. ${all} (options: --dry-run, --yes, --force, --all, --json)`;
  }
  return `a stop takes no target (got "${printable(word)}"): it always covers every session. Nothing was touched. ${all}`;
}
