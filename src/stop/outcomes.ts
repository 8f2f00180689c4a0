// SPDX-License-Identifier: Apache-2.0
// What became of each row, computed from what the kernel showed afterwards and never from what was attempted.

import { type Census, emptyCensus, type Found, type Scope } from "./census.ts";
import type { Kill } from "./end-session.ts";
import { limits } from "./limits.ts";
import type { ReportRow } from "./report.ts";
import { type Row, rowsOf } from "./rows.ts";
import { isInSlice } from "./slice.ts";

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
  const { scope, kill, left, rows } = evidence;
  const known = new Set(rows.flatMap((row) => row.processes.map((found) => found.pid)));
  const newcomers = rowsFrom(
    scope,
    [...kill.killed.values()].filter((found) => !known.has(found.pid) && !isInitsJob(scope, found)),
  );
  const seen: Seen = {
    alive: kill.proved ? new Set<string>() : keysAlive(scope, rows, kill.last),
    held: keysOf(scope, rows, kill.last?.held ?? []),
    left: left === undefined ? undefined : keysAlive(scope, rows, left),
    newcomers: new Set(newcomers.map((row) => row.key)),
  };
  const bystanders = new Set(kill.last?.bystanders.map(({ found }) => found.pid));
  const tableRows = rows.filter((row) => !row.processes.every(({ pid }) => bystanders.has(pid)));
  const tableKeys = new Set(rows.map((row) => row.key));
  const later = newcomers.filter((row) => !tableKeys.has(row.key));
  return [
    ...tableRows.map((row) => judge(evidence, seen, row)),
    ...later.map((row) => judge(evidence, seen, row, true)),
  ];
}

/** Keys of rows, by what was seen of them. */
interface Seen {
  alive: ReadonlySet<string>;
  held: ReadonlySet<string>;
  /** At the end of the grace; undefined without grace, or where nobody could tell. */
  left: ReadonlySet<string> | undefined;
  newcomers: ReadonlySet<string>;
}

function judge({ kill, force }: Evidence, seen: Seen, row: Row, isNew = false): ReportRow {
  const alive = (reason: string): ReportRow => ({ row, outcome: "alive", reason });
  const killed = (reason: string): ReportRow => ({ row, outcome: "killed", reason: `SIGKILL${reason}` });
  const grace = `${limits.graceMs / 1_000} s`;
  if (seen.alive.has(row.key)) {
    return alive(seen.held.has(row.key) ? "not signalled, since it may be somebody else's" : "survived SIGKILL");
  }
  if (!kill.proved && kill.last === undefined) return alive("nobody could tell in time that it is gone");
  if (!kill.proved && seen.alive.size === 0 && kill.slicePopulated && row.kind !== "stray") {
    return alive("the slice still says that something in it is alive");
  }
  if (isNew) return killed("; it came while the stop ran");
  if (force) return killed(" at once (--force)");
  if (seen.left === undefined) return killed(` after the grace of ${grace}`);
  if (seen.left.has(row.key)) return killed(`; it had not ended within the grace of ${grace}`);
  if (seen.newcomers.has(row.key)) return killed("; something new in it came while the stop ran");
  return { row, outcome: "terminated", reason: "ended within the grace after SIGTERM" };
}

/** What PID 1 starts, as root, when the last of a user's units has ended: nothing of the account. */
export function isInitsJob({ slice, identity }: Scope, found: Found): boolean {
  if (found.cgroup !== `${slice.path}/user-runtime-dir@${identity.uid}.service`) return false;
  return found.status.uids.every((uid) => uid === 0);
}

/** Rows of processes that a census of its own did not hold together. */
export function rowsFrom(scope: Scope, alive: Found[]): Row[] {
  return rowsOf(scope, { ...emptyCensus(true), alive });
}

/**
 * Rows with somebody alive in this census. Table rows are known by their pids, since a kill pass does not read again where
 * they sit; a process of a row that can no longer be read may be alive.
 */
function keysAlive(scope: Scope, rows: readonly Row[], census: Census | undefined): Set<string> {
  return keysOf(scope, rows, [...(census?.alive ?? []), ...(census?.held ?? [])], census?.unreadable);
}

function keysOf(scope: Scope, rows: readonly Row[], found: Found[], unreadable: readonly number[] = []): Set<string> {
  const pids = new Set([...found.map(({ pid }) => pid), ...unreadable]);
  const known = rows.filter((row) => row.processes.some(({ pid }) => pids.has(pid)));
  const knownPids = new Set(known.flatMap((row) => row.processes.map(({ pid }) => pid)));
  const later = rowsFrom(
    scope,
    found.filter(({ pid }) => !knownPids.has(pid)),
  );
  return new Set([...known, ...later].map((row) => row.key));
}

/** Sentences about what could not be told, for a verdict that is not a proof. */
export function unknownOf(scope: Scope, census: Census | undefined, slicePopulated: boolean): string[] {
  const sentences: string[] = [];
  if (census === undefined)
    sentences.push("no look at all processes was finished in time: whoever was there may be alive");
  if (census !== undefined && census.unreadable.length > 0) {
    const pids = census.unreadable.slice(0, 5).join(", ");
    sentences.push(
      `the status of ${census.unreadable.length} process(es) cannot be read (pid ${pids}): they may be the account's`,
    );
  }
  const counted = [...(census?.alive ?? []), ...(census?.held ?? [])];
  const isNamed = counted.some(({ cgroup }) => cgroup !== undefined && isInSlice(scope.slice, cgroup));
  if (slicePopulated && census !== undefined && !isNamed) {
    sentences.push("the account's slice still says that something in it is alive, or cannot be read");
  }
  if (sentences.length === 0 && counted.length === 0) {
    sentences.push("nobody was seen, but nothing is proved: the last pid cannot be read, or the time was too short");
  }
  return sentences;
}
