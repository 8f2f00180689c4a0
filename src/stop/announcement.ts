// SPDX-License-Identifier: Apache-2.0
// Says to others that a stop runs or has run: an entry per running stop, a counter of stops, and the last verdict.
// Everything is below /run/ai-tools, which is root's. Nobody waits for any of it, and none of it can stop a stop.

import { isDead, readStatus, startTicksOf } from "./census.ts";
import { EEXIST, ENOENT, type Errno, type Host, isErrno, type KernelView } from "./kernel.ts";
import { limits } from "./limits.ts";
import { decimal } from "./proc-files.ts";
import { chmodPath, runProgram } from "./programs.ts";

const runDirectory = "/run/ai-tools";
const stopDirectory = `${runDirectory}/stop`;
const restoreNote = `${stopDirectory}/restore-wanted`;
const restoringPath = `${stopDirectory}/restoring`;
/** Its size is the number of stops since boot, so that no raise is lost between two that write at once. */
export const counterPath = `${stopDirectory}/count`;
export const lastStopPath = `${runDirectory}/last-stop.json`;

/** This stop, as others see it, and whether it was alone when it began. */
export interface Announcement {
  path: string;
  alone: boolean;
  /** The counter after this stop was added; undefined when it cannot be read. */
  raised: number | undefined;
  /** Why the counter was not raised, 0 when it was: a session that is just being started then knows nothing of this stop. */
  refused: Errno;
}

/** Announces this stop. Entries of helpers that were killed are cleared away. */
export function announceStop(host: Host): Announcement {
  host.makeDirectory(runDirectory, 0o755);
  host.makeDirectory(stopDirectory, 0o755);
  for (const entry of entries(host)) if (!entry.lives) host.remove(`${stopDirectory}/${entry.name}`);
  const alone = !isAnotherStopRunning(host);
  const path = `${stopDirectory}/${ownName(host)}`;
  host.createFile(path, moment(host), 0o644);
  const refused = host.appendFile(counterPath, ".", 0o644);
  return { path, alone, raised: countStops(host), refused };
}

function ownName(host: Host): string {
  return `${host.pid}-${startTicksOf(host, host.pid) ?? 0}`;
}

/** Monotonic, and the same clock for every process of a boot. Not the start of the process: an exec keeps that. */
function moment(host: Host): string {
  return String(Math.floor(host.nowMs()));
}

function countStops(host: Host): number | undefined {
  const count = stopsSinceBoot(host);
  return isErrno(count) ? undefined : count.stops;
}

/** How many stops have begun since the host booted, or why that cannot be told. */
export function stopsSinceBoot(host: KernelView): { stops: number } | Errno {
  const stat = host.lstat(counterPath);
  if (stat === ENOENT) return { stops: 0 };
  return isErrno(stat) ? stat : { stops: stat.size };
}

/** Whether another stop was at work at any moment of this one: root's own record of stops says so. */
export function wasAnotherStopAtWork(host: Host, announcement: Announcement): boolean {
  const now = countStops(host);
  const more = now !== undefined && announcement.raised !== undefined && now > announcement.raised;
  return !announcement.alone || more;
}

/** Takes the entry back; from then on this stop counts as over. */
export function withdrawStop(host: Host, entry: string): void {
  host.remove(entry);
}

/** Whether another stop runs. */
export function isAnotherStopRunning(host: Host): boolean {
  return entries(host).some((entry) => entry.lives && entry.pid !== host.pid);
}

/** The entries of stops. One counts only while the process that made it lives; where that cannot be told, it does. */
function entries(host: Host): { name: string; pid: number; lives: boolean }[] {
  const names = host.list(stopDirectory);
  if (isErrno(names)) return [];
  return names.flatMap((name) => {
    const helper = parseHelper(name);
    if (helper === undefined) return [];
    const begun = host.readText(`${stopDirectory}/${name}`);
    const lives = !isTooOld(host, isErrno(begun) ? "" : begun) && isHelperAlive(host, helper);
    return [{ name, pid: helper.pid, lives }];
  });
}

/** Which process a helper is, over its whole life: as `ownName` writes it. */
interface Helper {
  pid: number;
  startTicks: number;
}

function parseHelper(text: string): Helper | undefined {
  const [pid, startTicks, more] = text.split("-").map(decimal);
  return pid === undefined || startTicks === undefined || more !== undefined ? undefined : { pid, startTicks };
}

/** A helper that stands still (stopped, frozen, in D) would keep the manager away for ever. Of unknown age is young. */
function isTooOld(host: Host, begun: string): boolean {
  const begunMs = decimal(begun.trim());
  return begunMs !== undefined && host.nowMs() - begunMs > limits.stopAtMostMs;
}

function isHelperAlive(host: Host, { pid, startTicks }: Helper): boolean {
  const status = readStatus(host, pid);
  if (typeof status === "string") return status === "unreadable";
  const start = startTicksOf(host, pid);
  return !isDead(status) && (start === undefined || start === startTicks);
}

/** Leaves the note that the user manager ran and should come back, where it did; whether a note is there now. */
export function wantRestore(host: Host, managerRan: boolean): boolean {
  if (!managerRan) return false;
  const errno = host.createFile(restoreNote, "", 0o644);
  return errno === 0 || errno === EEXIST;
}

/** Whether a note is there. */
export function isRestoreWanted(host: Host): boolean {
  return !isErrno(host.readText(restoreNote));
}

/** The note is answered. Not before: a helper that is killed while it restores leaves it to the next stop. */
export function removeRestoreNote(host: Host): void {
  host.remove(restoreNote);
}

/** Makes this stop the one that clears and restores; false while another one that lives is at it. */
export function beginRestoring(host: Host): boolean {
  for (let attempt = 0; attempt < 2; attempt++) {
    const errno = host.createFile(restoringPath, `${ownName(host)} ${moment(host)}`, 0o644);
    if (errno !== EEXIST) return true;
    const text = host.readText(restoringPath);
    const [owner = "", begun = ""] = isErrno(text) ? [] : text.trim().split(" ");
    const helper = parseHelper(owner);
    if (helper !== undefined && !isTooOld(host, begun) && isHelperAlive(host, helper)) return false;
    host.remove(restoringPath);
  }
  return true;
}

export function endRestoring(host: Host): void {
  host.remove(restoringPath);
}

/** What programs learn that only need to know that a stop happened. */
export interface LastStop {
  run: string;
  time: string;
  caller: string;
  verdict: string;
  exitCode: number;
}

/** Replaces the record of the last stop. A caller's umask may have made it root's alone: then it is opened to readers. */
export async function writeLastStop(host: Host, last: LastStop): Promise<Errno> {
  const errno = host.replaceFile(lastStopPath, `${JSON.stringify(last)}\n`, 0o644);
  const stat = host.lstat(lastStopPath);
  if (errno !== 0 || isErrno(stat) || (stat.mode & 0o444) === 0o444) return errno;
  await runProgram(host, [chmodPath, "0644", lastStopPath], host.nowMs() + limits.openRecordMs);
  return 0;
}
