// SPDX-License-Identifier: Apache-2.0
// The claims that root recorded: reading them, and finding the one that a directory belongs to. The path inside a record
// decides, not the record's file name. A record that cannot be read could be a claim of anything: it is never "none".

import type { Ground, PathStat } from "../ground/ground.ts";
import { claimDirectory } from "../ground/places.ts";
import { type Claim, encodeUtf8, readRecord } from "../ground/records.ts";
import { typeOf, types } from "../ground/selinux.ts";
import { ENOENT, type Errno, isErrno } from "../stop/kernel.ts";
import { printable } from "../stop/printable.ts";
import { isAtOrBelow, isPlainPath, pastedPath, shownPath } from "./paths.ts";

/** A claim as it is on the disk. */
export interface ClaimRecord extends Claim {
  /** What is under way, or was interrupted, in this project; absent where neither. */
  unfinished?: "claim" | "unclaim";
  /** Whether something in the project had an access control list before the claim: then those stay at its end. */
  hadLists: boolean;
  /** The SELinux type that the directory had; absent where a claim changed none. */
  formerType?: string;
}

/** Every claim, and a sentence for each record that cannot be used. */
export function readClaims(ground: Ground): { claims: ClaimRecord[]; problems: string[] } {
  const claims: ClaimRecord[] = [];
  const problems: string[] = [];
  const names = ground.list(claimDirectory);
  if (names === ENOENT) return { claims, problems };
  if (isErrno(names)) return { claims, problems: [`${claimDirectory} cannot be read (errno ${names})`] };
  // Anything else in the directory is no record, e.g. what an interrupted replacement left.
  for (const name of names.filter((one) => /^[0-9a-f]+\.json$/.test(one)).sort()) {
    const claim = readClaim(ground, `${claimDirectory}/${name}`);
    if (typeof claim === "string") problems.push(claim);
    else if (claim !== undefined) claims.push(claim);
  }
  return { claims, problems };
}

/** The record in a file; undefined where it has just gone, a sentence where it cannot be used. */
function readClaim(ground: Ground, file: string): ClaimRecord | undefined | string {
  const stat = ground.statPath(file);
  if (stat === ENOENT) return undefined;
  if (isErrno(stat)) return `${file} cannot be read (errno ${stat})`;
  if (stat.kind !== "file" || stat.uid !== 0 || (stat.mode & 0o022) !== 0) return `${file} is not root's alone`;
  return readRecord(ground, file, isClaimRecord);
}

/**
 * The claim at or above a directory; undefined where there is none; a sentence (printable, without a full stop) where
 * that cannot be told, or where the claim is not finished and so gives nothing to rely on.
 */
export function claimOf(ground: Ground, directory: string): ClaimRecord | undefined | string {
  const { claims, problems } = readClaims(ground);
  const found = claims.filter((claim) => isAtOrBelow(directory, claim.path));
  const [claim, another] = found;
  if (another !== undefined) return `${shownPath(directory)} is in more than one claimed project`;
  if (claim?.unfinished !== undefined) return describeUnfinished(claim);
  if (claim === undefined && problems.length > 0) return describeUnknown(problems);
  return claim;
}

/** That nobody can tell whether something is claimed, and who can help (no full stop). */
export function describeUnknown(problems: readonly string[]): string {
  const help = "root has to remove what cannot be read, and its project is then claimed again";
  return `which projects are claimed cannot be told: ${problems[0]}; ${help}`;
}

/** What is to be done about a claim that is not finished. */
function describeUnfinished({ path, unfinished }: ClaimRecord): string {
  const what = unfinished === "claim" ? "the claim of" : "the end of the claim of";
  return `${what} ${shownPath(path)} is under way or was interrupted; to finish it: ai-tools --${unfinished} ${pastedPath(path)}`;
}

/** Where the claim of a path is recorded. Two paths could share a file: whoever writes one looks at what is there. */
export function claimRecordPath(path: string): string {
  return `${claimDirectory}/${hashOf(path)}.json`;
}

/** Locks of projects that are being claimed, or whose claim is being ended; of this boot. */
export const lockDirectory = "/run/ai-tools/claims";

/** The lock of an operator's claim of a path: nobody else's project could share it. */
export function claimLockPath(operatorUid: number, path: string): string {
  return `${lockDirectory}/${operatorUid}-${hashOf(path)}.lock`;
}

/** What has become of a claimed directory; an errno where nobody can tell. */
export function whatBecameOf(ground: Ground, claim: Claim): "same" | "gone" | "replaced" | "another owner's" | Errno {
  const stat = ground.statPath(claim.path);
  if (stat === ENOENT) return "gone";
  if (isErrno(stat)) return stat;
  if (!isDirectoryOf(stat, claim)) return "replaced";
  return stat.uid === claim.operator.uid ? "same" : "another owner's";
}

/** Whether the directory at a claim's path is the one that was claimed, and still its operator's. */
export function isSameDirectory(ground: Ground, claim: Claim): boolean {
  return whatBecameOf(ground, claim) === "same";
}

/** Where SELinux has a type for projects: what is to be said where the directory has another one (no full stop). */
export function whyNotLabelled(ground: Ground, { path }: Claim): string | undefined {
  const context = ground.fileContext(path);
  if (!isErrno(context) && typeOf(context) === types.project) return undefined;
  const label = isErrno(context) ? `no SELinux label that can be read (errno ${context})` : printable(context, 200);
  return `${shownPath(path)} has ${label} and not the type ${types.project}`;
}

function isDirectoryOf(stat: PathStat, claim: Claim): boolean {
  return stat.kind === "directory" && stat.device === claim.device && stat.inode === claim.inode;
}

function isClaimRecord(value: unknown): value is ClaimRecord {
  const claim = value as Partial<ClaimRecord> | null | undefined;
  return (
    typeof claim?.path === "string" &&
    isPlainPath(claim.path) &&
    isNumber(claim.device) &&
    isNumber(claim.inode) &&
    isPerson(claim.operator) &&
    typeof claim.since === "string" &&
    [undefined, "claim", "unclaim"].includes(claim.unfinished) &&
    typeof claim.hadLists === "boolean" &&
    (claim.formerType === undefined || /^[A-Za-z0-9_.-]{1,256}$/.test(`${claim.formerType}`))
  );
}

function isPerson(value: unknown): boolean {
  const person = value as Partial<Claim["operator"]> | null | undefined;
  const isNamed = typeof person?.name === "string" && person.name !== "" && printable(person.name) === person.name;
  return isNamed && isId(person.uid) && isId(person.gid);
}

/** Nobody's claim is root's. */
function isId(value: unknown): boolean {
  return isNumber(value) && (value as number) > 0 && (value as number) < 4_294_967_295;
}

function isNumber(value: unknown): boolean {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

/** Two hashes (FNV-1a of 32 bits, from two beginnings) over the path's bytes, in hexadecimal. */
function hashOf(path: string): string {
  const hashFrom = (beginning: number) => {
    let hash = beginning;
    for (const byte of encodeUtf8(path)) hash = Math.imul(hash ^ byte.charCodeAt(0), 0x01000193);
    return (hash >>> 0).toString(16).padStart(8, "0");
  };
  return hashFrom(0x811c9dc5) + hashFrom(0x2f0b4a27);
}
