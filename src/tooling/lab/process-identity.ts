// SPDX-License-Identifier: Apache-2.0
// Names a process of this machine so that its number cannot be mistaken for a later one: pid and start time.

import { readFileSync } from "node:fs";

export interface ProcessIdentity {
  pid: number;
  /** Start time in clock ticks since boot: field 22 of /proc/PID/stat, proc(5). */
  startTime: string;
}

/** The identity of the process that has this number now, undefined when there is none. */
export function identityOf(pid: number): ProcessIdentity | undefined {
  const stat = readProc(`/proc/${pid}/stat`);
  return stat === undefined ? undefined : { pid, startTime: statFields(stat).startTime };
}

/** Whether exactly this process still exists (a zombie counts as gone, unless another of its threads lives). */
export function isLiving(identity: ProcessIdentity): boolean {
  const stat = readProc(`/proc/${identity.pid}/stat`);
  if (stat === undefined) return false;
  const { state, startTime, threads } = statFields(stat);
  return startTime === identity.startTime && state !== "X" && (state !== "Z" || threads > 1);
}

/**
 * State, start time and number of threads from the text of /proc/PID/stat. The name in its second field may hold anything, also
 * parentheses and spaces: the other fields go on after the last parenthesis.
 */
export function statFields(stat: string): { state: string; startTime: string; threads: number } {
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [state, startTime] = [fields[0], fields[19]];
  if (state === undefined || startTime === undefined) throw new Error(`no /proc/PID/stat: ${stat}`);
  return { state, startTime, threads: Number(fields[17]) };
}

/** Sends a signal to exactly this process; false when it is gone. */
export function signalProcess(identity: ProcessIdentity, signal: NodeJS.Signals): boolean {
  if (!isLiving(identity)) return false;
  try {
    process.kill(identity.pid, signal);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ESRCH") return false;
    throw error;
  }
}

/** The text of a file below /proc, undefined when its process is gone. */
export function readProc(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ESRCH") return undefined;
    throw error;
  }
}
