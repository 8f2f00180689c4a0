// SPDX-License-Identifier: Apache-2.0
// Who changes claims now. Whoever looks at all claims and puts one of them on record is alone for just that; the long work
// in a project is under the lock of that project. Nobody who holds either of them waits for the person who asked.

import type { Ground } from "../ground/ground.ts";
import { leaveCallersCgroup } from "../ground/own-cgroup.ts";
import { findCaller } from "../stop/caller.ts";
import { readStatus, startTicksOf } from "../stop/census.ts";
import { EAGAIN, type Handle, isErrno, type KernelView } from "../stop/kernel.ts";
import { parseCgroupPath } from "../stop/proc-files.ts";
import { claimLockPath, lockDirectory } from "./claims.ts";
import { shownPath } from "./paths.ts";
import { holdBack, refuse, sayHeldBack } from "./request.ts";

const allClaimsLock = "/run/ai-tools/claims.lock";
/** What is done under it is a matter of milliseconds. */
const mostWaitMs = 3_000;
const pollMs = 20;

/**
 * Work on one project of an operator's, with nobody else at work on its claim. What the work says is printed when the
 * lock is free again. Nobody waits for another one's work; who is at it is named.
 */
export async function aloneWithProject(
  ground: Ground,
  project: { path: string; operatorUid: number },
  work: () => Promise<number> | number,
): Promise<number> {
  // What cannot be left or made shows in the locks.
  leaveCallersCgroup(ground);
  ground.makeDirectory("/run/ai-tools", 0o755);
  ground.makeDirectory(lockDirectory, 0o755);
  const file = claimLockPath(project.operatorUid, project.path);
  const what = `the claim of ${shownPath(project.path)} is being made or ended`;
  const lock = await aloneWithClaims(ground, () => take(ground, file, what));
  if (typeof lock === "string") return refuse(ground, lock);
  holdBack(ground);
  try {
    return await work();
  } finally {
    await give(ground, file, lock);
    sayHeldBack(ground);
  }
}

/**
 * A step that looks at all claims, or puts a lock's file where it was not, with nobody else at such a step; a sentence
 * where somebody else does not come to its end. The step waits for nothing: not for programs, and not for the caller.
 */
export async function aloneWithClaims<T>(ground: Ground, step: () => T): Promise<T | string> {
  const deadlineMs = ground.nowMs() + mostWaitMs;
  for (;;) {
    const lock = tryLock(ground, allClaimsLock);
    if (typeof lock === "string") return lock;
    if (lock !== undefined) {
      try {
        return step();
      } finally {
        ground.close(lock);
      }
    }
    if (ground.nowMs() >= deadlineMs)
      return describeHolder(ground, allClaimsLock, "another claim is being put on record");
    await ground.sleep(pollMs);
  }
}

function take(ground: Ground, file: string, what: string): Handle | string {
  return tryLock(ground, file) ?? describeHolder(ground, file, what);
}

/** Removed by whoever has it, and only where nobody can have opened it meanwhile: a file stays where nobody can tell. */
async function give(ground: Ground, file: string, lock: Handle): Promise<void> {
  const step = () => {
    ground.remove(file);
    ground.close(lock);
    return true;
  };
  if (typeof (await aloneWithClaims(ground, step)) === "string") ground.close(lock);
}

/** The lock with its holder's name in it; undefined: somebody else has it. Nobody holds one without a name. */
function tryLock(ground: Ground, file: string): Handle | undefined | string {
  const lock = ground.lock(file);
  if (lock === EAGAIN) return undefined;
  if (isErrno(lock)) return `${file} cannot be locked (errno ${lock})`;
  const since = new Date(ground.wallClockMs()).toISOString();
  const ticks = startTicksOf(ground, ground.pid);
  // Only the first line counts: a longer one of somebody before may be left behind it.
  const errno = ground.write(lock, `${ground.pid} ${ticks ?? "?"} ${since} ${findCaller(ground).name}\n`);
  if (errno === 0) return lock;
  ground.close(lock);
  return `${file} cannot be written (errno ${errno})`;
}

/** Who has a lock, since when, and what root can do about it (printable, no full stop). */
function describeHolder(ground: Ground, file: string, what: string): string {
  const text = ground.readText(file);
  const [, digits, ticks, since, name] = /^([0-9]{1,10}) (\S+) (\S+) ([^\n]+)\n/.exec(isErrno(text) ? "" : text) ?? [];
  const pid = Number(digits);
  // What an ended one left is about nobody.
  if (digits === undefined || String(startTicksOf(ground, pid) ?? "?") !== ticks) {
    return `${what} just now, by somebody who cannot be told: try again after that`;
  }
  const how = whyStandsStill(ground, pid);
  const advice =
    how === undefined ? "try again after that. If it stands still" : `it is ${how} and does not go on. To end it`;
  return `${what}, by ${name} since ${since} (process ${pid}): ${advice}, as root: kill -KILL ${pid}`;
}

function whyStandsStill(view: KernelView, pid: number): string | undefined {
  const status = readStatus(view, pid);
  if (typeof status === "object" && ["T", "t"].includes(status.state)) return "stopped";
  const cgroup = view.readText(`/proc/${pid}/cgroup`);
  const path = isErrno(cgroup) ? undefined : parseCgroupPath(cgroup);
  const events = path === undefined ? "" : view.readText(`/sys/fs/cgroup${path}/cgroup.events`);
  return !isErrno(events) && /^frozen 1$/m.test(events) ? "frozen" : undefined;
}
