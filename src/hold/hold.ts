// SPDX-License-Identifier: Apache-2.0
// Sets and lifts the hold: while it is set no new session is started. It ends none that runs, and it outlives a restart
// of the host. Any operator may set it, and any operator may lift what another one has set.

import type { Ground } from "../ground/ground.ts";
import { leaveCallersCgroup } from "../ground/own-cgroup.ts";
import { holdPath } from "../ground/places.ts";
import { type Hold, writeRecord } from "../ground/records.ts";
import { findCaller } from "../stop/caller.ts";
import { EAGAIN, ENOENT, type Handle, isErrno } from "../stop/kernel.ts";
import { printable } from "../stop/printable.ts";
import { describeHold, mostReason, readHold } from "./gate.ts";

const lockPath = "/run/ai-tools/hold.lock";
/** What is done under it is a matter of milliseconds. */
const mostWaitMs = 2_000;
const pollMs = 20;

/** Exit codes of `--hold` and `--release`. */
export const exitCodes = { done: 0, failed: 1, usage: 2, refused: 3 } as const;

const usage = `Usage: ai-tools --hold [REASON]    refuse new sessions until it is lifted
       ai-tools --release          lift it
`;

/** `hold [REASON]` or `release`, by root or an operator; says what it did and returns the exit code. */
export async function holdOrRelease(ground: Ground): Promise<number> {
  const [word, reason = "", ...more] = ground.words;
  const asks = word === "hold" ? more.length === 0 : word === "release" && ground.words.length === 1;
  if (!asks) return complain(ground, exitCodes.usage, usage);
  if (!ground.areWordsWhole()) return complain(ground, exitCodes.usage, "the reason is not UTF-8\n");
  if (!ground.isRoot())
    return complain(ground, exitCodes.refused, "only root can do this. As an operator: ai-tools --hold\n");
  if (reason.length > mostReason) {
    return complain(ground, exitCodes.usage, `the reason has more than ${mostReason} characters\n`);
  }
  const operator = word === "hold" ? whoAsks(ground) : "";
  const { code, says } = await alone(ground, () =>
    word === "hold" ? hold(ground, operator, reason) : release(ground),
  );
  return code === exitCodes.done ? tell(ground, says) : complain(ground, code, says);
}

/** What became of it, to be said when nobody has to wait for this helper any more. */
interface Outcome {
  code: number;
  says: string;
}

/**
 * One helper after another, so that of two holds at one moment the first one stays. Only that rests on the lock: where it
 * does not come free, a hold is set and lifted all the same.
 */
async function alone(ground: Ground, step: () => Outcome): Promise<Outcome> {
  leaveCallersCgroup(ground);
  ground.makeDirectory("/run/ai-tools", 0o755);
  const lock = await waitForLock(ground);
  try {
    return step();
  } finally {
    if (lock !== undefined) ground.close(lock);
  }
}

async function waitForLock(ground: Ground): Promise<Handle | undefined> {
  const deadlineMs = ground.nowMs() + mostWaitMs;
  for (;;) {
    const lock = ground.lock(lockPath);
    if (!isErrno(lock)) return lock;
    if (lock !== EAGAIN || ground.nowMs() >= deadlineMs) return undefined;
    await ground.sleep(pollMs);
  }
}

/** The operator's name; root's where nobody came through sudo, and where who came cannot be believed, which is said. */
function whoAsks(ground: Ground): string {
  const caller = findCaller(ground);
  if (caller.rejected !== undefined) ground.print("err", `ai-tools: recorded as root: ${caller.rejected}\n`);
  return caller.name;
}

/**
 * A hold that is there stays as it is: whoever set it first has the reason that counts. One that cannot be read is
 * replaced, which loses nothing that anybody could have read.
 */
function hold(ground: Ground, operator: string, reason: string): Outcome {
  const record: Hold = { operator, since: new Date(ground.wallClockMs()).toISOString(), reason };
  const before = readHold(ground);
  if (typeof before === "object") return alreadyHeld(before);
  const errno = writeRecord(ground, holdPath, record);
  if (errno === 0) {
    const more = "Sessions that run go on; to end them: ai-tools --stop. To lift it: ai-tools --release";
    return { code: exitCodes.done, says: `${describeHold(record)}.\n${more}\n` };
  }
  return { code: exitCodes.failed, says: `${holdPath} cannot be written (errno ${errno}): ${whatHolds(ground)}\n` };
}

/** Somebody else's hold does what was asked for; that it is theirs is said. */
function alreadyHeld(before: Hold): Outcome {
  const says = `already so: ${describeHold(before)}.\nIt stays as it is. To lift it: ai-tools --release\n`;
  return { code: exitCodes.done, says };
}

function release(ground: Ground): Outcome {
  const before = readHold(ground);
  const errno = ground.remove(holdPath);
  if (errno === ENOENT) return { code: exitCodes.done, says: "no hold was set: sessions may start.\n" };
  if (errno !== 0) {
    return { code: exitCodes.failed, says: `${holdPath} cannot be removed (errno ${errno}): ${whatHolds(ground)}\n` };
  }
  const was = typeof before === "object" ? `it said: ${describeHold(before)}` : "it could not be read";
  return { code: exitCodes.done, says: `the hold is lifted, sessions may start (${was}).\n` };
}

/** What is so after something failed: looked at, and not concluded from the failure. */
function whatHolds(ground: Ground): string {
  const hold = readHold(ground);
  if (hold === undefined) return "NOT held, sessions may start";
  if (typeof hold === "string") return `still held, by a hold that cannot be read (${printable(hold)})`;
  return `still held: ${describeHold(hold)}`;
}

function tell(ground: Ground, text: string): number {
  ground.print("out", `ai-tools: ${text}`);
  return exitCodes.done;
}

function complain(ground: Ground, code: number, text: string): number {
  ground.print("err", `ai-tools: ${text}`);
  return code;
}
