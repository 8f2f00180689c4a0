// SPDX-License-Identifier: Apache-2.0
// What is to be started, for whom and where: everything that a caller says is checked here against root's own records,
// before anything is changed. Looks only; a sentence (without a full stop) where no session may be started.

import { claimOf, isSameDirectory, whyNotLabelled } from "../claim/claims.ts";
import { pastedPath, shownPath } from "../claim/paths.ts";
import type { Ground } from "../ground/ground.ts";
import { operatorOf, readPasswd } from "../ground/operator.ts";
import { launcherPath } from "../ground/places.ts";
import type { Claim, Person } from "../ground/records.ts";
import { findSelinux, types } from "../ground/selinux.ts";
import { whyClosed } from "../hold/gate.ts";
import { stopsSinceBoot } from "../stop/announcement.ts";
import { accountName, findIdentity } from "../stop/identity.ts";
import { isErrno } from "../stop/kernel.ts";
import { printable } from "../stop/printable.ts";
import type { Slice } from "../stop/slice.ts";
import { type Confinement, confinementOf } from "./confinement.ts";
import { type EntryPoint, loadEntryPoint } from "./entry-point.ts";
import {
  currentBoot,
  isRunning,
  isUnitAlive,
  isWaitingForOthers,
  readSession,
  readSessions,
  type StoredSession,
  sessionsOf,
  sliceOf,
  unitName,
} from "./session-records.ts";

export const usage = "usage: ai-tools --run ENTRYPOINT [-- ARGUMENT...], in a claimed project";

/** A session that may be started, as far as it can be told now. */
export interface Launch {
  unit: string;
  entryPoint: EntryPoint;
  arguments: string[];
  operator: Person;
  /** Of the account. */
  uid: number;
  slice: Slice;
  claim: Claim;
  /** The caller's directory: the project or below it. */
  directory: string;
  /** Stops since boot, read before the gate was found open. */
  stops: number;
  boot: string;
  confinement: Confinement;
  /** Sessions of this project that did not end by themselves, and so left files of the account behind. */
  unclean: StoredSession[];
}

/** Checks everything; the order is from what the caller can mend soonest to what only root can. */
export function checkLaunch(ground: Ground): Launch | string {
  const words = parseWords(ground);
  if (typeof words === "string") return words;
  if (!ground.isRoot()) return "this helper is for root: ai-tools --run starts it through sudo";
  const operator = operatorOf(ground);
  if (typeof operator === "string") return operator;
  const account = findAccount(ground);
  if (typeof account === "string") return account;
  const entryPoint = loadEntryPoint(ground, words.entryPoint);
  if (typeof entryPoint === "string") return entryPoint;
  const place = findPlace(ground, operator.person);
  if (typeof place === "string") return place;
  const confinement = findConfinement(ground, place.claim);
  if (typeof confinement === "string") return confinement;
  const moment = findMoment(ground);
  if (typeof moment === "string") return moment;
  const before = findEarlier(ground, place.claim, account.uid);
  if (typeof before === "string") return before;
  const unit = unitName(words.entryPoint, ground.pid);
  if (isNameTaken(ground, unit, account.uid))
    return `${unit} runs already, as its number was given out again; try again`;
  return {
    unit,
    entryPoint,
    arguments: words.arguments,
    operator: operator.person,
    ...account,
    ...place,
    ...moment,
    confinement,
    unclean: before,
  };
}

function parseWords(ground: Ground): { entryPoint: string; arguments: string[] } | string {
  if (!ground.areWordsWhole()) return "an argument is no UTF-8, and would not reach the session as it is";
  const [entryPoint, separator, ...rest] = ground.words;
  if (entryPoint === undefined || entryPoint.startsWith("--")) return usage;
  if (separator !== undefined && separator !== "--")
    return `arguments of the session come behind "--", not "${printable(separator, 40)}"; ${usage}`;
  return { entryPoint, arguments: rest };
}

function findAccount(ground: Ground): { uid: number; slice: Slice } | string {
  const identity = findIdentity(ground);
  if (typeof identity === "string") return identity;
  const passwd = readPasswd(ground);
  if (typeof passwd === "string") return passwd;
  const account = passwd.find(({ person }) => person.name === accountName);
  if (account === undefined || account.person.gid === 0) return `${accountName} has no group of its own in /etc/passwd`;
  const slice = sliceOf(ground, identity.uid);
  return typeof slice === "string" ? slice : { uid: identity.uid, slice };
}

/**
 * Once more, behind the record of the session: who ends a claim looks for sessions first, so that one of the two sees the
 * other.
 */
export function whyUnclaimed(ground: Ground, { operator, claim }: Launch): string | undefined {
  const place = findPlace(ground, operator);
  if (typeof place === "string") return place;
  return place.claim.path === claim.path ? undefined : `${shownPath(claim.path)} is not claimed any more`;
}

/** The caller's directory, if it is in a project that this operator has claimed and that is still the same one. */
function findPlace(ground: Ground, operator: Person): { claim: Claim; directory: string } | string {
  const directory = ground.currentDirectory();
  if (isErrno(directory)) return `the current directory has no path that can be used (errno ${directory})`;
  const claim = claimOf(ground, directory);
  if (typeof claim === "string") return claim;
  if (claim === undefined)
    return `${shownPath(directory)} is in no claimed project; to claim it: ai-tools --claim ${pastedPath(directory)}`;
  if (claim.operator.uid !== operator.uid)
    return `${shownPath(claim.path)} was claimed by ${printable(claim.operator.name)}, not by ${printable(operator.name)}`;
  if (!isSameDirectory(ground, claim))
    return `${shownPath(claim.path)} is not the directory any more that was claimed; ai-tools --unclaim and --claim it again`;
  return { claim, directory };
}

/** The launcher has to be there and, under SELinux, what leads into the domain of sessions and what that may write. */
function findConfinement(ground: Ground, claim: Claim): Confinement | string {
  const launcher = ground.statPath(launcherPath);
  if (isErrno(launcher)) return `${launcherPath} cannot be seen (errno ${launcher}); as root: dnf reinstall ai-tools`;
  const confinement = confinementOf(findSelinux(ground));
  const isHeld = typeof confinement === "object" && confinement.held === types.session;
  if (!isHeld || confinement.warning !== undefined) return confinement;
  const unlabelled = whyNotLabelled(ground, claim);
  if (unlabelled === undefined) return confinement;
  return `${unlabelled}, so that SELinux would let no session work in it; once more: ai-tools --claim ${pastedPath(claim.path)}`;
}

/** The counter first: a stop that begins behind the look at the gate has raised it since. */
function findMoment(ground: Ground): { stops: number; boot: string } | string {
  const counted = stopsSinceBoot(ground);
  if (isErrno(counted)) return `how many stops there were cannot be told (errno ${counted})`;
  const closed = whyClosed(ground);
  if (closed !== undefined) return closed;
  const boot = currentBoot(ground);
  return boot === undefined ? "which boot this is cannot be told" : { stops: counted.stops, boot };
}

function findEarlier(ground: Ground, claim: Claim, uid: number): StoredSession[] | string {
  const { sessions, problems } = readSessions(ground);
  const [problem] = problems;
  // It could be one of this project, whose files would stay the account's without anybody being told.
  if (problem !== undefined) return `which sessions there were cannot be told: ${printable(problem, 400)}`;
  const isLeft = (session: StoredSession) =>
    !isRunning(ground, session, uid) && !isWaitingForOthers(ground, session, sessions, uid);
  return sessionsOf(sessions, claim.path).filter(isLeft);
}

/** A launcher of an earlier session with this number is gone, and its session still runs. */
function isNameTaken(ground: Ground, unit: string, uid: number): boolean {
  return isUnitAlive(ground, unit, uid) || typeof readSession(ground, unit) === "string";
}
