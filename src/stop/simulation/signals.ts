// SPDX-License-Identifier: Apache-2.0
// What signals do to processes of a simulated world, by kill(2) and by a write to `cgroup.kill`: who dies at once, who
// later, and whom a write passes by.

import { EINVAL, ENOENT, type Errno, ESRCH, SIGCONT, SIGKILL, SIGTERM } from "../kernel.ts";
import { type Cgroup, isFrozen, membersBelow } from "./cgroups.ts";
import { isFree, type Process } from "./processes.ts";
import type { World } from "./world.ts";

/** What a process needs from SIGKILL to being a zombie, in microseconds. */
const exitUs = 45;
/** What a TERM handler needs before it runs. */
const handlerUs = 120;

/** kill(2) by root: 0 also for a zombie, ESRCH only where no process has the number. A thread's number means its process. */
export function kill(world: World, pid: number, signal: number): Errno {
  return signalTo(world, world.lookUp(pid), signal);
}

/** pidfd_send_signal(2) by root: like kill(2), but to this process, whoever has its number. */
export function signalTo(world: World, process: Process | undefined, signal: number): Errno {
  if (signal < 0 || signal > 64 || !Number.isInteger(signal)) return EINVAL;
  if (process === undefined || !isThere(process)) return ESRCH;
  if (signal !== 0) deliver(world, process, signal);
  return 0;
}

/** Not reaped yet: it has its number, and takes signals. */
export function isThere(process: Process): boolean {
  return process.phase === "alive" || process.phase === "zombie";
}

/**
 * `1` written to `cgroup.kill`: SIGKILL to every thread group leader of the cgroup and below. A leader that is dead
 * already takes it for nothing, and its living threads never hear of it.
 */
export function killCgroup(world: World, cgroup: Cgroup): number {
  let hit = 0;
  for (const process of membersBelow(cgroup)) {
    if (process.zombieLeader) continue;
    if (world.host.forksRaceTheKill && isFree(process) && world.random.next() < 0.2 && process.comm === "forker") {
      world.fork(process);
    }
    deliver(world, process, SIGKILL);
    hit++;
  }
  return hit;
}

/** Thaws or freezes a cgroup; what waited for the thaw goes on. */
export function setFreeze(world: World, cgroup: Cgroup, freeze: boolean): void {
  cgroup.freeze = freeze;
  if (!freeze) for (const process of membersBelow(cgroup)) resume(world, process);
}

/** An uninterruptible process becomes interruptible again; a pending kill takes effect. */
export function release(world: World, process: Process): void {
  process.stuck = false;
  if (process.letter === "D") process.letter = "S";
  if (process.killPending) die(world, process);
  else resume(world, process);
}

function deliver(world: World, process: Process, signal: number): void {
  if (process.phase !== "alive" || process === world.init) return;
  if (signal === SIGKILL) die(world, process);
  else if (signal === SIGTERM) terminate(world, process);
  else if (signal === SIGCONT && process.letter === "T") {
    process.letter = "S";
    resume(world, process);
  }
}

function terminate(world: World, process: Process): void {
  process.termsSeen++;
  if (process.term === "ignore" || process.dying) return;
  const waits = process.stuck || process.letter === "T" || (process.term === "handler" && isFrozen(process.cgroup));
  if (waits) process.termPending = true;
  else if (process.term === "default") die(world, process);
  else handle(world, process);
}

/** A pending TERM is taken up as soon as nothing holds the process back. */
function resume(world: World, process: Process): void {
  if (!process.termPending || process.phase !== "alive") return;
  process.termPending = false;
  terminate(world, process);
  process.termsSeen--;
}

function handle(world: World, process: Process): void {
  world.timeline.after(world.random.around(handlerUs), () => {
    if (!isFree(process)) return;
    if (isFrozen(process.cgroup)) process.termPending = true;
    else process.onTerm?.();
  });
}

function die(world: World, process: Process): void {
  process.killPending = true;
  if (process.stuck || (process.dying && process.letter === "t")) return;
  if (process.dying) return;
  process.dying = true;
  world.timeline.after(world.random.around(exitUs), () => {
    if (process.exitTracer !== undefined && process.exitTracer.phase === "alive") {
      process.letter = "t";
      process.wchan = "ptrace_stop";
    } else world.die(process);
  });
}

/** Answer of a signal to a process of which only the record is at hand, for actors of the world. */
export function killProcess(world: World, process: Process): Errno {
  return process.phase === "alive" ? kill(world, process.pid, SIGKILL) : ENOENT;
}
