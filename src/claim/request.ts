// SPDX-License-Identifier: Apache-2.0
// What the helper is asked for and by whom, and how it answers. Only the words and sudo's two variables come from the
// caller; every word is checked here or where it is used.

import type { Ground, HandedBack } from "../ground/ground.ts";
import { isAskedByRoot, operatorOf } from "../ground/operator.ts";
import type { Person } from "../ground/records.ts";
import { findIdentity } from "../stop/identity.ts";
import type { Stream } from "../stop/kernel.ts";
import { type ClaimRecord, readClaims } from "./claims.ts";
import { isAtOrBelow, pastedPath, shownPath } from "./paths.ts";
import { pathOf, realPathOf } from "./project.ts";

export const exitCodes = { done: 0, failed: 1, usage: 2, refused: 3 } as const;

/** Root itself, or an operator through sudo. */
export type Asker = { isRoot: true } | { isRoot: false; person: Person };

/** Who asks and for whom (the account's uid), or a sentence that says why nobody is served. */
export function findAsker(ground: Ground): { asker: Asker; account: number } | string {
  if (!ground.isRoot()) return "only root can do this; as an operator use ai-tools --claim, --unclaim or --reclaim";
  const identity = findIdentity(ground);
  if (typeof identity === "string") return identity;
  if (isAskedByRoot(ground)) return { asker: { isRoot: true }, account: identity.uid };
  const operator = operatorOf(ground);
  if (typeof operator === "string") return operator;
  return { asker: { isRoot: false, person: operator.person }, account: identity.uid };
}

/** Whether a claim may be ended or its files given back by whoever asks. */
export function mayActOn(asker: Asker, claim: ClaimRecord): boolean {
  return asker.isRoot || asker.person.uid === claim.operator.uid;
}

/** The claim of exactly the path that a word means, or the claim that it is inside of. */
export interface FoundClaim {
  /** The path as text. */
  path: string;
  claim: ClaimRecord | undefined;
  /** What could be any claim, in sentences. */
  problems: string[];
}

/**
 * The claim at or above the path that a word means, by the path as it is written and by its real one: what was claimed
 * may be gone or replaced by now. A sentence where the word means no path.
 */
export function findClaim(ground: Ground, word: string): FoundClaim | string {
  const meant = pathOf(ground, word);
  if (typeof meant === "string") return meant;
  const { claims, problems } = readClaims(ground);
  const ways = [meant.path, realPathOf(ground, meant.written)];
  const claim = claims.find(({ path }) => ways.some((way) => isAtOrBelow(way, path)));
  const isClaimed = claim !== undefined && ways.includes(claim.path);
  return { path: isClaimed ? claim.path : meant.path, claim, problems };
}

/** What is to be said once no lock is held: the caller's terminal or pipe may take nothing, for as long as they like. */
const heldBack = new WeakMap<Ground, { stream: Stream; text: string }[]>();

/** From now on what is told is kept, until `sayHeldBack`. */
export function holdBack(ground: Ground): void {
  heldBack.set(ground, []);
}

export function sayHeldBack(ground: Ground): void {
  const kept = heldBack.get(ground) ?? [];
  heldBack.delete(ground);
  for (const { stream, text } of kept) ground.print(stream, text);
}

function say(ground: Ground, stream: Stream, text: string): void {
  const kept = heldBack.get(ground);
  if (kept === undefined) ground.print(stream, text);
  else kept.push({ stream, text });
}

/** Tells what was done. */
export function tell(ground: Ground, text: string): void {
  say(ground, "out", `ai-tools: ${text}.\n`);
}

/** Nothing was changed. */
export function refuse(ground: Ground, why: string): number {
  say(ground, "err", `ai-tools: refused: ${why}. Nothing was changed.\n`);
  return exitCodes.refused;
}

/** It could not be done, or not wholly. */
export function fail(ground: Ground, why: string): number {
  say(ground, "err", `ai-tools: ${why}.\n`);
  return exitCodes.failed;
}

/** "N could not be WHAT:" and the first of them, printable already, one a line. */
export function failList(ground: Ground, failed: number, what: string, failures: readonly string[]): number {
  const more = failed > failures.length ? [`and ${failed - failures.length} more`] : [];
  const lines = [`ai-tools: ${failed} could not be ${what}:`, ...failures, ...more];
  say(ground, "err", `${lines.join("\n  ")}\n`);
  return exitCodes.failed;
}

/** What a handback did, in words. */
export function describeHandBack(handed: HandedBack, path: string, owner: Person): string {
  const files = handed.changed === 1 ? "1 file or directory" : `${handed.changed} files and directories`;
  const mounts = handed.mounts === 0 ? "" : `; ${handed.mounts} mounted below it left as they are`;
  return `${files} in ${shownPath(path)} given back to ${shownPath(owner.name)}${mounts}`;
}

/** How to do the same again. */
export function again(verb: "claim" | "unclaim" | "reclaim", path: string): string {
  return `ai-tools --${verb} ${pastedPath(path)}`;
}
