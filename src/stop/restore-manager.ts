// SPDX-License-Identifier: Apache-2.0
// After the verdict: clears the account's runtime directory, where a session could plant what would run with the next
// user manager, and brings the manager back where it ran before and can read nothing that the account wrote. Reported on
// its own; it never changes the verdict.

import {
  beginRestoring,
  endRestoring,
  isAnotherStopRunning,
  isRestoreWanted,
  removeRestoreNote,
} from "./announcement.ts";
import type { Scope } from "./census.ts";
import { EAGAIN, ENOENT, type Host, isErrno } from "./kernel.ts";
import { limits } from "./limits.ts";
import { printable } from "./printable.ts";
import { parseUptimeTicks } from "./proc-files.ts";
import { type Ran, runProgram, systemctlPath } from "./programs.ts";
import { isChildPopulated, isFrozen } from "./slice.ts";

export interface ManagerReturn {
  outcome: "not-running" | "restored" | "not-restored" | "not-wanted" | "left-to-another-stop";
  reason: string | undefined;
  /** The command that mends it. */
  mend: string | undefined;
  /** Clock ticks since boot after which the manager was started; undefined when it was not. */
  startedAfterTicks: number | undefined;
}

/** Whether the account's own manager runs now; unknown counts as running. */
export function isManagerRunning(host: Host, scope: Scope): boolean {
  return isChildPopulated(host, scope.slice, `user@${scope.identity.uid}.service`);
}

/**
 * Clears and restores. To be called only when everything is proved to be ended, and after this stop's own entry is gone.
 * One stop at a time does it. `withoutNote`: the manager ran and no note of it could be left. `others`: another stop was
 * at work meanwhile. Only then may a manager that runs already be left alone: whoever else started it (a login of the
 * account's, PID 1 for a helper that was killed) may have found what a session planted, so clearing ends it.
 */
export async function clearAndRestore(
  host: Host,
  scope: Scope,
  { withoutNote = false, others = false } = {},
): Promise<ManagerReturn> {
  if (isAnotherStopRunning(host)) return answer("left-to-another-stop", "another stop is at work and does it");
  if (!beginRestoring(host)) return answer("left-to-another-stop", "another stop is doing it");
  const isLeft = others && isManagerRunning(host, scope);
  const result = isLeft
    ? answer("left-to-another-stop", "the user manager runs again already")
    : await clearAndRestoreAlone(host, scope, withoutNote);
  // What was refused is tried again by the next stop, and one that has begun meanwhile will end the manager once more.
  const isAnswered = result.outcome === "restored" || result.outcome === "not-wanted";
  if (isAnswered && !isAnotherStopRunning(host)) removeRestoreNote(host);
  endRestoring(host);
  return result;
}

async function clearAndRestoreAlone(host: Host, scope: Scope, withoutNote: boolean): Promise<ManagerReturn> {
  const uid = scope.identity.uid;
  const deadlineMs = host.nowMs() + limits.restoreMs;
  const mend = `systemctl reset-failed user@${uid}.service; systemctl start user@${uid}.service`;
  if (isFrozen(host, scope.slice)) {
    // A start in it would hang, and PID 1 with it (systemd 257 waits for its child there).
    const thaw = `echo 0 >${scope.slice.directory}/cgroup.freeze`;
    const frozen = answer("not-restored", "the slice is frozen: whatever is started in it hangs");
    return { ...frozen, mend: `${thaw} && ${clearing(uid)} && ${mend}` };
  }
  const other = isManagerRunning(host, scope)
    ? "one that was started meanwhile was ended with the clearing"
    : undefined;
  const left = await clearRuntimeDirectory(host, uid, deadlineMs);
  if (!isRestoreWanted(host) && !withoutNote) {
    return left === undefined ? answer("not-running", other) : { ...answer("not-running", left), mend: clearing(uid) };
  }
  if (isErrno(host.lstat("/var/lib/systemd/linger/ai-tools"))) {
    return answer("not-wanted", "lingering is off for the account: the manager belonged to a login that is over");
  }
  if (left !== undefined) return { ...answer("not-restored", left), mend: `${clearing(uid)} && ${mend}` };
  const foreign = whatAccountCouldHavePlanted(host, scope.identity.home);
  if (foreign !== undefined) return { ...answer("not-restored", foreign), mend };
  return startManager(host, uid, deadlineMs, mend);
}

function answer(outcome: ManagerReturn["outcome"], reason: string | undefined): ManagerReturn {
  return { outcome, reason, mend: undefined, startedAfterTicks: undefined };
}

function clearing(uid: number): string {
  const unit = `user-runtime-dir@${uid}.service`;
  return `systemctl reset-failed ${unit}; systemctl start ${unit} && systemctl stop ${unit}`;
}

/**
 * Removes /run/user/UID by way of its own unit: after a kill at the slice that is `failed` with the mount still there
 * (systemd 252) or `active` (257); reset, start, stop works on both. undefined once `lstat` says ENOENT.
 */
async function clearRuntimeDirectory(host: Host, uid: number, deadlineMs: number): Promise<string | undefined> {
  const directory = `/run/user/${uid}`;
  const unit = `user-runtime-dir@${uid}.service`;
  let problem = "";
  while (host.lstat(directory) !== ENOENT) {
    if (host.nowMs() >= deadlineMs)
      return `${directory} could not be removed${problem}: what is planted there would run`;
    for (const verb of ["reset-failed", "start", "stop"]) {
      const ran = await runProgram(host, [systemctlPath, verb, unit], deadlineMs);
      if (verb !== "reset-failed" && !succeeded(ran)) problem = ` (${verb}: ${inWords(ran)})`;
      if (isDefinite(ran)) return `${directory} could not be removed (${verb}: ${inWords(ran)})`;
    }
    if (host.lstat(directory) !== ENOENT) await host.sleep(limits.restoreRetryMs);
  }
  return undefined;
}

/** A manager reads its configuration from the passwd home: that, and all in it but the sessions' own `home`, must be root's. */
function whatAccountCouldHavePlanted(host: Host, home: string): string | undefined {
  const pending = [home];
  for (let looked = 0; pending.length > 0; looked++) {
    const path = pending.pop() as string;
    if (looked >= limits.homeEntries) return `the account's home ${printable(home)} holds too much to check`;
    const stat = host.lstat(path);
    if (stat === ENOENT && path !== home) continue;
    if (isErrno(stat)) return `the account's home ${printable(home)} cannot be checked (errno ${stat})`;
    // A link may lead to where a session writes, whoever made it.
    const trusted = stat.uid === 0 && stat.kind !== "link" && (stat.mode & 0o022) === 0;
    if (!trusted) return `${printable(path)} is not root's alone: the manager could read what a session wrote`;
    if (stat.kind !== "directory") continue;
    const names = host.list(path);
    if (isErrno(names)) return `${printable(path)} cannot be listed (errno ${names})`;
    for (const name of names) if (path !== home || name !== "home") pending.push(`${path}/${name}`);
  }
  return undefined;
}

/** Starts the manager, again and again within the limit (pids of a big kill are not free at once), until a definite refusal. */
async function startManager(host: Host, uid: number, deadlineMs: number, mend: string): Promise<ManagerReturn> {
  const unit = `user@${uid}.service`;
  const uptime = host.readText("/proc/uptime");
  const startedAfterTicks = isErrno(uptime) ? undefined : parseUptimeTicks(uptime);
  if (startedAfterTicks === undefined) {
    // Whatever came with it could not be told from what a session left.
    return { ...answer("not-restored", "the host's uptime cannot be read"), mend };
  }
  let reason = "";
  for (;;) {
    await runProgram(host, [systemctlPath, "reset-failed", unit, `user-runtime-dir@${uid}.service`], deadlineMs);
    const ran = await runProgram(host, [systemctlPath, "start", unit], deadlineMs);
    if (succeeded(ran)) return { outcome: "restored", reason: undefined, mend: undefined, startedAfterTicks };
    reason = inWords(ran);
    const refused = ran.kind === "ended" && /\bmasked\b|not found|not loaded/.test(ran.output);
    if (refused || isDefinite(ran) || host.nowMs() + limits.restoreRetryMs >= deadlineMs) break;
    await host.sleep(limits.restoreRetryMs);
  }
  const queued = "; a start may still be queued in PID 1";
  return { outcome: "not-restored", reason: `${reason}${queued}`, mend, startedAfterTicks };
}

function succeeded(ran: Ran): boolean {
  return ran.kind === "ended" && ran.code === 0;
}

/** Trying again would change nothing; a lack of pids (EAGAIN) passes. */
function isDefinite(ran: Ran): boolean {
  return ran.kind === "hung" || (ran.kind === "not started" && ran.errno !== EAGAIN);
}

function inWords(ran: Ran): string {
  if (ran.kind === "hung") return "systemctl gave no answer in time";
  if (ran.kind === "not started") return `systemctl did not start (errno ${ran.errno})`;
  return printable(`exit code ${ran.code}: ${ran.output.trim().split("\n")[0] ?? ""}`);
}
