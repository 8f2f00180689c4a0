// SPDX-License-Identifier: Apache-2.0
// The launcher while its session lives: looks once more whether a stop or a hold came while it was started, forwards
// signals, and finds out how it ended from what is seen afterwards, not from systemd-run's word.

import { isBroughtIn } from "../claim/where.ts";
import type { Ground } from "../ground/ground.ts";
import { whyClosed } from "../hold/gate.ts";
import { stopsSinceBoot } from "../stop/announcement.ts";
import { readStatus } from "../stop/census.ts";
import { type Child, isErrno, SIGHUP, SIGKILL } from "../stop/kernel.ts";
import { decimal, parseStatus } from "../stop/proc-files.ts";
import { runProgram } from "../stop/programs.ts";
import { isChildPopulated } from "../stop/slice.ts";
import type { Launch } from "./launch.ts";
import { limits, programs } from "./places.ts";
import { releasePlace } from "./project-place.ts";
import { forwarded, releaseStreams, type StartedSession } from "./streams.ts";
import { readWord, type Word } from "./word.ts";

export type Ended =
  | { kind: "never started" }
  /** A stop or a hold came between the look at the gate and the start. */
  | { kind: "ended by us"; why: string; proved: boolean }
  /** What connects it to the caller has ended, and it has not. */
  | { kind: "goes on"; code: number }
  | { kind: "ended"; word: Word }
  | { kind: "unknown" };

const forwardedSignals: ReadonlySet<number> = new Set(forwarded);

/** What was seen of the session so far. */
interface Seen {
  hasBegun: boolean;
  /** It has its own view of the files, the project in it, and its input and output. */
  isInside: boolean;
  /** Its caller is gone, and it has been told. */
  isOrphan: boolean;
  /** The terminal or the caller is gone, or somebody has sent a hang-up. */
  hungUp: boolean;
}

/** Whom a session belongs to, as it was when the session was started. */
interface Caller {
  hasTerminal: boolean;
  /** The front door, as sudo executes the launcher in its own place; else sudo, which tells of the caller's end itself. */
  parent: number | undefined;
}

/**
 * Waits until a started session is over, and says how that came.
 * @param parent of the launcher, as it was when it began
 */
export async function watchSession(
  ground: Ground,
  launch: Launch,
  session: StartedSession,
  parent: number | undefined,
): Promise<Ended> {
  const { child } = session;
  const seen: Seen = { hasBegun: false, isInside: false, isOrphan: false, hungUp: false };
  const toForward: number[] = [];
  const fastUntilMs = ground.nowMs() + limits.fastPollsMs;
  const caller: Caller = { hasTerminal: session.hasPty && ground.isTerminal(0), parent };
  for (;;) {
    // In this order: once systemd-run has ended, no look at the unit can come too early.
    const hasEnded = child.exitCode() !== undefined;
    toForward.push(...ground.arrivedSignals().filter((signal) => forwardedSignals.has(signal)));
    if (!seen.hasBegun && (hasEnded || isAlive(ground, launch))) {
      seen.hasBegun = !hasEnded;
      const why = whyEnd(ground, launch);
      if (why !== undefined) return { kind: "ended by us", why, proved: await endUnit(ground, launch, child) };
    }
    if (hasEnded) break;
    if (seen.hasBegun && !seen.isInside && isInside(ground, launch)) {
      seen.isInside = true;
      if (isBroughtIn(launch.claim.path)) releasePlace(ground, launch.unit);
      releaseStreams(ground, session.streams);
    }
    if (seen.hasBegun) for (const signal of toForward.splice(0)) await forward(ground, launch.unit, signal, seen);
    if (seen.hasBegun && !seen.isOrphan && isGone(ground, caller)) {
      seen.isOrphan = true;
      if (!session.hasPty) toForward.push(SIGHUP);
      else {
        // systemd-run would go on serving the pty for nobody; without it the kernel hangs the session's terminal up.
        child.abandon();
        seen.hungUp = true;
        break;
      }
    }
    await ground.sleep(ground.nowMs() < fastUntilMs ? limits.fastPollMs : limits.slowPollMs);
  }
  return howItEnded(ground, launch, child.exitCode() ?? 0, seen);
}

/** Unknown is there: a session that works is not ended for an error of a look. */
function isGone(ground: Ground, { hasTerminal, parent }: Caller): boolean {
  if (hasTerminal && !ground.isTerminal(0)) return true;
  const now = parentOf(ground);
  return parent !== undefined && now !== undefined && now !== parent;
}

/** The process that started this one and still lives; another one as soon as it does not. */
export function parentOf(ground: Ground): number | undefined {
  const status = ground.readText("/proc/self/status");
  return isErrno(status) ? undefined : parseStatus(status)?.parent;
}

function isAlive(ground: Ground, { slice, unit }: Launch): boolean {
  return isChildPopulated(ground, slice, unit);
}

/** PID 1 becomes the account when it has opened input and output and made the session's view of the files, not before. */
function isInside(ground: Ground, { slice, unit, uid }: Launch): boolean {
  const pids = ground.readText(`${slice.directory}/${unit}/cgroup.procs`);
  return (isErrno(pids) ? [] : pids.split("\n")).some((line) => {
    const pid = decimal(line);
    const status = pid === undefined ? undefined : readStatus(ground, pid);
    // All four: to reach the account's keys PID 1 has its real one alone for a moment, long before.
    return typeof status === "object" && status.uids.every((each) => each === uid);
  });
}

/** Whether what held at the look at the gate holds no longer; unknown is no longer. */
function whyEnd(ground: Ground, { stops }: Launch): string | undefined {
  const counted = stopsSinceBoot(ground);
  if (isErrno(counted)) return `whether a stop ran meanwhile cannot be told (errno ${counted})`;
  if (counted.stops !== stops) return "a stop has begun while the session was being started";
  return whyClosed(ground);
}

/** Until the unit's cgroup is empty or gone and systemd-run has returned, so that nothing of it is still to be started. */
async function endUnit(ground: Ground, launch: Launch, child: Child): Promise<boolean> {
  const deadlineMs = ground.nowMs() + limits.endMs;
  const systemctl = (...words: string[]) =>
    runProgram(ground, [programs.systemctl, ...words, launch.unit], ground.nowMs() + limits.systemctlMs);
  for (;;) {
    ground.writeFile(`${launch.slice.directory}/${launch.unit}/cgroup.kill`, "1");
    await systemctl("kill", `--signal=${SIGKILL}`);
    // A start that is still queued in PID 1 is called off by it.
    await systemctl("stop", "--no-block");
    if (child.exitCode() !== undefined && !isAlive(ground, launch)) return true;
    if (ground.nowMs() >= deadlineMs) break;
    await ground.sleep(limits.slowPollMs);
  }
  child.abandon();
  return false;
}

async function forward(ground: Ground, unit: string, signal: number, seen: Seen): Promise<void> {
  if (signal === SIGHUP) seen.hungUp = true;
  const argv = [programs.systemctl, "kill", `--signal=${signal}`, unit];
  await runProgram(ground, argv, ground.nowMs() + limits.systemctlMs);
}

async function howItEnded(ground: Ground, launch: Launch, code: number, seen: Seen): Promise<Ended> {
  if (!(await isOver(ground, launch))) return { kind: "goes on", code: 128 + SIGHUP };
  // 128 and more: systemd-run was killed, which says nothing about the unit.
  const couldBeRefused = !seen.hasBegun && !seen.hungUp && code > 0 && code < 128;
  if (couldBeRefused && (await isUnknownToSystemd(ground, launch.unit))) return { kind: "never started" };
  const word = await awaitWord(ground, launch.unit);
  return word === undefined ? { kind: "unknown" } : { kind: "ended", word };
}

/** Whether the unit's last process goes within the time that a hang-up may take. */
async function isOver(ground: Ground, launch: Launch): Promise<boolean> {
  const deadlineMs = ground.nowMs() + limits.hangUpMs;
  while (isAlive(ground, launch)) {
    if (ground.nowMs() >= deadlineMs) return false;
    await ground.sleep(limits.fastPollMs);
  }
  return true;
}

/**
 * Whether PID 1 never had the unit. One that failed stays loaded until `ai-tools-ended` has left word and resets it, so
 * that "not found" without word, in this order, says that there was none; no answer says nothing.
 */
async function isUnknownToSystemd(ground: Ground, unit: string): Promise<boolean> {
  const argv = [programs.systemctl, "show", "--property=LoadState", unit];
  const ran = await runProgram(ground, argv, ground.nowMs() + limits.systemctlMs);
  return ran.kind === "ended" && ran.output.trim() === "LoadState=not-found" && readWord(ground, unit) === undefined;
}

/** Word of how it ended and, within its limit, of the handback; whoever interrupts does not wait for the latter. */
async function awaitWord(ground: Ground, unit: string): Promise<Word | undefined> {
  const begunMs = ground.nowMs();
  let isSaid = false;
  for (;;) {
    const word = readWord(ground, unit);
    if (word?.after !== undefined) return word;
    const waitedMs = ground.nowMs() - begunMs;
    if (waitedMs >= (word === undefined ? limits.wordMs : limits.handBackMs)) return word;
    const isInterrupted = ground.arrivedSignals().some((signal) => forwardedSignals.has(signal));
    if (word !== undefined && isInterrupted) return word;
    if (word !== undefined && !isSaid && waitedMs > limits.silentMs) {
      ground.print("err", "ai-tools: handing back what the session wrote ...\n");
      isSaid = true;
    }
    await ground.sleep(limits.fastPollMs);
  }
}
