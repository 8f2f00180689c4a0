// SPDX-License-Identifier: Apache-2.0
// `unclaim PATH`: what the account owns in a project goes back to its owner, the account's access ends, and the record
// goes last. Until then the record says that the end is unfinished, and no session is started there.

import type { Ground, HandedBack, PathStat, Relabelled } from "../ground/ground.ts";
import { findPerson } from "../ground/operator.ts";
import { type Person, writeRecord } from "../ground/records.ts";
import { isRunning, readSessions, removeSession, sessionsOf } from "../run/session-records.ts";
import { accountName } from "../stop/identity.ts";
import { isErrno } from "../stop/kernel.ts";
import { printable } from "../stop/printable.ts";
import { type ClaimRecord, claimRecordPath, describeUnknown, whatBecameOf } from "./claims.ts";
import { unlabelProject } from "./labels.ts";
import { type Changes, closeToAccount } from "./lists.ts";
import { aloneWithProject } from "./locks.ts";
import { shownPath } from "./paths.ts";
import { findProject } from "./project.ts";
import {
  type Asker,
  again,
  describeHandBack,
  exitCodes,
  type FoundClaim,
  fail,
  failList,
  findAsker,
  findClaim,
  mayActOn,
  refuse,
  tell,
} from "./request.ts";

export async function unclaim(ground: Ground, word: string): Promise<number> {
  const found = findAsker(ground);
  if (typeof found === "string") return refuse(ground, found);
  const { asker, account } = found;
  const first = findOwnClaim(ground, word, asker);
  if (typeof first === "string") return refuse(ground, first);
  const { path } = first;
  const operatorUid = claimantOf(ground, first, asker);
  return aloneWithProject(ground, { path, operatorUid }, () => {
    // Another helper may have ended it, or claimed it, before this one was alone.
    const now = findOwnClaim(ground, word, asker);
    if (typeof now === "string") return refuse(ground, now);
    if (now.path !== path || claimantOf(ground, now, asker) !== operatorUid) {
      return refuse(ground, `the claim of ${shownPath(path)} has just changed: look, and try again`);
    }
    if (now.claim === undefined) return notClaimed(ground, path, now.problems);
    return endClaimOf(ground, now.claim, asker, account);
  });
}

/** The claim that a word means, or none; a sentence where it is another one, or nothing of whoever asks. */
function findOwnClaim(ground: Ground, word: string, asker: Asker): FoundClaim | string {
  const named = findClaim(ground, word);
  if (typeof named === "string" || named.claim === undefined) return named;
  const { path, claim } = named;
  if (claim.path !== path) {
    return `${shownPath(path)} is inside the project ${shownPath(claim.path)}: ${again("unclaim", claim.path)}`;
  }
  if (mayActOn(asker, claim)) return named;
  return `${shownPath(claim.path)} was claimed by ${claim.operator.name}: they or root end that`;
}

/** Whose claim it is, or would be: one that is being made is not on record yet, and not "not claimed" either. */
function claimantOf(ground: Ground, { path, claim }: FoundClaim, asker: Asker): number {
  if (claim !== undefined) return claim.operator.uid;
  if (!asker.isRoot) return asker.person.uid;
  const stat = ground.statPath(path);
  return isErrno(stat) ? 0 : stat.uid;
}

function endClaimOf(ground: Ground, claim: ClaimRecord, asker: Asker, account: number): Promise<number> | number {
  const shown = shownPath(claim.path);
  const why = whyNotYet(ground, claim, account);
  if (why !== undefined) return refuse(ground, why);
  const became = whatBecameOf(ground, claim);
  if (isErrno(became)) return refuse(ground, `${shown} cannot be looked at (errno ${became})`);
  if (became === "gone") return forget(ground, claim, "is gone");
  if (became === "replaced") return endReplaced(ground, claim, account);
  if (became === "another owner's" && !asker.isRoot) {
    return refuse(ground, `${shown} belongs to somebody else now: root ends this claim`);
  }
  return endClaim(ground, claim, account);
}

/**
 * Another directory than was claimed, or the same one under another device number, as some filesystems get at each mount.
 * Where it could be a project of the same operator, what the account has in it is taken back, and no list of others.
 */
function endReplaced(ground: Ground, claim: ClaimRecord, account: number): Promise<number> | number {
  const project = findProject(ground, claim.path, claim.operator);
  if (typeof project === "string")
    return forget(ground, claim, `is not the directory any more that was claimed (${project})`);
  const { device, inode } = project;
  return endClaim(ground, { ...claim, device, inode, hadLists: true }, account);
}

/** The end is what was asked for, and it is there; unless a record that nobody can read is just that claim. */
function notClaimed(ground: Ground, path: string, problems: readonly string[]): number {
  if (problems.length > 0) return refuse(ground, describeUnknown(problems));
  const stat = ground.statPath(path);
  if (isErrno(stat)) return refuse(ground, `${shownPath(path)} is not claimed, and not there (errno ${stat})`);
  tell(ground, `${shownPath(path)} is not claimed: nothing to do`);
  return exitCodes.done;
}

/** A session of the project runs, or may. */
function whyNotYet(ground: Ground, claim: ClaimRecord, account: number): string | undefined {
  const { sessions, problems } = readSessions(ground);
  if (problems[0] !== undefined) return `which sessions run cannot be told: ${printable(problems[0], 400)}`;
  const running = sessionsOf(sessions, claim.path).find((session) => isRunning(ground, session, account));
  if (running === undefined) return undefined;
  return `the session ${printable(running.unit)} runs in ${shownPath(claim.path)}: let it end first (ai-tools --stop ends every session)`;
}

/** The directory that was claimed is not there: there is nothing to give back, and nothing to take away but records. */
function forget(ground: Ground, claim: ClaimRecord, what: string): number {
  const errno = ground.remove(claimRecordPath(claim.path));
  if (errno !== 0) return fail(ground, `${claimRecordPath(claim.path)} cannot be removed (errno ${errno})`);
  removeSessionsOf(ground, claim);
  tell(
    ground,
    `${shownPath(claim.path)} ${what}: only the record of the claim was there to remove. A directory that was moved keeps its access control lists: claim and unclaim it where it is now`,
  );
  return exitCodes.done;
}

async function endClaim(ground: Ground, claim: ClaimRecord, account: number): Promise<number> {
  const file = claimRecordPath(claim.path);
  const noted = writeRecord(ground, file, { ...claim, unfinished: "unclaim" });
  if (noted !== 0) return refuse(ground, `${file} cannot be written (errno ${noted})`);
  // A launcher that read the record before has written its own since, or sees this one.
  const late = whyNotYet(ground, claim, account);
  if (late !== undefined) return takeBack(ground, claim, late);
  const ended = await takeEverythingBack(ground, claim, account);
  if (typeof ended === "string") {
    return fail(
      ground,
      `${shownPath(claim.path)}: ${ended}. The claim stays; once more: ${again("unclaim", claim.path)}`,
    );
  }
  const errno = ground.remove(file);
  if (errno !== 0) return fail(ground, `${file} cannot be removed (errno ${errno})`);
  tell(ground, `${ended.told}, and the claim of it is ended`);
  if (ended.notGiven.failed === 0) removeSessionsOf(ground, claim);
  return tellFailures(ground, ended);
}

/** The record as it was before. */
function takeBack(ground: Ground, claim: ClaimRecord, why: string): number {
  const errno = writeRecord(ground, claimRecordPath(claim.path), claim);
  if (errno === 0) return refuse(ground, why);
  return fail(ground, `${why}, and ${claimRecordPath(claim.path)} cannot be written (errno ${errno})`);
}

interface Ended {
  told: string;
  notGiven: HandedBack;
  notClosed: Changes;
  /** undefined: no labels were changed. */
  labels: Relabelled | undefined;
}

/**
 * Gives back, takes the lists away, and once more both: what somebody of the account made between the two belongs to it,
 * and was made before its access ended.
 */
async function takeEverythingBack(ground: Ground, claim: ClaimRecord, account: number): Promise<Ended | string> {
  const { path, device, inode, hadLists } = claim;
  let changed = 0;
  let notClosed: Changes = { failed: 0, failures: [], accounts: 0 };
  for (let round = 1; ; round++) {
    const stat = ground.statPath(path);
    if (isErrno(stat)) return `it cannot be looked at (errno ${stat})`;
    const owner = recipient(ground, claim, stat, account);
    const { uid, gid } = owner;
    const handed = ground.handBack({ path, device, inode, from: account, uid, gid, withGit: true });
    if (isErrno(handed)) return `its files cannot be given back (errno ${handed})`;
    changed += handed.changed;
    if (round === 1 || handed.changed > 0) {
      const closed = await closeToAccount(ground, { path, device, inode, owner }, account, hadLists);
      if (typeof closed === "string") return `the access of ${accountName} cannot be taken back: ${closed}`;
      notClosed = closed;
    }
    if (round === 1) continue;
    const labels = unlabelProject(ground, { path, device, inode, owner }, account, claim);
    if (typeof labels === "string") return labels;
    return { told: describeHandBack({ ...handed, changed }, path, owner), notGiven: handed, notClosed, labels };
  }
}

/** Whose the files are to be: the directory's present owner; the claim's where that is nobody who could have a project. */
function recipient(ground: Ground, claim: ClaimRecord, stat: PathStat, account: number): Person {
  if (stat.uid === 0 || stat.uid === account || stat.uid === claim.operator.uid) return claim.operator;
  const known = findPerson(ground, stat.uid);
  return typeof known === "object" ? known.person : { name: `uid ${stat.uid}`, uid: stat.uid, gid: stat.gid };
}

function removeSessionsOf(ground: Ground, claim: ClaimRecord): void {
  for (const session of sessionsOf(readSessions(ground).sessions, claim.path)) removeSession(ground, session);
}

function tellFailures(ground: Ground, { notGiven, notClosed, labels }: Ended): number {
  let code: number = exitCodes.done;
  if (notGiven.failed > 0) code = failList(ground, notGiven.failed, "given back", notGiven.failures);
  if (notClosed.accounts > 0)
    code = fail(ground, `${notClosed.accounts} of those belong to ${accountName} and are open to it`);
  if (notClosed.failed > 0) {
    code = failList(ground, notClosed.failed, `closed to ${accountName} (.: the project)`, notClosed.failures);
  }
  if (labels !== undefined && labels.failed > 0)
    code = failList(ground, labels.failed, "given the SELinux type that the project had", labels.failures);
  return code;
}
