// SPDX-License-Identifier: Apache-2.0
// What is left of earlier sessions and claims, from root's records: sessions that did not end by themselves, and claims
// whose directory is no longer the one that was claimed.

import { type ClaimRecord, readClaims, whatBecameOf, whyNotLabelled } from "../claim/claims.ts";
import { pastedPath } from "../claim/paths.ts";
import type { Ground } from "../ground/ground.ts";
import type { Selinux } from "../ground/selinux.ts";
import { isRunning, isWaitingForOthers, readSessions, type StoredSession } from "../run/session-records.ts";
import { isErrno } from "../stop/kernel.ts";
import { printable } from "../stop/printable.ts";
import { broken, type Check, type LeftSession, type LooseClaim, ok, unknown } from "./facts.ts";

export interface Records {
  /** Those that run, as far as anybody can tell. */
  running: StoredSession[];
  left: LeftSession[];
  looseClaims: LooseClaim[];
  check: Check;
}

/** @param uid of the account; undefined where it has none: then nobody can tell whether a session runs */
export function readRecords(ground: Ground, uid: number | undefined, selinux: Selinux): Records {
  const { sessions, problems } = readSessions(ground);
  const runs = (session: StoredSession) => uid === undefined || isRunning(ground, session, uid);
  const running = sessions.filter((session) => session.ended === undefined && runs(session));
  // Nothing is wrong with one that ended by itself and left its handback to another session that runs.
  const waits = (session: StoredSession) => uid !== undefined && isWaitingForOthers(ground, session, sessions, uid);
  const left = sessions.filter((session) => !running.includes(session) && !waits(session)).map(describeLeft);
  const claims = readClaims(ground);
  const isLabelling = "session" in selinux && selinux.session !== undefined;
  const loose = claims.claims.map((claim) => looseOf(ground, claim, isLabelling));
  return {
    running,
    left,
    looseClaims: loose.filter((claim): claim is LooseClaim => typeof claim === "object"),
    check: checkRecords([...problems, ...claims.problems], loose.filter(isErrno).length),
  };
}

function describeLeft({ unit, project, operator, since, ended }: StoredSession): LeftSession {
  const how =
    ended === undefined
      ? "nobody saw how it ended"
      : ended.clean
        ? `${ended.how}; not everything could be handed back`
        : ended.how;
  return { unit, project, operator: operator.name, since, how };
}

/** undefined: nothing is wrong with it; an errno: nobody can tell. */
function looseOf(ground: Ground, claim: ClaimRecord, isLabelling: boolean): LooseClaim | undefined | number {
  const { path, operator, unfinished } = claim;
  const loose = { path, operator: operator.name };
  const again = (verb: string) => `ai-tools --${verb} ${pastedPath(path)}`;
  if (unfinished !== undefined) {
    const what = unfinished === "claim" ? "its claim was not finished" : "the end of its claim was not finished";
    return { ...loose, what, repair: again(unfinished) };
  }
  const became = whatBecameOf(ground, claim);
  if (isErrno(became)) return became;
  if (became === "same") {
    const what = isLabelling ? whyNotLabelled(ground, claim) : undefined;
    return what === undefined ? undefined : { ...loose, what, repair: again("claim") };
  }
  const what = {
    gone: "its directory is gone",
    replaced: "another directory is in its place",
    "another owner's": "its directory has another owner now",
  }[became];
  return { ...loose, what, repair: again("unclaim") };
}

/** Records that cannot be read, and claims whose directory the caller may not see. */
function checkRecords(problems: readonly string[], unseen: number): Check {
  const name = "records";
  const [first] = problems;
  if (first !== undefined) {
    const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : "";
    return broken(name, `${printable(first, 400)}${more}`);
  }
  if (unseen > 0)
    return unknown(name, `of ${unseen} claimed project(s) only root or their operator sees whether they are there`);
  return ok(name, "of sessions and claims readable");
}
