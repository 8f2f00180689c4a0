// SPDX-License-Identifier: Apache-2.0
// Root's records of the sessions that `--run` started: written before a session starts, removed when it ended by itself
// and what it wrote was handed back. What is left and does not run is a session that did not end by itself.

import { pastedPath } from "../claim/paths.ts";
import type { Ground } from "../ground/ground.ts";
import { sessionDirectory } from "../ground/places.ts";
import { readRecord, type SessionRecord, writeRecord } from "../ground/records.ts";
import { isDead, readStatus, startTicksOf } from "../stop/census.ts";
import { EEXIST, ENOENT, type Errno, isErrno, type KernelView } from "../stop/kernel.ts";
import { decimal } from "../stop/proc-files.ts";
import { findSlice, isChildPopulated, type Slice } from "../stop/slice.ts";

const bootPath = "/proc/sys/kernel/random/boot_id";

/**
 * One file for each launcher that waits for its session: which process it is, and what `ai-tools-ended` leaves for it.
 * Of this boot, readable by all.
 */
export const waitingDirectory = "/run/ai-tools/ended";

/** A record and the file that it is in. */
export interface StoredSession extends SessionRecord {
  file: string;
}

/** The form of a session's unit: `ai-tools-<entrypoint>-<pid>.service`. */
export const unitForm = /^ai-tools-[a-z0-9-]+-([0-9]{1,10})\.service$/;

/** The name of the unit of a session whose launcher has this pid. */
export function unitName(entryPoint: string, pid: number): string {
  return `ai-tools-${entryPoint}-${pid}.service`;
}

/** Where the record of a unit stands while its session runs; an older one of the same name stands beside it. */
export function recordPath(unit: string): string {
  return `${sessionDirectory}/${unit}.json`;
}

/** Every record, the oldest first, and a sentence for each that cannot be read: unknown is not absent. */
export function readSessions(ground: KernelView): { sessions: StoredSession[]; problems: string[] } {
  const names = ground.list(sessionDirectory);
  if (names === ENOENT) return { sessions: [], problems: [] };
  if (isErrno(names)) return { sessions: [], problems: [`${sessionDirectory} cannot be read (errno ${names})`] };
  const sessions: StoredSession[] = [];
  const problems: string[] = [];
  for (const name of names.filter((each) => each.endsWith(".json"))) {
    const file = `${sessionDirectory}/${name}`;
    const record = readRecord(ground, file, isSessionRecord);
    if (typeof record === "string") problems.push(describeUnreadable(record, file));
    else if (record !== undefined) sessions.push({ ...record, file });
  }
  sessions.sort((a, b) => (a.since < b.since ? -1 : a.since > b.since ? 1 : 0));
  return { sessions, problems };
}

/** With what mends it: it could be the record of any session, which then has to be given back by hand. */
function describeUnreadable(why: string, file: string): string {
  return `${why} (as root: rm ${pastedPath(file)}; then ai-tools --reclaim each project that it may be of)`;
}

/** Those of one project, also where another directory has come to its place since. */
export function sessionsOf(sessions: readonly StoredSession[], project: string): StoredSession[] {
  return sessions.filter((session) => session.project === project);
}

/** The record of a unit's session: undefined where there is none, a sentence where it cannot be read. */
export function readSession(ground: KernelView, unit: string): StoredSession | undefined | string {
  const file = recordPath(unit);
  const record = readRecord(ground, file, isSessionRecord);
  return typeof record === "object" ? { ...record, file } : record;
}

/** Keeps a record under its unit's name; one that an earlier session of that name left is moved aside, not lost. */
export function writeSession(ground: Ground, record: SessionRecord): Errno {
  ground.makeDirectory(sessionDirectory, 0o755);
  const path = recordPath(record.unit);
  const moved = moveAside(ground, path);
  return moved === 0 ? writeRecord(ground, path, record) : moved;
}

function moveAside(ground: Ground, path: string): Errno {
  const stat = ground.statPath(path);
  if (isErrno(stat)) return stat === ENOENT ? 0 : stat;
  for (let number = 2; number < 1_000; number++) {
    const beside = path.replace(/\.json$/, `.${number}.json`);
    const taken = ground.statPath(beside);
    // Never a copy, which a full disk would leave torn. Only the launcher with this number writes to these names.
    if (taken === ENOENT) return ground.rename(path, beside);
    if (isErrno(taken)) return taken;
  }
  return EEXIST;
}

/** Writes how it ended into its own file. */
export function markEnded(ground: Ground, session: StoredSession, ended: SessionRecord["ended"]): Errno {
  const { file, ...record } = session;
  return writeRecord(ground, file, { ...record, ended });
}

/** Takes a record away: nothing of that session is left to do. */
export function removeSession(ground: Ground, session: StoredSession): Errno {
  return ground.remove(session.file);
}

/** The boot that this is, or undefined where nobody can tell. */
export function currentBoot(view: KernelView): string | undefined {
  const text = view.readText(bootPath);
  return isErrno(text) || text.trim() === "" ? undefined : text.trim();
}

/**
 * Whether a session runs: its unit's cgroup holds a living process, or its launcher is still at work on it. Only a
 * record of an earlier boot, and a cgroup that is empty or gone, say no; unknown is yes.
 * @param uid of the account
 */
export function isRunning(ground: KernelView, record: SessionRecord, uid: number): boolean {
  const boot = currentBoot(ground);
  if (boot !== undefined && boot !== record.boot) return false;
  if (isLauncherAtWork(ground, record.unit)) return true;
  return isUnitAlive(ground, record.unit, uid);
}

/** Whether a session runs, or ended so that its own handback is still to be decided upon. */
export function isAtWork(ground: KernelView, record: SessionRecord, uid: number): boolean {
  return record.ended === undefined && isRunning(ground, record, uid);
}

/**
 * Whether a session ended by itself and has left its handback to others of its project that are at work: the last of them
 * does it. When none is left, whatever still has a record did not get that far.
 * @param sessions all that there are
 */
export function isWaitingForOthers(
  ground: KernelView,
  session: StoredSession,
  sessions: readonly StoredSession[],
  uid: number,
): boolean {
  if (session.ended?.clean !== true) return false;
  return sessions.some((other) => isSameProject(other, session) && isAtWork(ground, other, uid));
}

/** By path and by what the path led to. */
export function isSameProject(one: SessionRecord, other: SessionRecord): boolean {
  return one.project === other.project && one.device === other.device && one.inode === other.inode;
}

/** Whether the unit's cgroup holds a living process; unknown is yes. */
export function isUnitAlive(ground: KernelView, unit: string, uid: number): boolean {
  const slice = sliceOf(ground, uid);
  return typeof slice === "string" || isChildPopulated(ground, slice, unit);
}

/** The account's slice without an open file of it; a sentence where it cannot be found. */
export function sliceOf(view: KernelView, uid: number): Slice | string {
  const slice = findSlice(view, uid);
  if (typeof slice === "string" || slice.events === undefined) return slice;
  view.close(slice.events);
  return { ...slice, events: undefined };
}

/** Where the launcher of a unit waits for word of it. */
export function waitingPath(unit: string): string {
  return `${waitingDirectory}/${unit}`;
}

/** This process, as `isLauncherAtWork` knows it again. */
export function ownMark(view: KernelView): string {
  return `launcher ${view.pid} ${startTicksOf(view, view.pid) ?? 0}\n`;
}

/** Whether the launcher that started this unit lives and is not done with it yet. */
export function isLauncherAtWork(view: KernelView, unit: string): boolean {
  const text = view.readText(waitingPath(unit));
  if (isErrno(text)) return false;
  const [kind, pidText, ticksText] = (text.split("\n")[0] ?? "").split(" ");
  const pid = decimal(pidText);
  if (kind !== "launcher" || pid === undefined) return false;
  const status = readStatus(view, pid);
  if (typeof status === "string") return status === "unreadable";
  return !isDead(status) && startTicksOf(view, pid) === decimal(ticksText);
}

function isSessionRecord(value: unknown): value is SessionRecord {
  const record = value as Partial<SessionRecord> | null | undefined;
  if (typeof record !== "object" || record === null) return false;
  const { unit, entryPoint, project, directory, since, boot, device, inode, stops, withGit, operator, ended } = record;
  const texts = [unit, entryPoint, project, directory, since, boot].every((text) => typeof text === "string");
  const numbers = [device, inode, stops, operator?.uid, operator?.gid].every(Number.isSafeInteger);
  if (!texts || !numbers || typeof withGit !== "boolean" || typeof operator?.name !== "string") return false;
  return ended === undefined || (typeof ended?.how === "string" && typeof ended.clean === "boolean");
}
