// SPDX-License-Identifier: Apache-2.0
// The launch gate: whether a session may be started now. Closed while a stop runs and while a hold is set; a hold that
// cannot be read is one. A stop neither asks the gate nor waits for it.

import type { Ground } from "../ground/ground.ts";
import { holdPath } from "../ground/places.ts";
import { encodeUtf8, type Hold, readRecord } from "../ground/records.ts";
import { isAnotherStopRunning } from "../stop/announcement.ts";
import { ENOENT, isErrno, type KernelView } from "../stop/kernel.ts";
import { printable } from "../stop/printable.ts";

/** Most characters of a reason that a person sees; a longer one is refused when the hold is set. */
export const mostReason = 400;

/** One entry for each stop that runs (src/stop/announcement.ts). */
const stopEntries = "/run/ai-tools/stop";
const toLift = "to lift it: ai-tools --release";

/**
 * Why no session may be started now, as one printable sentence without its full stop, with who and why; undefined: the
 * gate is open. For root: whoever cannot see root's processes (hidepid) sees no stop either.
 */
export function whyClosed(ground: Ground): string | undefined {
  const stopRuns = isStopRunning(ground);
  if (stopRuns === undefined) return `whether a stop is running cannot be told: ${stopEntries} cannot be read`;
  if (stopRuns) return "a stop is running; try again when it is over";
  const hold = readHold(ground);
  if (hold === undefined) return undefined;
  if (typeof hold === "string")
    return `a hold is there that cannot be read, and counts (${printable(hold)}); ${toLift}`;
  return `${describeHold(hold)}; ${toLift}`;
}

/** Whether a stop runs; undefined: cannot be told. */
export function isStopRunning(ground: Ground): boolean | undefined {
  const entries = ground.list(stopEntries);
  if (isErrno(entries)) return entries === ENOENT ? false : undefined;
  return isAnotherStopRunning(ground);
}

/** The hold that is set; undefined where none is; a sentence where nobody can tell. */
export function readHold(view: KernelView): Hold | undefined | string {
  return readRecord(view, holdPath, isHold);
}

/** Who set a hold, when and why, printable. */
export function describeHold(hold: Hold): string {
  const reason = hold.reason === "" ? "no reason given" : printable(encodeUtf8(hold.reason), 4 * mostReason);
  return `new sessions are held since ${printable(hold.since)} by ${printable(hold.operator)}: ${reason}`;
}

function isHold(value: unknown): value is Hold {
  const hold = value as Partial<Hold> | null | undefined;
  return typeof hold?.operator === "string" && typeof hold.since === "string" && typeof hold.reason === "string";
}
