// SPDX-License-Identifier: Apache-2.0
// What a process of a simulated world is: the kernel's own record of it, and the truth (whose it really is) that no
// program on the host can read and that the laws are judged by.

import type { Cgroup } from "./cgroups.ts";

/** Whose a process really is. `host` is root's and the system's; `helper` a stop under test or a child of it. */
export type Owner = "account" | "bystander" | "helper" | "host";

/** `zombie`: dead, not reaped yet. `leaving`: being taken off the list (state X). `gone`: the number is free. */
export type Phase = "alive" | "zombie" | "leaving" | "gone";

/** What a process does with SIGTERM. A pid namespace's init never gets a default-disposition TERM from outside. */
export type TermAction = "default" | "ignore" | "handler";

export type Uids = readonly [real: number, effective: number, saved: number, filesystem: number];

export interface Process {
  readonly pid: number;
  /** Clock ticks (10 ms) since the world began. */
  readonly startTicks: number;
  readonly startedUs: number;
  readonly owner: Owner;
  /** All descendants of one process of the plan, however often they fork, respawn or change their name. */
  readonly lineage: string;
  /** Started from outside (cron, an operator, PID 1), so that nothing alive before caused it. */
  readonly newcomer: boolean;
  /** Started by the manager that was restored, or that manager itself. */
  readonly restored: boolean;
  parent: Process | undefined;
  readonly children: Set<Process>;
  cgroup: Cgroup;
  uids: Uids;
  comm: string;
  phase: Phase;
  /** State letter while alive; the leader's own where that still lives. */
  letter: "R" | "S" | "D" | "T" | "t";
  /** The main thread has exited while other threads live: `State: Z`, and `cgroup.kill` passes it by. */
  zombieLeader: boolean;
  /** Thread ids beside the leader's; they come from the same numbers as pids and are looked up like them. */
  threadIds: readonly number[];
  wchan: string;
  /** SIGKILL or a deadly TERM has been taken: it forks no more and dies as soon as it can. */
  dying: boolean;
  /** Cannot die now: uninterruptible (D) until `release`. */
  stuck: boolean;
  /** A tracer with PTRACE_O_TRACEEXIT holds it at its exit, in `t`, until that tracer goes. */
  exitTracer: Process | undefined;
  term: TermAction;
  onTerm: (() => void) | undefined;
  termPending: boolean;
  killPending: boolean;
  /** Called when one of its children has died. */
  onChildDeath: ((child: Process) => void) | undefined;
  onDeath: (() => void) | undefined;
  reaps: boolean;
  /** Orphans below it come to it and not to PID 1. */
  subreaper: boolean;
  /** Numbers of the process in the pid namespaces it is seen from, the host's first. */
  namespacePids: readonly number[];
  userNamespace: string;
  /** Real uid of whoever executed its program, where that is not its own. */
  executedBy?: number;
  /** Device number of its controlling terminal, 0 for none. */
  terminal: number;
  cwd: string;
  /** SIGTERMs it was sent, for the law that newcomers of the grace get none. */
  termsSeen: number;
}

export const hostUserNamespace = "user:[4026531837]";

/** Alive and free to run: not dying, not stopped, not stuck. Whether its cgroup is frozen is the cgroup's matter. */
export function isFree(process: Process): boolean {
  return process.phase === "alive" && !process.dying && !process.stuck && process.letter !== "T";
}
