// SPDX-License-Identifier: Apache-2.0
// What became of each row, computed from what the kernel showed afterwards and never from what was attempted.

import type { Census, Found, Scope } from "./census.ts";
import type { Kill } from "./end-session.ts";
import { limits } from "./limits.ts";
import type { ReportRow } from "./report.ts";
import { type Row, rowsOf } from "./rows.ts";

/** What is known when the kill is over. */
export interface Evidence {
  scope: Scope;
  /** Rows of the table. */
  rows: readonly Row[];
  /** Who was left at the end of the grace; undefined without grace, or where nobody could tell. */
  left: Census | undefined;
  kill: Kill;
  force: boolean;
}

/** One report row per row of the table and per row first met later. Unknown is alive; unknown is never "terminated". */
export function outcomesOf(evidence: Evidence): ReportRow[] {
  const { scope, kill, left } = evidence;
  const aliveKeys = kill.proved
    ? new Set<string>()
    : keysOf(scope, [...(kill.last?.alive ?? []), ...(kill.last?.held ?? [])]);
  const leftKeys = left === undefined ? undefined : keysOf(scope, [...left.alive, ...left.held]);
  const known = new Set(evidence.rows.flatMap((row) => row.processes.map((found) => found.pid)));
  const newcomers = rowsFrom(
    scope,
    [...kill.killed.values()].filter((found) => !known.has(found.pid)),
  );
  const newcomerKeys = new Set(newcomers.map((row) => row.key));
  const tableKeys = new Set(evidence.rows.map((row) => row.key));
  const judge = (row: Row, isNew: boolean): ReportRow => {
    if (aliveKeys.has(row.key)) return { row, outcome: "alive", reason: "survived SIGKILL" };
    if (!kill.proved && kill.last === undefined) {
      return { row, outcome: "alive", reason: "nobody could tell in time that it is gone" };
    }
    const endedItself = leftKeys !== undefined && !leftKeys.has(row.key) && !newcomerKeys.has(row.key);
    if (endedItself && !isNew) return { row, outcome: "terminated", reason: "ended by itself after SIGTERM" };
    return { row, outcome: "killed", reason: whyKilled(evidence, isNew) };
  };
  const later = newcomers.filter((row) => !tableKeys.has(row.key));
  return [...evidence.rows.map((row) => judge(row, false)), ...later.map((row) => judge(row, true))];
}

function whyKilled(evidence: Evidence, isNew: boolean): string {
  if (isNew) return "SIGKILL; it came while the stop ran";
  if (evidence.force) return "SIGKILL at once (--force)";
  return `SIGKILL; it had not ended ${limits.graceMs / 1_000} s after SIGTERM`;
}

/** Rows of processes that a census of its own did not hold together. */
export function rowsFrom(scope: Scope, alive: Found[]): Row[] {
  return rowsOf(scope, { alive, held: [], unreaped: [], bystanders: [], unreadable: [], complete: true });
}

function keysOf(scope: Scope, found: Found[]): Set<string> {
  return new Set(rowsFrom(scope, found).map((row) => row.key));
}

/** Sentences about what could not be told, for a verdict that is not a proof. */
export function unknownOf(census: Census | undefined, slicePopulated: boolean): string[] {
  const sentences: string[] = [];
  if (census === undefined)
    sentences.push("no look at all processes was finished in time: whoever was there may be alive");
  if (census !== undefined && census.unreadable.length > 0) {
    const pids = census.unreadable.slice(0, 5).join(", ");
    sentences.push(
      `the status of ${census.unreadable.length} process(es) cannot be read (pid ${pids}): they may be the account's`,
    );
  }
  const nobody = census !== undefined && census.alive.length + census.held.length === 0;
  if (slicePopulated && nobody)
    sentences.push("the account's slice still says that something in it is alive, or cannot be read");
  return sentences;
}
