// SPDX-License-Identifier: Apache-2.0
// Sets and lifts the hold: while it is set no new session is started. It ends none that runs, and it outlives a restart
// of the host. Any operator may set it, and any operator may lift what another one has set.

import type { Ground } from "../ground/ground.ts";
import { holdPath } from "../ground/places.ts";
import { encodeUtf8, type Hold } from "../ground/records.ts";
import { findCaller } from "../stop/caller.ts";
import { EEXIST, ENOENT } from "../stop/kernel.ts";
import { describeHold, mostReason, readHold } from "./gate.ts";

/** Exit codes of `--hold` and `--release`. */
export const exitCodes = { done: 0, failed: 1, usage: 2, refused: 3 } as const;

const usage = `Usage: ai-tools --hold [REASON]    refuse new sessions until it is lifted
       ai-tools --release          lift it
`;

/** `hold [REASON]` or `release`, by root or an operator; says what it did and returns the exit code. */
export function holdOrRelease(ground: Ground): number {
  const [word, reason = "", ...more] = ground.words;
  const asks = word === "hold" ? more.length === 0 : word === "release" && ground.words.length === 1;
  if (!asks) return complain(ground, exitCodes.usage, usage);
  if (!ground.areWordsWhole()) return complain(ground, exitCodes.usage, "the reason is not UTF-8\n");
  if (!ground.isRoot())
    return complain(ground, exitCodes.refused, "only root can do this. As an operator: ai-tools --hold\n");
  return word === "hold" ? hold(ground, whoAsks(ground), reason) : release(ground);
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
function hold(ground: Ground, operator: string, reason: string): number {
  if (reason.length > mostReason) {
    return complain(ground, exitCodes.usage, `the reason has more than ${mostReason} characters\n`);
  }
  const record: Hold = { operator, since: new Date(ground.wallClockMs()).toISOString(), reason };
  const text = `${encodeUtf8(JSON.stringify(record))}\n`;
  const before = readHold(ground);
  if (typeof before === "object") return alreadyHeld(ground, before);
  const errno =
    before === undefined ? ground.createFile(holdPath, text, 0o644) : ground.replaceFile(holdPath, text, 0o644);
  if (errno === EEXIST) return alreadyHeld(ground, readHold(ground));
  if (errno !== 0) {
    return complain(ground, exitCodes.failed, `${holdPath} cannot be written (errno ${errno}): NOT held\n`);
  }
  return tell(
    ground,
    `${describeHold(record)}.\nSessions that run go on; to end them: ai-tools --stop. To lift it: ai-tools --release\n`,
  );
}

/** Somebody else's hold does what was asked for; that it is theirs is said. */
function alreadyHeld(ground: Ground, before: Hold | string | undefined): number {
  const whose = typeof before === "object" ? describeHold(before) : "new sessions are held by somebody else just now";
  return tell(ground, `already so: ${whose}.\nIt stays as it is. To lift it: ai-tools --release\n`);
}

function release(ground: Ground): number {
  const before = readHold(ground);
  const errno = ground.remove(holdPath);
  if (errno === ENOENT) return tell(ground, "no hold was set: sessions may start.\n");
  if (errno !== 0) {
    return complain(ground, exitCodes.failed, `${holdPath} cannot be removed (errno ${errno}): still held\n`);
  }
  const was = typeof before === "object" ? `it said: ${describeHold(before)}` : "it could not be read";
  return tell(ground, `the hold is lifted, sessions may start (${was}).\n`);
}

function tell(ground: Ground, text: string): number {
  ground.print("out", `ai-tools: ${text}`);
  return exitCodes.done;
}

function complain(ground: Ground, code: number, text: string): number {
  ground.print("err", `ai-tools: ${text}`);
  return code;
}
