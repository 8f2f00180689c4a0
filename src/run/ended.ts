// SPDX-License-Identifier: Apache-2.0
// What happens when a session's unit has ended, whoever started it and whether or not that one still lives: PID 1 runs
// this as root, outside the account's slice. A session that ended by itself has its files handed back; one that was
// killed, or ended while a stop ran, keeps its record, and nothing is handed back.

import { shownPath } from "../claim/paths.ts";
import type { Ground, HandedBack } from "../ground/ground.ts";
import { isStopRunning } from "../hold/gate.ts";
import { stopsSinceBoot } from "../stop/announcement.ts";
import { findIdentity } from "../stop/identity.ts";
import { isErrno } from "../stop/kernel.ts";
import { printable } from "../stop/printable.ts";
import { decimal } from "../stop/proc-files.ts";
import { runProgram } from "../stop/programs.ts";
import { lockProject, unlockProject } from "./handback-lock.ts";
import { limits, programs } from "./places.ts";
import { releasePlace } from "./project-place.ts";
import {
  isAtWork,
  isLauncherAtWork,
  isSameProject,
  isUnitAlive,
  markEnded,
  readSession,
  readSessions,
  removeSession,
  type StoredSession,
  unitForm,
} from "./session-records.ts";
import { leaveWord, type Word } from "./word.ts";

/** Names of signals as systemd gives them, by number (signal(7)). */
const signalNames =
  "HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT STOP TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS".split(
    " ",
  );

/** Nobody knows: the code of a session about which systemd says nothing. */
const unknownCode = 125;

/** Does what a session's end asks for; 0 when all of it is done, 1 when something is left to do, 2 for wrong words. */
export async function afterSession(ground: Ground): Promise<number> {
  const isForPlace = ground.words[0] === "place";
  const [name = "", more] = isForPlace ? ground.words.slice(1) : ground.words;
  const unit = `${name}.service`;
  if (more !== undefined || !unitForm.test(unit) || !ground.isRoot()) {
    ground.print("err", "ai-tools-ended is started by systemd, as root, with the name of a session's unit\n");
    return 2;
  }
  if (isForPlace) {
    // A step of its own, in PID 1's mount namespace and with the right to unmount: the handback needs neither.
    releasePlace(ground, unit);
    return 0;
  }
  const identity = findIdentity(ground);
  const left = typeof identity === "string" ? identity : await whatIsLeft(ground, unit, identity.uid);
  const session = readSession(ground, unit);
  const word = judge(ground, typeof session === "object" ? session : undefined, left);
  leaveWord(ground, unit, word);
  const after = await conclude(ground, session, word, typeof identity === "string" ? undefined : identity.uid);
  const { said, waitsFor } = after;
  leaveWord(ground, unit, waitsFor === undefined ? { ...word, after: said } : { ...word, after: said, waitsFor });
  ground.print("err", `${unit} ${word.how}; ${describe(said)}\n`);
  // Only now: until there is word, the failed unit is what tells the launcher that there was a session at all.
  const reset = [programs.systemctl, "reset-failed", unit];
  await runProgram(ground, reset, ground.nowMs() + limits.systemctlMs);
  return after.isDone ? 0 : 1;
}

/** PID 1 has seen the unit's processes go; the kernel is asked all the same. */
async function whatIsLeft(ground: Ground, unit: string, uid: number): Promise<string | undefined> {
  const deadlineMs = ground.nowMs() + limits.emptyMs;
  while (isUnitAlive(ground, unit, uid)) {
    if (ground.nowMs() >= deadlineMs) return "processes are left in its cgroup";
    await ground.sleep(limits.slowPollMs);
  }
  return undefined;
}

/** How it ended: by PID 1's word, and by root's own record of stops, since an agent may end with 0 on a stop's SIGTERM. */
function judge(ground: Ground, session: StoredSession | undefined, left: string | undefined): Word {
  const ending = parseEnding(ground);
  if (left !== undefined) return { ...ending, clean: false, how: `${ending.how}, and ${left}` };
  const counted = stopsSinceBoot(ground);
  const stopped = isErrno(counted) || counted.stops !== session?.stops || isStopRunning(ground) !== false;
  if (session !== undefined && stopped && ending.clean)
    return { ...ending, clean: false, how: `${ending.how} while a stop ran` };
  return ending;
}

/** From what systemd puts into the environment of a unit that another one's end has started (systemd.exec(5)). */
function parseEnding(ground: Ground): Word {
  const result = ground.environment("MONITOR_SERVICE_RESULT") ?? "unknown";
  const kind = ground.environment("MONITOR_EXIT_CODE");
  const status = ground.environment("MONITOR_EXIT_STATUS");
  const code = decimal(status);
  if (kind === "exited" && code !== undefined) {
    // Ended by systemd for another reason (a time limit, memory), whatever its last process said.
    const isItsOwn = result === "success" || result === "exit-code";
    const how = isItsOwn ? `ended with ${code}` : `ended with ${code} (${printable(result, 40)})`;
    return { code, clean: isItsOwn, how };
  }
  if (kind === "killed" || kind === "dumped") {
    const signal = code ?? numberOf(status ?? "");
    if (signal !== undefined) return { code: 128 + signal, clean: false, how: `was killed by signal ${signal}` };
  }
  return { code: unknownCode, clean: false, how: `ended in an unknown way (${printable(result, 40)})` };
}

function numberOf(name: string): number | undefined {
  const index = signalNames.indexOf(name.replace(/^SIG/, ""));
  const realTime = decimal(/^RTMIN\+([0-9]+)$/.exec(name)?.[1]);
  // SIGRTMIN of glibc, which systemd is built with.
  if (realTime !== undefined) return 34 + realTime;
  return index < 0 ? undefined : index + 1;
}

/** What was handed back, or why nothing was, and whether nothing is left to do. */
interface After {
  said: HandedBack | string;
  isDone: boolean;
  waitsFor?: string;
}

async function conclude(
  ground: Ground,
  session: StoredSession | undefined | string,
  word: Word,
  uid: number | undefined,
): Promise<After> {
  if (session === undefined) return { said: "there is no record of it", isDone: false };
  if (typeof session === "string") return { said: session, isDone: false };
  const at = new Date(ground.wallClockMs()).toISOString();
  // Written first: whoever is killed from here on leaves a session whose handback is still to be done.
  const errno = markEnded(ground, session, { at, how: word.how, clean: word.clean });
  if (!word.clean) return { said: "it did not end by itself", isDone: errno === 0 && uid !== undefined };
  if (uid === undefined) return { said: "whose files these are cannot be told", isDone: false };
  // Behind the mark, so that of two which end at once the later one sees the other's.
  const seen = await lookAround(ground, session, uid, limits.betweenMs);
  if (seen.other !== undefined) return leaveTo(seen.other, errno === 0);
  const lock = await lockProject(ground, session, limits.handBackMs);
  const { other, earlier } = await lookAround(ground, session, uid, 0);
  const after = other === undefined ? handBackAll(ground, session, earlier, uid) : leaveTo(other, errno === 0);
  unlockProject(ground, lock);
  return after;
}

/** The last session of the project that ends by itself hands back what this one wrote. */
function leaveTo({ unit }: StoredSession, isDone: boolean): After {
  return { said: `${unit} still runs in its project: the last one does it`, isDone, waitsFor: unit };
}

/** The files of the account in the project, for all sessions whose records are over: only those are removed. */
function handBackAll(ground: Ground, session: StoredSession, earlier: StoredSession[], uid: number): After {
  const { project: path, device, inode, operator } = session;
  const waiting = earlier.filter(({ ended }) => ended?.clean === true);
  // Their operators were told of the unclean ones before them.
  const told = [session, ...waiting].filter((each) => each.withGit);
  const withGit = told.length > 0;
  const handedBack = ground.handBack({ path, device, inode, from: uid, uid: operator.uid, gid: operator.gid, withGit });
  if (isErrno(handedBack))
    return { said: `${shownPath(path)} is not there or is another directory (errno ${handedBack})`, isDone: false };
  if (handedBack.failed > 0) return { said: handedBack, isDone: false };
  const isToldOf = (each: StoredSession) => told.some(({ since }) => each.since < since);
  forget(ground, [session, ...waiting, ...earlier.filter(isToldOf)]);
  return { said: handedBack, isDone: true };
}

/**
 * The other sessions of the project: one that is at work, or else those that are over by now, before anything is handed
 * back; whoever ends during that left files behind it. One that is only being started or ended is waited for a while.
 */
async function lookAround(
  ground: Ground,
  session: StoredSession,
  uid: number,
  limitMs: number,
): Promise<{ other: StoredSession | undefined; earlier: StoredSession[] }> {
  const deadlineMs = ground.nowMs() + limitMs;
  for (;;) {
    const all = readSessions(ground).sessions.filter((each) => isSameProject(each, session));
    // What another record of this very unit says of a living process is of this one's launcher.
    const atWork = all.filter((each) => each.unit !== session.unit && isAtWork(ground, each, uid));
    const earlier = all.filter((each) => each.file !== session.file && !atWork.includes(each));
    const between = atWork.filter(({ unit }) => isLauncherAtWork(ground, unit) && !isUnitAlive(ground, unit, uid));
    if (between.length === 0 || between.length < atWork.length || ground.nowMs() >= deadlineMs)
      return { other: atWork[0], earlier };
    await ground.sleep(limits.slowPollMs);
  }
}

/** Nothing of them is left to do. A record that another session has written since under the same name stays. */
function forget(ground: Ground, over: readonly StoredSession[]): void {
  const { sessions } = readSessions(ground);
  for (const { file, since } of over) {
    const same = sessions.find((each) => each.file === file && each.since === since);
    if (same !== undefined) removeSession(ground, same);
  }
}

function describe(said: HandedBack | string): string {
  if (typeof said === "string") return `nothing was handed back: ${said}`;
  const { changed, failed, gitLeft, mounts, failures } = said;
  const left = gitLeft > 0 ? `, ${gitLeft} .git left as they are` : "";
  const mounted = mounts > 0 ? `, ${mounts} mounts not gone into` : "";
  const wrong = failed > 0 ? `, ${failed} could not be: ${failures.join("; ")}` : "";
  return `${changed} files were handed back${left}${mounted}${wrong}`;
}
