// SPDX-License-Identifier: Apache-2.0
// A Linux small enough to hold in the head: process numbers, parents, cgroups, births and deaths. What signals do is in
// signals.ts, what programs read is in proc-texts.ts and cgroup-files.ts, and how processes behave is in tempers.ts.

import { type Cgroup, ensureCgroup, join, leave, makeCgroup, removeTree } from "./cgroups.ts";
import { FileTree } from "./files.ts";
import type { FuseConnection } from "./fuse.ts";
import { hostUserNamespace, type Owner, type Phase, type Process, type Uids } from "./processes.ts";
import { Random } from "./random.ts";
import { Timeline } from "./timeline.ts";

/** What kind of kernel and host this is. */
export interface HostOptions {
  /** Since 5.14; absent before. */
  killFile: boolean;
  /** Before 6.14 a fork could slip through a write to `cgroup.kill`. */
  forksRaceTheKill: boolean;
  readOnlyCgroups: boolean;
  /** Numbers go up to this and then start again at 300. */
  pidMax: number;
  /** After this many microseconds PID 1 removes what is no longer populated; 0: never. */
  collectAfterUs: number;
  /** Where the cgroup2 hierarchy is, or what keeps a helper from seeing the whole host. */
  layout: "unified" | "hybrid" | "no-cgroup2" | "cgroup-namespace" | "subset-pid";
  /** Since 5.3: processes can be held by a descriptor. */
  pidfds: boolean;
  /** Everything that the helper does takes this many times as long (a host full of spinning processes). */
  slowness: number;
}

export const ordinaryHost: HostOptions = {
  killFile: true,
  forksRaceTheKill: false,
  readOnlyCgroups: false,
  pidMax: 32_768,
  collectAfterUs: 0,
  layout: "unified",
  pidfds: true,
  slowness: 1,
};

/** The first number that is given out again after the numbers have wrapped (RESERVED_PIDS). */
const firstRecycledPid = 300;

export interface Birth {
  owner: Owner;
  cgroup: Cgroup;
  uids?: Uids;
  comm?: string;
  lineage?: string;
  newcomer?: boolean;
  restored?: boolean;
  /** This very number (clone3 with set_tid), for a recycled one. */
  pid?: number;
}

export class World {
  readonly timeline = new Timeline();
  readonly random: Random;
  readonly host: HostOptions;
  readonly root: Cgroup = makeCgroup(undefined, "");
  readonly files = new FileTree();
  /** Every number that answers in /proc, zombies included. */
  readonly processes = new Map<number, Process>();
  /** Threads beside the leaders: in no listing, but looked up like processes. */
  readonly threads = new Map<number, Process>();
  /** Processes that somebody traces with PTRACE_O_TRACEEXIT. */
  readonly tracees = new Set<Process>();
  /** FUSE connections by number. */
  readonly fuse = new Map<number, FuseConnection>();
  readonly init: Process;
  lastPid = 0;
  /** How many processes ever lived here. */
  born = 0;
  /** Every number that a lineage ever had, for the laws. */
  readonly lineages = new Map<string, number[]>();

  constructor(seed: number, host: Partial<HostOptions> = {}) {
    this.random = new Random(seed);
    this.host = { ...ordinaryHost, ...host };
    this.init = this.spawn(undefined, {
      owner: "host",
      cgroup: ensureCgroup(this.root, "/init.scope"),
      comm: "systemd",
      lineage: "init",
    }) as Process;
    this.init.subreaper = true;
    this.init.term = "ignore";
  }

  /** A new process; undefined when no number is free (EAGAIN). What is not named in `birth` comes from the parent. */
  spawn(parent: Process | undefined, birth: Birth): Process | undefined {
    const pid = birth.pid ?? this.#allocatePid();
    if (pid === undefined || this.isTaken(pid)) return undefined;
    this.born++;
    const process: Process = {
      pid,
      startTicks: Math.floor(this.timeline.nowUs / 10_000) + 1,
      startedUs: this.timeline.nowUs,
      owner: birth.owner,
      lineage: birth.lineage ?? parent?.lineage ?? birth.comm ?? String(pid),
      newcomer: birth.newcomer ?? false,
      restored: birth.restored ?? parent?.restored ?? false,
      parent,
      children: new Set(),
      cgroup: birth.cgroup,
      uids: birth.uids ?? parent?.uids ?? [0, 0, 0, 0],
      comm: birth.comm ?? parent?.comm ?? "sh",
      phase: "alive",
      letter: "S",
      zombieLeader: false,
      threadIds: [],
      wchan: "do_wait",
      dying: false,
      stuck: false,
      exitTracer: undefined,
      term: "default",
      onTerm: undefined,
      termPending: false,
      killPending: false,
      onChildDeath: undefined,
      onDeath: undefined,
      reaps: true,
      subreaper: false,
      namespacePids: [pid, ...innerNumbers(parent, pid)],
      userNamespace: parent?.userNamespace ?? hostUserNamespace,
      terminal: parent?.terminal ?? 0,
      cwd: parent?.cwd ?? "/",
      termsSeen: 0,
    };
    this.processes.set(pid, process);
    this.#remember(process);
    parent?.children.add(process);
    join(process, birth.cgroup);
    return process;
  }

  /** A child like its parent, in the parent's cgroup. */
  fork(parent: Process, changes: Partial<Birth> = {}): Process | undefined {
    return this.spawn(parent, { owner: parent.owner, cgroup: parent.cgroup, newcomer: parent.newcomer, ...changes });
  }

  /** Starts a second thread and ends the main one: a zombie leader. */
  leaveOnlyAThread(process: Process): void {
    const thread = this.#allocatePid();
    if (thread === undefined) return;
    this.threads.set(thread, process);
    process.threadIds = [...process.threadIds, thread];
    process.zombieLeader = true;
  }

  /** The process ends: a zombie for its parent to reap, its children for the nearest subreaper. */
  die(process: Process): void {
    if (process.phase !== "alive") return;
    process.phase = "zombie";
    process.dying = true;
    for (const thread of process.threadIds) this.threads.delete(thread);
    process.threadIds = [];
    leave(process, process.cgroup);
    this.#handOverChildren(process);
    for (const tracee of this.tracees) if (tracee.exitTracer === process) this.#letGo(tracee);
    process.onDeath?.();
    const parent = process.parent;
    parent?.onChildDeath?.(process);
    if (parent === undefined || parent.reaps) this.#reapSoon(process);
    if (this.host.collectAfterUs > 0) this.#collectLater(process.cgroup);
  }

  /** `tracer` holds `tracee` at its exit. */
  traceExit(tracer: Process, tracee: Process): void {
    tracee.exitTracer = tracer;
    this.tracees.add(tracee);
  }

  /** Moves a process, as a write to `cgroup.procs` does. */
  move(process: Process, cgroup: Cgroup): void {
    if (process.phase !== "alive") return;
    leave(process, process.cgroup);
    process.cgroup = cgroup;
    join(process, cgroup);
  }

  /** Whether a number names a process or a thread now. */
  isTaken(pid: number): boolean {
    return this.processes.has(pid) || this.threads.has(pid);
  }

  /** The process that a number leads to; a thread's number leads to its process. */
  lookUp(pid: number): Process | undefined {
    return this.processes.get(pid) ?? this.threads.get(pid);
  }

  #remember(process: Process): void {
    const numbers = this.lineages.get(process.lineage);
    if (numbers === undefined) this.lineages.set(process.lineage, [process.pid]);
    else numbers.push(process.pid);
  }

  #letGo(tracee: Process): void {
    tracee.exitTracer = undefined;
    if (tracee.letter === "t") this.timeline.after(this.random.around(40), () => this.die(tracee));
  }

  #handOverChildren(process: Process): void {
    if (process.children.size === 0) return;
    let heir = process.parent;
    while (heir !== undefined && (!heir.subreaper || heir.phase !== "alive")) heir = heir.parent;
    const adopter = heir ?? this.init;
    for (const child of process.children) {
      child.parent = adopter;
      adopter.children.add(child);
      if (child.phase === "zombie" && adopter.reaps) this.#reapSoon(child);
    }
    process.children.clear();
  }

  #reapSoon(process: Process): void {
    this.timeline.after(this.random.around(80), () => {
      if (process.phase !== "zombie") return;
      process.phase = "leaving";
      this.timeline.after(6, () => {
        process.phase = "gone" satisfies Phase;
        if (this.processes.get(process.pid) === process) this.processes.delete(process.pid);
        process.parent?.children.delete(process);
      });
    });
  }

  #collectLater(cgroup: Cgroup): void {
    this.timeline.after(this.host.collectAfterUs, () => {
      let at: Cgroup | undefined = cgroup;
      while (at?.parent !== undefined && at.parent !== this.root && at.population === 0 && !at.removed) {
        const above: Cgroup = at.parent;
        removeTree(at);
        at = above;
      }
    });
  }

  #allocatePid(): number | undefined {
    let candidate = this.lastPid;
    for (let tried = 0; tried <= this.host.pidMax; tried++) {
      candidate = candidate >= this.host.pidMax - 1 ? firstRecycledPid : candidate + 1;
      if (this.isTaken(candidate)) continue;
      this.lastPid = candidate;
      return candidate;
    }
    return undefined;
  }
}

/** Numbers in the inner pid namespaces that a child shares with its parent. */
function innerNumbers(parent: Process | undefined, pid: number): number[] {
  return parent === undefined ? [] : parent.namespacePids.slice(1).map((inner) => inner + (pid % 1000));
}
