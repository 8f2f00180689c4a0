// SPDX-License-Identifier: Apache-2.0
// Which directory a word of the command line means, and whether it may be a project: reached without a link, its owner's
// in every part that could replace it, and none of what ../claim/where.ts keeps closed.

import type { Ground, PathStat } from "../ground/ground.ts";
import { findPerson, readPasswd } from "../ground/operator.ts";
import type { Person } from "../ground/records.ts";
import { accountName } from "../stop/identity.ts";
import { ENOENT, isErrno } from "../stop/kernel.ts";
import { isPlainPath, parentsOf, pastedPath, plainPath, shownPath } from "./paths.ts";
import { type Home, isBroughtIn, whyNoProject } from "./where.ts";

/** A directory that may be a project, as it was when it was looked at. */
export interface Project {
  path: string;
  device: number;
  inode: number;
  owner: Person;
}

const notUtf8 = 84;
const groupWrites = 0o020;
const othersWrite = 0o002;
const sticky = 0o1000;
const othersPass = 0o001;
const groupPasses = 0o010;

/** The path that a word means, plain and as it was written, from nothing but the caller's directory; or a sentence. */
export function pathOf(ground: Ground, word: string): { path: string; written: string } | string {
  if (word === "") return "the path is empty";
  const directory = word.startsWith("/") ? "/" : ground.currentDirectory();
  if (isErrno(directory)) return `the directory that you are in cannot be told (errno ${directory})`;
  const path = plainPath(word, directory);
  if (!isPlainPath(path)) return "the path is not UTF-8";
  return { path, written: word.startsWith("/") ? word : `${directory}/${word}` };
}

/** The same place by its real path, where a link is in it; the path itself where it cannot be told. */
export function realPathOf(ground: Ground, path: string): string {
  const real = ground.realPath(path);
  return isErrno(real) ? path : real;
}

/**
 * The project that a word means, or a sentence (without a full stop) that says why there is none. `owner`: whose it has
 * to be; undefined for root, who may name anybody's.
 */
export function findProject(ground: Ground, word: string, owner: Person | undefined): Project | string {
  const meant = pathOf(ground, word);
  if (typeof meant === "string") return meant;
  const { path, written } = meant;
  // What was written, so that a `..` behind a link shows as well.
  const real = ground.realPath(written);
  if (real === ENOENT) return `there is no ${shownPath(path)}`;
  if (real === notUtf8) return `${shownPath(path)} has names that are not UTF-8`;
  if (isErrno(real)) return `${shownPath(path)} cannot be reached (errno ${real})`;
  if (real !== path) return `${shownPath(path)} goes through a link: name ${pastedPath(real)}`;
  return projectAt(ground, path, owner);
}

function projectAt(ground: Ground, path: string, owner: Person | undefined): Project | string {
  const homes = findHomes(ground);
  if (typeof homes === "string") return homes;
  const closed = whyNoProject(path, homes);
  if (closed !== undefined) return closed;
  const stat = ground.statPath(path);
  if (isErrno(stat)) return `${shownPath(path)} cannot be looked at (errno ${stat})`;
  if (stat.kind !== "directory") return `${shownPath(path)} is no directory`;
  if (!Number.isSafeInteger(stat.device) || !Number.isSafeInteger(stat.inode)) {
    return `${shownPath(path)} could not be told from another directory: its filesystem has inode numbers beyond 2^53`;
  }
  const whose = ownerOf(ground, path, stat, owner);
  if (typeof whose === "string") return whose;
  const exposed = whyReplaceable(ground, path, whose);
  if (exposed !== undefined) return exposed;
  return { path, device: stat.device, inode: stat.inode, owner: whose };
}

/** Everybody's home, plain; also by its real path, where that is another. */
function findHomes(ground: Ground): Home[] | string {
  const passwd = readPasswd(ground);
  if (typeof passwd === "string") return passwd;
  return passwd.flatMap(({ person: { name }, home }) => {
    const path = plainPath(home, "/");
    // An account without a home has no other place to protect.
    if (path === "/") return [];
    return [...new Set([path, realPathOf(ground, path)])].map((one) => ({ name, path: one }));
  });
}

function ownerOf(ground: Ground, path: string, stat: PathStat, owner: Person | undefined): Person | string {
  if (owner !== undefined) {
    return stat.uid === owner.uid ? owner : `${shownPath(path)} is not yours (it belongs to uid ${stat.uid})`;
  }
  const found = findPerson(ground, stat.uid);
  if (typeof found === "string") return found;
  if (found === undefined) return `${shownPath(path)} belongs to uid ${stat.uid}, who is not in /etc/passwd`;
  const { person } = found;
  if (person.uid !== 0 && person.name !== accountName) return person;
  return `${shownPath(path)} belongs to ${shownPath(person.name)}: a project belongs to a person`;
}

/** A directory above in which somebody else could put another one into the project's place. */
function whyReplaceable(ground: Ground, path: string, owner: Person): string | undefined {
  const group = accountGroup(ground);
  if (typeof group === "string") return group;
  for (const parent of parentsOf(path)) {
    const stat = ground.statPath(parent);
    if (isErrno(stat)) return `${shownPath(parent)} cannot be looked at (errno ${stat})`;
    if (stat.kind !== "directory") return `${shownPath(parent)} is no directory`;
    if (stat.uid !== 0 && stat.uid !== owner.uid) {
      return `${shownPath(parent)}, above it, belongs to somebody else (uid ${stat.uid}), who could put another directory in its place`;
    }
    const isAnyones = (stat.mode & othersWrite) !== 0;
    const isAccounts = stat.gid === group && (stat.mode & groupWrites) !== 0;
    if ((isAnyones || isAccounts) && (stat.mode & sticky) === 0) {
      return `${shownPath(parent)}, above it, is writable for others, who could put another directory in its place`;
    }
  }
  return undefined;
}

/** A directory above a path that the account cannot pass through, and what opens it; undefined: it finds the way. */
export function whyOutOfReach(ground: Ground, path: string): string | undefined {
  if (isBroughtIn(path)) return undefined;
  const group = accountGroup(ground);
  if (typeof group === "string") return group;
  for (const parent of parentsOf(path)) {
    const stat = ground.statPath(parent);
    if (isErrno(stat)) return `${shownPath(parent)} cannot be looked at (errno ${stat})`;
    const passes = (stat.mode & othersPass) !== 0 || (stat.gid === group && (stat.mode & groupPasses) !== 0);
    if (passes) continue;
    return `the account ${accountName} cannot pass through ${shownPath(parent)}; to let everybody pass, without reading it: chmod o+x ${pastedPath(parent)}`;
  }
  return undefined;
}

function accountGroup(ground: Ground): number | string {
  const passwd = readPasswd(ground);
  if (typeof passwd === "string") return passwd;
  const account = passwd.find(({ person }) => person.name === accountName);
  return account?.person.gid ?? `there is no account ${accountName} in /etc/passwd`;
}
