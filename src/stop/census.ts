// SPDX-License-Identifier: Apache-2.0
// Questions only: who of the account is alive. The list of processes is read first, the last allocated pid after it, and
// then they are looked at newest first, so that a chain of forks runs into the census instead of away from it.

import { type Held, hold, release } from "./holding.ts";
import { type Identity, isOfAccount } from "./identity.ts";
import { ENOENT, ESRCH, isErrno, type KernelView } from "./kernel.ts";
import { limits } from "./limits.ts";
import {
  decimal,
  type ProcessStatus,
  parseCgroupPath,
  parseExecutor,
  parseLastPid,
  parseStat,
  parseStatus,
} from "./proc-files.ts";
import { isInSlice, isPopulated, type Slice } from "./slice.ts";

/** Whom a census looks for. */
export interface Scope {
  identity: Identity;
  slice: Slice;
}

/** A process that counts, or that is named though it does not. */
export interface Found {
  pid: number;
  status: ProcessStatus;
  /** Path in the hierarchy; undefined when it was not read. */
  cgroup: string | undefined;
  /** Start time in clock ticks; undefined when it was not asked for or could not be read. */
  startTicks: number | undefined;
  /** Terminal device, 0 for none; undefined when it was not asked for. */
  terminal: number | undefined;
}

export interface Census {
  /** Alive, and signalled when this census acts. */
  alive: Found[];
  /** Alive, but possibly a bystander: counted, never signalled, looked at again. */
  held: Found[];
  /** Dead and waiting for their parent. */
  unreaped: Found[];
  /** Never counted and never signalled, with the reason. */
  bystanders: { found: Found; reason: string }[];
  /** Processes whose status could not be read: they could be anybody's, so they count. */
  unreadable: number[];
  /** Every process was looked at within the limit. */
  complete: boolean;
}

export interface CensusOptions {
  /** `nowMs` after which it is cut off. */
  deadlineMs: number;
  /**
   * Also read start time, terminal and cgroup path of the matches; the number is the milliseconds that the paths may
   * cost altogether. Kill and verdict never need them, and a match is signalled before they are read.
   */
  detailsMs?: number;
  /** Matches whose details are of interest; all without. */
  detailsOf?: (pid: number) => boolean;
  /**
   * Called for each match that is not dead before the next process is read. With it each process is held from before it
   * is read until this returns: what is signalled through `held` is what was looked at.
   */
  onAlive?: (found: Found, held: Held) => void;
}

/** Looks at every process of the host once. */
export function takeCensus(view: KernelView, scope: Scope, options: CensusOptions): Census {
  const census = emptyCensus(true);
  const order = newestFirst(view);
  if (order === undefined) return { ...census, complete: false };
  const last = lastPid(view);
  const seen = new Set<number>();
  const budget = { leftMs: options.detailsMs ?? 0 };
  const occupancy = new Occupancy(view, scope.slice);
  const look = (pid: number) => {
    const found = lookAt(view, scope, census, occupancy, pid, seen, options.onAlive);
    // Nothing asks where the dead are; many of them wait below a deep path for a slow parent.
    if (found === undefined || options.detailsMs === undefined || isDead(found.status)) return;
    if (options.detailsOf?.(found.pid) ?? true) addDetails(view, found, budget);
  };
  for (const pid of order) {
    if (view.nowMs() >= options.deadlineMs) return { ...census, complete: false };
    look(pid);
  }
  if (lastPid(view) !== last) probeNewest(view, options.deadlineMs, look);
  return census;
}

/** A census of nobody. */
export function emptyCensus(complete: boolean): Census {
  return { alive: [], held: [], unreaped: [], bystanders: [], unreadable: [], complete };
}

/** Whether a census found nobody, wholly. */
export function isEmpty(census: Census): boolean {
  return census.complete && census.alive.length + census.held.length + census.unreadable.length === 0;
}

/**
 * Pids in the order of looking. The list is read before the last pid L: whatever is born between the two is in the gap
 * above the highest listed number. Numbers above L are from before the numbers wrapped, hence the oldest.
 */
function newestFirst(view: KernelView): number[] | undefined {
  const names = view.list("/proc");
  if (isErrno(names)) return undefined;
  const listed: number[] = [];
  for (const name of names) {
    const pid = decimal(name);
    if (pid !== undefined) listed.push(pid);
  }
  listed.sort((a, b) => b - a);
  const last = lastPid(view) ?? listed[0] ?? 0;
  const upToLast = listed.filter((pid) => pid <= last);
  const order: number[] = [];
  const gapEnd = Math.max(upToLast[0] ?? 0, last - limits.gapPids);
  for (let pid = last; pid > gapEnd; pid--) order.push(pid);
  for (const pid of upToLast) order.push(pid);
  for (const pid of listed) if (pid > last) order.push(pid);
  return order;
}

/**
 * Where numbers are given out while a census runs, it ends with a burst of looks at the newest number and a little above
 * it. A chain whose links live about as long as one look of a slowed-down helper takes is one link further whenever it is
 * looked at; how far above depends on both, so several distances are tried, many times.
 */
function probeNewest(view: KernelView, deadlineMs: number, look: (pid: number) => void): void {
  for (let probe = 0; probe < limits.probes && view.nowMs() < deadlineMs; probe++) {
    const newest = lastPid(view);
    if (newest === undefined) return;
    look(newest + (probe % limits.probeReach));
  }
}

/** The last pid that the kernel gave to anything; undefined when it cannot be read. */
export function lastPid(view: KernelView): number | undefined {
  const loadavg = view.readText("/proc/loadavg");
  return isErrno(loadavg) ? undefined : parseLastPid(loadavg);
}

function lookAt(
  view: KernelView,
  scope: Scope,
  census: Census,
  occupancy: Occupancy,
  number: number,
  seen: Set<number>,
  onAlive: CensusOptions["onAlive"],
): Found | undefined {
  if (number === view.pid || number <= 1 || seen.has(number)) return undefined;
  let sight = see(view, number, onAlive !== undefined);
  const { status } = sight;
  if (typeof status === "object" && status.tgid !== number) {
    // A number of the gap can be a thread; its process counts, once.
    release(view, sight.held);
    const { tgid } = status;
    if (tgid === view.pid || tgid <= 1 || seen.has(tgid)) return undefined;
    sight = see(view, tgid, onAlive !== undefined);
  }
  try {
    return place(view, scope, census, occupancy, sight, seen, onAlive);
  } finally {
    release(view, sight.held);
  }
}

/** A process and what was read of it. */
interface Sight {
  pid: number;
  status: ProcessStatus | "gone" | "unreadable";
  /** Held from before the reading; undefined where nobody is to be signalled, or nobody had the number then. */
  held: Held | undefined;
}

/** What is read is of the one that is held, or that one is gone. Whoever was born in between is held and read again. */
function see(view: KernelView, pid: number, mayBeSignalled: boolean): Sight {
  if (!mayBeSignalled) return { pid, status: readStatus(view, pid), held: undefined };
  let held = hold(view, pid);
  let status = readStatus(view, pid);
  if (held === undefined && typeof status === "object" && status.tgid === pid) {
    held = hold(view, pid);
    status = readStatus(view, pid);
  }
  return { pid, status, held };
}

/** Puts a process where it belongs in the census, and tells of it where it is a living match. */
function place(
  view: KernelView,
  scope: Scope,
  census: Census,
  occupancy: Occupancy,
  { pid, status, held }: Sight,
  seen: Set<number>,
  onAlive: CensusOptions["onAlive"],
): Found | undefined {
  if (status === "gone") return undefined;
  seen.add(pid);
  if (status === "unreadable") {
    census.unreadable.push(pid);
    return undefined;
  }
  const verdict = judge(view, scope, pid, status, occupancy);
  if (verdict.kind === "stranger") return undefined;
  const found: Found = { pid, status, cgroup: verdict.cgroup, startTicks: undefined, terminal: undefined };
  // A dead one needs no signal, and its number may be somebody's in a moment.
  if (verdict.kind === "alive" && held !== undefined && !isDead(status)) onAlive?.(found, held);
  if (verdict.kind === "bystander") census.bystanders.push({ found, reason: verdict.reason });
  else if (isDead(status)) census.unreaped.push(found);
  else if (verdict.kind === "held") census.held.push(found);
  else census.alive.push(found);
  return found;
}

/** Dead is a zombie without another thread, in one reading: the leader of a living group shows `Z` as well. */
export function isDead(status: ProcessStatus): boolean {
  return status.state === "Z" && status.threads === 1;
}

/** Reads a status until it is settled; `X` and `Threads: 0` are between states. Only ENOENT and ESRCH mean gone. */
export function readStatus(view: KernelView, pid: number): ProcessStatus | "gone" | "unreadable" {
  let status: ProcessStatus | undefined;
  for (let reading = 0; reading < limits.unsettledReadings; reading++) {
    const text = view.readText(`/proc/${pid}/status`);
    if (text === ENOENT || text === ESRCH) return "gone";
    status = isErrno(text) ? undefined : parseStatus(text);
    if (status !== undefined && status.state !== "X" && status.threads !== 0) return status;
  }
  return status ?? "unreadable";
}

type Verdict =
  | { kind: "stranger" }
  | { kind: "alive" | "held"; cgroup: string | undefined }
  | { kind: "bystander"; cgroup: string | undefined; reason: string };

/**
 * Whether anybody lives in the slice, by its own word. Where nobody does, no place of a process has to be read: each such
 * reading waits while PID 1 looks up the places of a thousand dead in a deep cgroup, longer than a kill may take. Asked once
 * for a census, and again after a slow reading; who enters the slice later is told of by its word after the census.
 */
class Occupancy {
  readonly #view: KernelView;
  readonly #slice: Slice;
  #occupied: boolean | undefined;

  constructor(view: KernelView, slice: Slice) {
    this.#view = view;
    this.#slice = slice;
  }

  isOccupied(): boolean {
    this.#occupied ??= isPopulated(this.#view, this.#slice);
    return this.#occupied;
  }

  /** The place of a process. */
  placeOf(pid: number): string | undefined {
    const startMs = this.#view.nowMs();
    const cgroup = readCgroup(this.#view, pid);
    if (this.#view.nowMs() - startMs > limits.slowPlaceMs) this.#occupied = undefined;
    return cgroup;
  }
}

/** Whether a process counts. Outside the slice its uids decide, inside it everything that lives counts. */
function judge(
  view: KernelView,
  scope: Scope,
  pid: number,
  status: ProcessStatus,
  occupancy: Occupancy = new Occupancy(view, scope.slice),
): Verdict {
  const matches = status.uids.some((uid) => isOfAccount(scope.identity, uid));
  const impersonated = matches && status.uids[0] === 0 && status.uids[2] === 0;
  const namespaced = matches && status.pidNamespaces > 1;
  if (matches && !impersonated && !namespaced) return { kind: "alive", cgroup: undefined };
  if (!matches && !occupancy.isOccupied()) return { kind: "stranger" };
  const cgroup = occupancy.placeOf(pid);
  if (cgroup !== undefined && isInSlice(scope.slice, cgroup)) return { kind: "alive", cgroup };
  if (!matches) return { kind: "stranger" };
  if (cgroup === undefined) return { kind: "held", cgroup };
  if (impersonated) return { kind: "bystander", cgroup, reason: "a root process acting for the account" };
  const container = isContainerProcess(view, pid, status);
  if (container === "unknown") return { kind: "held", cgroup };
  if (container) return { kind: "bystander", cgroup, reason: "a container's process with the same number" };
  return { kind: "alive", cgroup };
}

/**
 * A container engine's process: the number is the account's, the account is not. It lives in a pid namespace below, in
 * the helper's own user namespace, and its first ancestor outside is a process of root other than PID 1 whose program root
 * executed. Nothing less proves it: a setuid sandbox leaves the user namespace and can make its uids 0, and CLONE_PARENT
 * gives any parent.
 */
function isContainerProcess(view: KernelView, pid: number, status: ProcessStatus): boolean | "unknown" {
  const own = view.readLink("/proc/self/ns/user");
  const its = view.readLink(`/proc/${pid}/ns/user`);
  if (isErrno(own) || isErrno(its)) return "unknown";
  if (own !== its) return false;
  let ancestor = status.parent;
  for (let step = 0; step < limits.ancestors; step++) {
    if (ancestor <= 1) return false;
    const above = readStatus(view, ancestor);
    if (typeof above === "string") return "unknown";
    if (above.pidNamespaces === 1)
      return above.uids.every((uid) => uid === 0) ? isExecutedByRoot(view, ancestor) : false;
    ancestor = above.parent;
  }
  return "unknown";
}

/**
 * Whether root executed a process's program: a setuid program can make all its uids 0 and so look like a shim of root,
 * but the kernel keeps who executed it. Read only of a process that is wholly root's: nobody else can make that read wait.
 */
function isExecutedByRoot(view: KernelView, pid: number): boolean | "unknown" {
  const auxv = view.readText(`/proc/${pid}/auxv`);
  const executor = isErrno(auxv) ? undefined : parseExecutor(auxv);
  return executor === undefined ? "unknown" : executor === 0;
}

function readCgroup(view: KernelView, pid: number): string | undefined {
  const text = view.readText(`/proc/${pid}/cgroup`);
  return isErrno(text) ? undefined : parseCgroupPath(text);
}

/** Start time and terminal cost little; the path of a deep cgroup does not, and only that has a budget. */
function addDetails(view: KernelView, found: Found, budget: { leftMs: number }): void {
  const stat = view.readText(`/proc/${found.pid}/stat`);
  const parsed = isErrno(stat) ? undefined : parseStat(stat);
  found.startTicks = parsed?.startTicks;
  // Whoever is gone by now has no terminal; of whom it cannot be read, nobody can tell.
  found.terminal = stat === ENOENT || stat === ESRCH ? 0 : parsed?.terminal;
  if (found.cgroup !== undefined || budget.leftMs <= 0) return;
  const startMs = view.nowMs();
  found.cgroup = readCgroup(view, found.pid);
  budget.leftMs -= view.nowMs() - startMs;
}

/** Start time of a process that is to be recognised later; undefined when it is gone or cannot be read. */
export function startTicksOf(view: KernelView, pid: number): number | undefined {
  const stat = view.readText(`/proc/${pid}/stat`);
  return isErrno(stat) ? undefined : parseStat(stat)?.startTicks;
}

/**
 * Whether a process found earlier is still the same one and alive: same start time, and its uids still the account's or
 * its place still the slice.
 */
export function isStillAlive(view: KernelView, scope: Scope, found: Found): boolean {
  const status = readStatus(view, found.pid);
  if (status === "gone") return false;
  if (status === "unreadable") return true;
  if (isDead(status)) return false;
  const start = startTicksOf(view, found.pid);
  if (start !== undefined && found.startTicks !== undefined && start !== found.startTicks) return false;
  return judge(view, scope, found.pid, status).kind === "alive";
}
