// SPDX-License-Identifier: Apache-2.0
// `claim PATH`: lets the account work in a project of the operator who asks. Root's record comes first and says that the
// claim is unfinished, the access control lists after it: whatever interrupts it, nothing is open that is not on record.

import type { Ground } from "../ground/ground.ts";
import { claimDirectory } from "../ground/places.ts";
import { writeRecord } from "../ground/records.ts";
import { types } from "../ground/selinux.ts";
import { accountName } from "../stop/identity.ts";
import { EEXIST, isErrno } from "../stop/kernel.ts";
import { type ClaimRecord, claimRecordPath, describeUnknown, readClaims } from "./claims.ts";
import { findFormerType, labelProject } from "./labels.ts";
import { hasLists, openToAccount } from "./lists.ts";
import { aloneWithClaims, aloneWithProject } from "./locks.ts";
import { isAtOrBelow, shownPath } from "./paths.ts";
import { findProject, type Project, whyOutOfReach } from "./project.ts";
import { again, exitCodes, fail, failList, findAsker, refuse, tell } from "./request.ts";

export async function claim(ground: Ground, word: string): Promise<number> {
  const found = findAsker(ground);
  if (typeof found === "string") return refuse(ground, found);
  const { asker, account } = found;
  if (asker.isRoot) return refuse(ground, "a project is claimed by the operator whose it is, not by root");
  const project = findProject(ground, word, asker.person);
  if (typeof project === "string") return refuse(ground, project);
  const unreachable = whyOutOfReach(ground, project.path) ?? whyLinksAreLoose(ground);
  if (unreachable !== undefined) return refuse(ground, unreachable);
  const { path, owner } = project;
  return aloneWithProject(ground, { path, operatorUid: owner.uid }, () => claimProject(ground, project, account));
}

/**
 * Whether the project had lists takes as long as it is large, and so is looked at before anything is on record. Nobody
 * else has changed this project's own record since the first look; what is around it or in it is looked at again.
 */
async function claimProject(ground: Ground, project: Project, account: number): Promise<number> {
  const first = findBefore(ground, project);
  if (typeof first === "string") return refuse(ground, first);
  const hadLists = known(first, project)?.hadLists ?? (await hasLists(ground, project));
  if (typeof hadLists === "string") return refuse(ground, `${shownPath(project.path)}: ${hadLists}`);
  const former = findFormerType(ground, project);
  if (typeof former === "string") return refuse(ground, `${shownPath(project.path)}: ${former}`);
  // One that has the type of projects already had another before the first claim.
  const type = former.type ?? known(first, project)?.formerType;
  const found: Found = { hadLists, ...(type === undefined ? {} : { formerType: type }) };
  const noted = await aloneWithClaims(ground, () => note(ground, project, found));
  if (typeof noted === "string") return refuse(ground, noted);
  if ("failed" in noted) return fail(ground, noted.failed);
  return openProject(ground, project, account, noted.record, noted.before);
}

/** What was there before the first claim. */
type Found = Pick<ClaimRecord, "hadLists" | "formerType">;

type Noted = { record: ClaimRecord; before: ClaimRecord | undefined } | { failed: string } | string;

/** Puts the claim on record as unfinished, unless another one is in the way: then a sentence says which. */
function note(ground: Ground, project: Project, found: Found): Noted {
  const before = findBefore(ground, project);
  if (typeof before === "string") return before;
  const record = recordOf(ground, project, before, found);
  const made = ground.makeDirectory(claimDirectory, 0o755);
  if (made !== 0 && made !== EEXIST) return { failed: `${claimDirectory} cannot be made (errno ${made}): NOT claimed` };
  const file = claimRecordPath(project.path);
  const noted = writeRecord(ground, file, { ...record, unfinished: "claim" });
  return noted === 0 ? { record, before } : { failed: `${file} cannot be written (errno ${noted}): NOT claimed` };
}

/** A claim of the same directory. Some filesystems get another device number at each mount; the inode stays. */
function known(before: ClaimRecord | undefined, project: Project): ClaimRecord | undefined {
  return before?.inode === project.inode ? before : undefined;
}

/**
 * The claim of this path that is there already; a sentence where another one is in the way, or might be: no
 * project is inside another, and one record never takes the place of another.
 */
function findBefore(ground: Ground, project: Project): ClaimRecord | undefined | string {
  const { claims, problems } = readClaims(ground);
  if (problems.length > 0) return describeUnknown(problems);
  const shown = shownPath(project.path);
  for (const other of claims) {
    if (other.path === project.path) continue;
    if (isAtOrBelow(project.path, other.path)) return `${shown} is inside ${shownPath(other.path)}, which is claimed`;
    if (isAtOrBelow(other.path, project.path)) return `${shown} contains ${shownPath(other.path)}, which is claimed`;
    if (other.device === project.device && other.inode === project.inode) {
      return `${shown} is the same directory as ${shownPath(other.path)}, which is claimed`;
    }
    if (claimRecordPath(other.path) === claimRecordPath(project.path)) {
      return `${shown} would be recorded where ${shownPath(other.path)} is: rename the directory`;
    }
  }
  const before = claims.find(({ path }) => path === project.path);
  if (before === undefined || before.operator.uid === project.owner.uid) return before;
  return `${shown} was claimed by ${before.operator.name}; they or root end that claim first: ${again("unclaim", project.path)}`;
}

function recordOf(ground: Ground, project: Project, before: ClaimRecord | undefined, found: Found): ClaimRecord {
  const { path, device, inode, owner } = project;
  const since = known(before, project)?.since ?? new Date(ground.wallClockMs()).toISOString();
  return { path, device, inode, operator: owner, since, ...found };
}

async function openProject(
  ground: Ground,
  project: Project,
  account: number,
  record: ClaimRecord,
  before: ClaimRecord | undefined,
): Promise<number> {
  const file = claimRecordPath(project.path);
  const opened = await openToAccount(ground, project, account);
  if (typeof opened === "object" && "nothing" in opened) return withdraw(ground, project, before, opened.nothing);
  if (typeof opened === "string") {
    return fail(
      ground,
      `${shownPath(project.path)} is opened to ${accountName} in part (${opened}), and cannot be used. To go on: ${again("claim", project.path)}. To take it back: ${again("unclaim", project.path)}`,
    );
  }
  const labelled = labelProject(ground, project, account);
  if (typeof labelled === "string") {
    const shown = shownPath(project.path);
    return fail(ground, `${shown}: ${labelled}, and it cannot be used. Once more: ${again("claim", project.path)}`);
  }
  const written = writeRecord(ground, file, record);
  if (written !== 0) {
    return fail(ground, `${file} cannot be written (errno ${written}). Once more: ${again("claim", project.path)}`);
  }
  tell(
    ground,
    `${known(before, project) === undefined ? "claimed" : "already claimed; opened again"}: ${shownPath(project.path)}. Sessions may read and write everything in it, .git included; to end that: ${again("unclaim", project.path)}`,
  );
  if (opened.accounts > 0) {
    tell(
      ground,
      `${opened.accounts} of what is in it belongs to ${accountName} itself; to get that back: ${again("reclaim", project.path)}`,
    );
  }
  if (labelled !== undefined && labelled.left > 0) {
    tell(ground, `${labelled.left} of what is in it has an SELinux type of its own and keeps it`);
  }
  let code: number = exitCodes.done;
  if (opened.failed > 0) {
    const what = `opened to ${accountName}, since only what is yours can be (the rest is; .: the project)`;
    code = failList(ground, opened.failed, what, opened.failures);
  }
  if (labelled === undefined || labelled.failed === 0) return code;
  return failList(ground, labelled.failed, `given the SELinux type ${types.project}`, labelled.failures);
}

/** Nothing was opened: the record is as it was before. */
function withdraw(ground: Ground, project: Project, before: ClaimRecord | undefined, why: string): number {
  const file = claimRecordPath(project.path);
  const errno = before === undefined ? ground.remove(file) : writeRecord(ground, file, before);
  const left = errno === 0 ? "" : `, and ${file} cannot be put back (errno ${errno})`;
  return fail(ground, `${shownPath(project.path)} could not be opened to ${accountName} (${why})${left}: NOT claimed`);
}

/**
 * With this setting off anybody can give a second name to a file that they may not read, and so bring a file of the
 * owner's into a project, where it would be opened. systemd turns it on.
 */
function whyLinksAreLoose(ground: Ground): string | undefined {
  const setting = ground.readText("/proc/sys/fs/protected_hardlinks");
  if (!isErrno(setting) && setting.trim() === "1") return undefined;
  return "fs.protected_hardlinks is not 1 on this host: files from elsewhere could be linked into the project and opened with it; as root: sysctl -w fs.protected_hardlinks=1";
}
