// SPDX-License-Identifier: Apache-2.0
// What `--status` knows, by question: what runs, what is asked of new sessions, what is left of earlier ones, and whether
// this host would pass a stop. Text and JSON show the same facts.

import type { Hold } from "../ground/records.ts";
import type { Selinux } from "../ground/selinux.ts";

/** A session that runs, or whose record says that it is being started. */
export interface RunningSession {
  unit: string;
  /** From root's record; null where there is none. */
  entryPoint: string | null;
  project: string | null;
  operator: string | null;
  since: string | null;
  ageSeconds: number | null;
  /** null: cannot be counted. */
  processes: number | null;
  /** The count is only of what could be seen: there may be more. */
  atLeast: boolean;
  /** `memory.current` in bytes; null where that controller is not there. */
  memory: number | null;
}

/** What else is in the account's slice. */
export interface Plumbing {
  unit: string;
  processes: number | null;
  atLeast: boolean;
  memory: number | null;
  /** More than a manager itself: it can be anything, and so is at work. */
  works: boolean;
}

/** A process of the account outside its slice: a stop ends it, and no limit holds it. */
export interface Stray {
  pid: number;
  command: string;
  state: string;
  uid: number;
  /** null: nobody could tell. */
  cgroup: string | null;
}

/** A session that did not end by itself, or what it wrote was not wholly handed back. */
export interface LeftSession {
  unit: string;
  project: string;
  operator: string;
  since: string;
  how: string;
}

/** A claim that is no longer of use as it is. */
export interface LooseClaim {
  path: string;
  operator: string;
  /** In words, e.g. "its directory is gone". */
  what: string;
  /** What puts it right. */
  repair: string;
}

/** `note`: to be known, and neither good nor bad. `unknown`: the caller may not see it, which counts as broken. */
export type Verdict = "ok" | "note" | "unknown" | "broken";

/** One thing that a stop or a session rests on. */
export interface Check {
  name: string;
  verdict: Verdict;
  says: string;
  /** What mends it, as root, each a line to be pasted. */
  repair: string[];
}

export interface Facts {
  /** ISO 8601. */
  at: string;
  asRoot: boolean;
  /** null: cannot be told. */
  stopRuns: boolean | null;
  /** A sentence: a hold that cannot be read, which counts. */
  hold: Hold | string | null;
  /** null: what is in the slice cannot be told. */
  sessions: RunningSession[] | null;
  plumbing: Plumbing[] | null;
  /** null: cannot be told. */
  strays: Stray[] | null;
  left: LeftSession[];
  looseClaims: LooseClaim[];
  selinux: Selinux;
  checks: Check[];
}

export type State = "idle" | "running" | "broken";

export const exitCodes = { idle: 0, broken: 1, usage: 2, running: 3 } as const;

/** Worst first: unknown is broken, and only what was seen to be empty is idle. */
export function stateOf(facts: Facts): State {
  const { sessions, plumbing, strays, stopRuns } = facts;
  if (facts.checks.some(counts) || stopRuns === null || typeof facts.hold === "string") return "broken";
  if (sessions === null || plumbing === null || strays === null) return "broken";
  const works = sessions.length + strays.length > 0 || plumbing.some((unit) => unit.works);
  return works || stopRuns ? "running" : "idle";
}

/** Whether a check keeps the host from being as it should be. */
export function counts(check: Check): boolean {
  return check.verdict === "broken" || check.verdict === "unknown";
}

export function ok(name: string, says: string): Check {
  return { name, verdict: "ok", says, repair: [] };
}

export function note(name: string, says: string): Check {
  return { name, verdict: "note", says, repair: [] };
}

export function unknown(name: string, says: string): Check {
  return { name, verdict: "unknown", says, repair: [] };
}

export function broken(name: string, says: string, ...repair: string[]): Check {
  return { name, verdict: "broken", says, repair };
}
