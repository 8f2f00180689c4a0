// SPDX-License-Identifier: Apache-2.0
// `reclaim PATH`: what the account owns in a project goes back to its owner, `.git` included: after a session that did
// not end by itself, or whenever somebody wants it. The claim stays. Without a claim it works in any directory that
// could be one, so that nothing is out of reach that an ended claim left behind.

import type { Ground } from "../ground/ground.ts";
import { isRunning, readSessions, removeSession, type StoredSession, sessionsOf } from "../run/session-records.ts";
import { isErrno } from "../stop/kernel.ts";
import { printable } from "../stop/printable.ts";
import { type ClaimRecord, describeUnknown, readClaims, whatBecameOf } from "./claims.ts";
import { isAtOrBelow, shownPath } from "./paths.ts";
import { findProject, type Project } from "./project.ts";
import {
  type Asker,
  again,
  describeHandBack,
  exitCodes,
  fail,
  failList,
  findAsker,
  findClaim,
  mayActOn,
  refuse,
  tell,
} from "./request.ts";

export async function reclaim(ground: Ground, word: string): Promise<number> {
  const found = findAsker(ground);
  if (typeof found === "string") return refuse(ground, found);
  const { asker, account } = found;
  const named = findClaim(ground, word);
  if (typeof named === "string") return refuse(ground, named);
  const { claim, problems } = named;
  const project =
    claim === undefined ? unclaimedProject(ground, word, asker, problems) : claimedProject(ground, claim, asker);
  if (typeof project === "string") return refuse(ground, project);
  return giveBack(ground, project, account);
}

/** The whole of a claimed project, whatever path in it was named: a path below could be a link by the time it is used. */
function claimedProject(ground: Ground, claim: ClaimRecord, asker: Asker): Project | string {
  const { path, device, inode, operator } = claim;
  if (!mayActOn(asker, claim)) return `${shownPath(path)} was claimed by ${operator.name}: they or root give it back`;
  const became = whatBecameOf(ground, claim);
  if (became === "same") return { path, device, inode, owner: operator };
  if (isErrno(became)) return `${shownPath(path)} cannot be looked at (errno ${became})`;
  const what = {
    gone: "is gone",
    replaced: "is not the directory any more that was claimed",
    "another owner's": "belongs to somebody else now",
  }[became];
  return `${shownPath(path)} ${what}; to end its claim: ${again("unclaim", path)}`;
}

/** A directory that could be claimed, and has nobody's claimed project in it. */
function unclaimedProject(ground: Ground, word: string, asker: Asker, problems: string[]): Project | string {
  if (problems.length > 0) return describeUnknown(problems);
  const project = findProject(ground, word, asker.isRoot ? undefined : asker.person);
  if (typeof project === "string") return project;
  const inside = readClaims(ground).claims.find(({ path }) => isAtOrBelow(path, project.path));
  if (inside === undefined) return project;
  return `${shownPath(project.path)} contains the project ${shownPath(inside.path)}: ${again("reclaim", inside.path)}`;
}

function giveBack(ground: Ground, project: Project, account: number): number {
  const { path, device, inode, owner } = project;
  const before = sessionsIn(ground, path, account);
  const { uid, gid } = owner;
  const handed = ground.handBack({ path, device, inode, from: account, uid, gid, withGit: true });
  if (isErrno(handed)) return fail(ground, `${shownPath(path)}: its files cannot be given back (errno ${handed})`);
  tell(ground, describeHandBack(handed, path, owner));
  for (const { unit } of before.running) {
    tell(
      ground,
      `the session ${printable(unit)} runs there and may write more; what it writes from now on is its own again`,
    );
  }
  for (const problem of before.problems)
    tell(ground, `which sessions run there cannot be told: ${printable(problem, 400)}`);
  if (handed.failed > 0)
    return failList(ground, handed.failed, `given back to ${shownPath(owner.name)}`, handed.failures);
  return forgetSessions(ground, before.over);
}

/** The sessions of a project, told apart before anything is given back: those that are over have left what is there. */
function sessionsIn(ground: Ground, path: string, account: number) {
  const { sessions, problems } = readSessions(ground);
  const own = sessionsOf(sessions, path);
  const running = own.filter((session) => isRunning(ground, session, account));
  return { running, over: own.filter((session) => !running.includes(session)), problems };
}

/** Nothing of them is left to do. A record that another session has written since under the same name stays. */
function forgetSessions(ground: Ground, over: readonly StoredSession[]): number {
  const { sessions } = readSessions(ground);
  for (const { file, since } of over) {
    const same = sessions.find((session) => session.file === file && session.since === since);
    if (same === undefined) continue;
    const errno = removeSession(ground, same);
    if (errno !== 0) return fail(ground, `${file} cannot be removed (errno ${errno}); the files are given back`);
  }
  return exitCodes.done;
}
