// SPDX-License-Identifier: Apache-2.0
// Acts on sessions: ask everything to end within one shared grace, then kill whatever is there and prove that it is
// gone. Nothing in this file writes to a log, a service or a terminal that could block, and nothing here starts a process.

import {
  type Census,
  type Found,
  isEmpty,
  isStillAlive,
  lastPid,
  readStatus,
  type Scope,
  takeCensus,
} from "./census.ts";
import { type Held, hold, release, signalHeld } from "./holding.ts";
import { isOfAccount } from "./identity.ts";
import { isErrno, type Kernel, SIGCONT, SIGKILL, SIGSTOP, SIGTERM } from "./kernel.ts";
import { limits } from "./limits.ts";
import { isPopulated, killSlice, refusalInWords } from "./slice.ts";

/** What the grace saw. */
export interface Grace {
  /** The signal that interrupted it, or 0. */
  interrupted: number;
  /** Who was left when it was over; undefined when nobody could tell in time. */
  left: Census | undefined;
}

/** Told about once a second while the grace runs: seconds left, processes of the first census that are still alive. */
export type Progress = (secondsLeft: number, alive: number) => void;

/**
 * SIGTERM once to each process of the census, the deepest cgroup first so that no parent waits for a child that it still
 * sees, then SIGCONT so that a stopped one can obey. One window for all of them, absolute, that nothing a session does
 * moves. Newcomers get no signal: they are mostly what a session's own handler started to save its work. For the same
 * reason the account's own manager is asked last, when nobody else is left: it would end its units' newcomers itself.
 */
export async function terminateGracefully(
  kernel: Kernel,
  scope: Scope,
  census: Census,
  progress: Progress,
): Promise<Grace> {
  const deadlineMs = kernel.nowMs() + limits.graceMs;
  const isManager = (found: Found) => found.cgroup === managerScope(scope);
  const sessions = deepestFirst(census.alive.filter((found) => !isManager(found)));
  const managers = census.alive.filter(isManager);
  askToEnd(kernel, scope, sessions, deadlineMs);
  const staying = new Set(managers.map(({ pid }) => pid));
  let interrupted = await waitUntilEmpty(kernel, scope, sessions, staying, deadlineMs, progress);
  if (interrupted === 0 && managers.length > 0 && kernel.nowMs() < deadlineMs) {
    askToEnd(kernel, scope, managers, deadlineMs);
    interrupted = await waitUntilEmpty(kernel, scope, managers, new Set(), deadlineMs, progress);
  }
  if (interrupted !== 0) return { interrupted, left: undefined };
  const left = takeCensus(kernel, scope, {
    deadlineMs: kernel.nowMs() + limits.leftoverMs,
    detailsMs: limits.leftoverMs / 2,
  });
  return { interrupted: 0, left: left.complete ? left : undefined };
}

/** Where a user manager itself sits. A look-alike there is asked later, and killed at the same deadline. */
function managerScope({ slice, identity }: Scope): string {
  return `${slice.path}/user@${identity.uid}.service/init.scope`;
}

function deepestFirst(found: readonly Found[]): Found[] {
  const depth = (one: Found) => (one.cgroup ?? "").split("/").length;
  return [...found].sort((a, b) => depth(b) - depth(a));
}

function askToEnd(kernel: Kernel, scope: Scope, asked: readonly Found[], deadlineMs: number): void {
  for (const found of asked) {
    if (kernel.nowMs() >= deadlineMs) return;
    const held = hold(kernel, found.pid);
    try {
      if (held !== undefined) askOneToEnd(kernel, scope, found, held);
    } finally {
      release(kernel, held);
    }
  }
}

function askOneToEnd(kernel: Kernel, scope: Scope, found: Found, held: Held): void {
  if (!isStillAlive(kernel, scope, found)) return;
  signalHeld(kernel, held, SIGTERM);
  // SIGTERM may have ended it, and a mere number be somebody else's by now.
  if (held.handle === undefined && !isStillAlive(kernel, scope, found)) return;
  signalHeld(kernel, held, SIGCONT);
}

/**
 * Polls the known processes first, and takes a census only when they are gone. Over when nobody is left but those in
 * `staying`, or at the deadline. Returns the signal of an interruption, or 0.
 */
async function waitUntilEmpty(
  kernel: Kernel,
  scope: Scope,
  asked: readonly Found[],
  staying: ReadonlySet<number>,
  deadlineMs: number,
  progress: Progress,
): Promise<number> {
  const startMs = kernel.nowMs();
  let known = [...asked];
  let nextProgressMs = startMs + limits.progressMs;
  for (;;) {
    while (known.length > 0 && kernel.nowMs() < deadlineMs && !isStillAlive(kernel, scope, known.at(-1) as Found)) {
      known.pop();
    }
    const nowMs = kernel.nowMs();
    if (known.length === 0 && isNobodyLeft(kernel, scope, staying, deadlineMs)) return 0;
    if (nowMs >= deadlineMs) return 0;
    if (nowMs >= nextProgressMs) {
      known = known.filter((found) => kernel.nowMs() >= deadlineMs || isStillAlive(kernel, scope, found));
      progress(Math.ceil((deadlineMs - nowMs) / 1_000), known.length);
      nextProgressMs = kernel.nowMs() + limits.progressMs;
    }
    await kernel.sleep(nowMs - startMs < limits.shortPollsMs ? limits.firstPollMs : limits.laterPollMs);
    if (kernel.interruption() !== 0) return kernel.interruption();
  }
}

/** Whether nobody is left but those that stay; where nobody does, the slice's own word saves a census. */
function isNobodyLeft(kernel: Kernel, scope: Scope, staying: ReadonlySet<number>, deadlineMs: number): boolean {
  if (staying.size === 0 && isPopulated(kernel, scope.slice)) return false;
  const census = takeCensus(kernel, scope, { deadlineMs: Math.min(deadlineMs, kernel.nowMs() + limits.leftoverMs) });
  return isEmpty({ ...census, alive: census.alive.filter(({ pid }) => !staying.has(pid)) });
}

/** What the kill did and what was seen afterwards. */
export interface Kill {
  /** Proved: nothing of the account is alive. */
  proved: boolean;
  /** The last census that was not cut off; undefined when every one was. */
  last: Census | undefined;
  /** The slice still said `populated 1`, or nobody could tell. */
  slicePopulated: boolean;
  /** Every process that got SIGKILL, by pid, as it was first seen. */
  killed: ReadonlyMap<number, Found>;
  /** Mechanisms that worked. */
  mechanisms: ("cgroup-kill" | "per-pid")[];
  /** Why the write to the slice did not work; undefined when it did or there was no slice. */
  refusal: string | undefined;
  passes: number;
  /** Connections of hung FUSE daemons that were cut off. */
  abortedConnections: string[];
}

/**
 * Ends everything that is alive, and proves it. In every pass: one write to the slice, which ends what starves the helper
 * and what hops between cgroups, then SIGKILL to each process of a fresh census, which ends what the write does not reach
 * (a group whose leader has exited, strays). Each alone is defeated by something, so both run in every pass.
 *
 * `outside`: the helper has left the slice; where it could not, its own write would end it. `known`: pids that are in the
 * table already; of the others the place is read for the report, after the signal and within a small budget.
 */
export async function killOutright(
  kernel: Kernel,
  scope: Scope,
  outside: boolean,
  known: ReadonlySet<number>,
  deadlineMs = kernel.nowMs() + limits.killMs,
): Promise<Kill> {
  const proof = new Proof();
  const killed = new Map<number, Found>();
  const kill: Kill = { ...nothingKilled(), killed };
  const killOne = (found: Found, held: Held) => {
    if (signalHeld(kernel, held, SIGKILL) === 0) use(kill, "per-pid");
    if (!killed.has(found.pid)) killed.set(found.pid, found);
  };
  const startMs = kernel.nowMs();
  let grew = false;
  for (;;) {
    kill.passes++;
    const passMs = kernel.nowMs();
    if (grew && passMs - startMs > limits.killAloneMs) stopAllFirst(kernel, scope, deadlineMs);
    const killedBefore = killed.size;
    const before = lastPid(kernel);
    if (outside) killWholeSlice(kernel, scope, kill);
    const detailsOf = (pid: number) => !known.has(pid);
    const census = takeCensus(kernel, scope, {
      deadlineMs,
      onAlive: killOne,
      detailsMs: limits.killDetailsMs,
      detailsOf,
    });
    if (census.complete) kill.last = census;
    kill.slicePopulated = isPopulated(kernel, scope.slice);
    kill.proved = proof.add(isEmpty(census) && !kill.slicePopulated, before, lastPid(kernel));
    const nowMs = kernel.nowMs();
    if (kill.proved || nowMs >= deadlineMs) return kill;
    if (deadlineMs - nowMs <= limits.fuseAbortMs) abortHungConnections(kernel, scope, census, kill);
    grew = killed.size > killedBefore;
    const pauseMs = kill.passes < 10 ? limits.firstPollMs : limits.laterPollMs;
    // Where nobody new came there is no race any more, and the dying need the processor as well.
    const restMs = grew ? 0 : Math.min(nowMs - passMs, limits.restMs);
    if (!proof.begun) await kernel.sleep(Math.max(pauseMs, restMs));
  }
}

/**
 * A storm of forks that no cgroup holds together outruns the kill: each place that a killed one leaves under the
 * account's limit of processes is taken by a child of another. A stopped one keeps its place and forks no more. Censuses
 * that stop everybody, until one finds nobody new, and never for long; the kill follows at once, and ends the stopped.
 * Not whoever has a parent of somebody else's: sudo, su and runuser stop themselves with a child that is stopped, for good.
 */
function stopAllFirst(kernel: Kernel, scope: Scope, killDeadlineMs: number): void {
  const deadlineMs = Math.min(killDeadlineMs, kernel.nowMs() + limits.stopFirstMs);
  const seen = new Set<number>();
  const parents = new Map<number, boolean>();
  const mayStop = (parent: number) => {
    const known = parents.get(parent) ?? isOwnParent(kernel, scope, parent);
    parents.set(parent, known);
    return known;
  };
  const stopOne = ({ pid, status }: Found, held: Held) => {
    if (mayStop(status.parent)) signalHeld(kernel, held, SIGSTOP);
    seen.add(pid);
  };
  for (let before = -1; seen.size > before && kernel.nowMs() < deadlineMs; ) {
    before = seen.size;
    takeCensus(kernel, scope, { deadlineMs, onAlive: stopOne });
  }
}

/** Whether a parent is PID 1, gone, or the account's. */
function isOwnParent(kernel: Kernel, { identity }: Scope, parent: number): boolean {
  if (parent <= 1) return true;
  const status = readStatus(kernel, parent);
  if (typeof status === "string") return status === "gone";
  return status.uids.some((uid) => isOfAccount(identity, uid));
}

function killWholeSlice(kernel: Kernel, scope: Scope, kill: Kill): void {
  const write = killSlice(kernel, scope.slice);
  if (write === "written") use(kill, "cgroup-kill");
  else if (write !== "absent") kill.refusal = refusalInWords(write.refused);
}

function use(kill: Kill, mechanism: "cgroup-kill" | "per-pid"): void {
  if (!kill.mechanisms.includes(mechanism)) kill.mechanisms.push(mechanism);
}

/**
 * When empty looks are a proof: two in a row with the same last pid before the first and after the second, since then
 * nothing was created in between; or ten in a row on a host that forks without pause.
 */
export class Proof {
  #befores: number[] = [];

  /** Whether the last look was empty. */
  get begun(): boolean {
    return this.#befores.length > 0;
  }

  /** Adds a look with the last pid before and after it; true when the looks so far are a proof. */
  add(empty: boolean, before: number | undefined, after: number | undefined): boolean {
    // A census that does not know the last pid did not walk the gap above the list: it proves nothing.
    if (!empty || before === undefined || after === undefined) {
      this.#befores = [];
      return false;
    }
    this.#befores.push(before);
    const count = this.#befores.length;
    if (count >= limits.emptyCensusesOnBusyHost) return true;
    const previous = this.#befores[count - 2];
    return count >= 2 && previous === after;
  }
}

/** A kill of which nothing is known: nobody is said to be gone. */
export function nothingKilled(): Kill {
  return {
    proved: false,
    last: undefined,
    slicePopulated: true,
    killed: new Map(),
    mechanisms: [],
    refusal: undefined,
    passes: 0,
    abortedConnections: [],
  };
}

/**
 * Looks again after everything was proved to be ended, and acts on nothing. The first look that sees somebody alive
 * settles it: what is alive now is not forgiven because it is gone a moment later. `excuse` takes out who came with the
 * restored manager. Looks that were cut off, or could not read somebody, are repeated within the limit.
 */
export async function lookAgain(
  kernel: Kernel,
  scope: Scope,
  limitMs: number,
  excuse: (found: Found) => boolean,
): Promise<{ quiet: boolean; last: Census | undefined }> {
  const deadlineMs = kernel.nowMs() + limitMs;
  const proof = new Proof();
  let last: Census | undefined;
  for (;;) {
    const before = lastPid(kernel);
    const census = takeCensus(kernel, scope, { deadlineMs, detailsMs: limits.cgroupPathsMs });
    const others = census.alive.filter((found) => !excuse(found));
    const counted = others.filter((found) => !isGoneSince(kernel, scope, found));
    // The slice says only yes or no: with somebody excused in it, the census alone can tell about the others.
    const sliceQuiet = others.length < census.alive.length || !isPopulated(kernel, scope.slice);
    census.alive = counted;
    if (census.complete) last = census;
    if (counted.length > 0) return { quiet: false, last: census };
    // Somebody was there and could not be placed any more: that settles nothing, and proves nothing either.
    const sawNobody = isEmpty(census) && others.length === counted.length;
    if (proof.add(sawNobody && sliceQuiet, before, lastPid(kernel))) return { quiet: true, last };
    if (kernel.nowMs() >= deadlineMs) return { quiet: false, last };
    if (!proof.begun) await kernel.sleep(limits.laterPollMs);
  }
}

/** A short-lived child of the manager can be gone before its place is read; then it is nobody's any more. */
function isGoneSince(kernel: Kernel, scope: Scope, found: Found): boolean {
  return found.cgroup === undefined && !isStillAlive(kernel, scope, found);
}

/** What the kernel says about a survivor. */
export interface Survivor {
  found: Found;
  state: string;
  waitChannel: string;
  tracer: number;
}

/** State, wait channel and tracer of whoever is still there, for the report. */
export function describeSurvivors(kernel: Kernel, census: Census | undefined): Survivor[] {
  return [...(census?.alive ?? []), ...(census?.held ?? [])].map((found) => {
    const [task] = tasksOf(kernel, found);
    return {
      found,
      state: task?.state ?? found.status.state,
      waitChannel: task?.waitChannel ?? "",
      tracer: found.status.tracer,
    };
  });
}

interface Task {
  state: string;
  waitChannel: string;
}

/** The threads of a survivor, first the one that holds it: in D, then any that is not dead, then the leader. */
function tasksOf(kernel: Kernel, { pid, status }: Found): Task[] {
  const names = status.threads > 1 ? kernel.list(`/proc/${pid}/task`) : [];
  const tasks = (isErrno(names) ? [] : names.slice(0, limits.tasks)).map((name) => {
    const stat = kernel.readText(`/proc/${pid}/task/${name}/stat`);
    const state = isErrno(stat) ? "" : stat.charAt(stat.lastIndexOf(")") + 2);
    return { state, waitChannel: waitChannelOf(kernel, `/proc/${pid}/task/${name}`) };
  });
  const rank = ({ state }: Task) => (state === "D" ? 0 : /^[ZX]?$/.test(state) ? 2 : 1);
  const leader = { state: status.state, waitChannel: waitChannelOf(kernel, `/proc/${pid}`) };
  return [...tasks, leader].sort((a, b) => rank(a) - rank(b));
}

function waitChannelOf(kernel: Kernel, directory: string): string {
  const channel = kernel.readText(`${directory}/wchan`);
  return isErrno(channel) || channel === "" || channel === "0" ? "" : channel.trim();
}

/**
 * A survivor that waits for a FUSE daemon of the account waits for ever; `abort` lets it go (fuse connections belong to
 * whoever mounted them). Not where a container's process was excepted: its connections could have the same owner.
 */
function abortHungConnections(kernel: Kernel, scope: Scope, census: Census, kill: Kill): void {
  if (kill.abortedConnections.length > 0) return;
  if (census.bystanders.some(({ found }) => found.status.pidNamespaces > 1)) return;
  const waits = ({ waitChannel }: Task) => waitChannel === "request_wait_answer";
  if (!census.alive.some((found) => tasksOf(kernel, found).some(waits))) return;
  const directory = "/sys/fs/fuse/connections";
  const connections = kernel.list(directory);
  if (isErrno(connections)) return;
  for (const connection of connections) {
    if (!/^[0-9]+$/.test(connection)) continue;
    const stat = kernel.lstat(`${directory}/${connection}`);
    if (isErrno(stat) || !scope.identity.numbers.has(stat.uid)) continue;
    if (kernel.writeFile(`${directory}/${connection}/abort`, "1") === 0) kill.abortedConnections.push(connection);
  }
}
