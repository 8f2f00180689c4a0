// SPDX-License-Identifier: Apache-2.0
// The access control lists of a project: given to the account, taken back, looked for. The programs of the acl package
// do it, as the project's owner and in a file tree that holds nothing but that project: whatever the account does with
// links meanwhile, no list outside the project can be reached. What is mounted in the project is not in that tree either.

import type { Ground } from "../ground/ground.ts";
import { decodeUtf8 } from "../ground/records.ts";
import { isErrno } from "../stop/kernel.ts";
import { printable } from "../stop/printable.ts";
import type { Project } from "./project.ts";

/** What could not be changed in a project; a sentence (without a full stop): nothing can be said of any of it. */
export type Listed = Changes | string;

export interface Changes {
  failed: number;
  /** The first of those, printable. */
  failures: string[];
  /** What is the account's own besides: whoever owns a file needs no entry, and only the owner could make one. */
  accounts: number;
}

/** A project of millions of files; longer means that its filesystem hangs. */
const mostMs = 30 * 60_000;
const pollMs = 50;
const mostFailuresShown = 10;
/** Where the tree is put together, in a mount namespace of its own: nobody else sees it, and it goes with the program. */
const tree = "/run/ai-tools";
const replacedCode = 71;
const noTreeCode = 72;
const notFoundCode = 127;

/**
 * `sh -c`, with the project's path, `device:inode` and `uid:gid`, then the program and its arguments. The mount is made of
 * the directory that was entered and compared, whatever its path leads to by then.
 */
const inTreeOfItsOwn = `
cd -P -- "$1" || exit ${replacedCode}
[ "$(stat -c %d:%i .)" = "$2" ] || exit ${replacedCode}
mount -t tmpfs -o mode=0755,nosuid,nodev ai-tools ${tree} &&
mkdir ${tree}/project ${tree}/usr &&
mount -c --bind . ${tree}/project &&
mount -o bind,ro /usr ${tree}/usr || exit ${noTreeCode}
for link in /bin /lib /lib64; do
  [ ! -L $link ] || cp -P $link ${tree}/ || exit ${noTreeCode}
done
owner=$3
shift 3
exec setpriv --no-new-privs --inh-caps=-all chroot --userspec="$owner" --groups= ${tree} "$@"
`;

/**
 * Lets the account read and write everything in a project, and enter what others may enter or execute; what is made in
 * its directories later as well, for the account and for the owner. `nothing`: it stays as it was, for that reason.
 */
export async function openToAccount(
  ground: Ground,
  project: Project,
  account: number,
): Promise<Listed | { nothing: string }> {
  const entries = `u:${account}:rwX,d:u:${account}:rwX,d:u:${project.owner.uid}:rwX`;
  // Where not even the project's own directory can be opened, nothing is: no such lists on this filesystem, for example.
  const first = await changeLists(ground, project, account, ["-m", entries]);
  if (typeof first === "string") return { nothing: first };
  if (first.failed > 0) return { nothing: first.failures.join("; ") };
  return changeLists(ground, project, account, ["-R", "-P", "-m", entries]);
}

/** Takes it back: every list, or where there were others before (`hadLists`) the entries that `openToAccount` made. */
export async function closeToAccount(ground: Ground, project: Project, account: number, hadLists: boolean) {
  const ours = `u:${account},d:u:${account},d:u:${project.owner.uid}`;
  return changeLists(ground, project, account, ["-R", "-P", ...(hadLists ? ["-x", ours] : ["-b"])]);
}

/** Whether anything in a project has a list, or a directory one for what is made in it; or a sentence. */
export async function hasLists(ground: Ground, project: Project): Promise<boolean | string> {
  const ran = await runInTree(ground, project, ["/usr/bin/getfacl", "-R", "-P", "-s", "-n", "-p", "/project"]);
  return typeof ran === "string" ? ran : ran.output.split("\n").some((line) => line.startsWith("# file: "));
}

async function changeLists(ground: Ground, project: Project, account: number, options: string[]): Promise<Listed> {
  const ran = await runInTree(ground, project, ["/usr/bin/setfacl", ...options, "/project"]);
  if (typeof ran === "string") return ran;
  // A name can hold a line break.
  const complaints = ran.output
    .trimEnd()
    .split(/\n(?=setfacl: )/)
    .filter((complaint) => complaint !== "");
  const others = complaints.filter((complaint) => !isAboutAccounts(ground, project, account, complaint));
  // It says 1 where something could not be changed, and names each on a line.
  const failed = ran.code !== 0 && complaints.length === 0 ? 1 : others.length;
  const failures = others.slice(0, mostFailuresShown).map(shownComplaint);
  return { failed, failures, accounts: complaints.length - others.length };
}

/** Whether a complaint is about a file of the account's own, as far as can be told by now: it decides a sentence only. */
function isAboutAccounts(ground: Ground, project: Project, account: number, complaint: string): boolean {
  const [, name] = /^setfacl: \/project(\/.*): Operation not permitted$/s.exec(complaint) ?? [];
  if (name === undefined) return false;
  const stat = ground.statPath(`${project.path}${decodeUtf8(name)}`);
  return !isErrno(stat) && stat.uid === account;
}

/** `setfacl: /project/PATH: REASON`, as the owner knows the path. */
function shownComplaint(complaint: string): string {
  const said = complaint.replace(/^setfacl: \/project(?=[/:])/, ".");
  return printable(said, 400);
}

async function runInTree(ground: Ground, project: Project, argv: string[]) {
  const { path, device, inode, owner } = project;
  const named = [path, `${device}:${inode}`, `${owner.uid}:${owner.gid}`];
  const inTree = ["/usr/bin/sh", "-c", inTreeOfItsOwn, "sh", ...named, ...argv];
  const child = ground.startProgram(["/usr/bin/unshare", "--mount", ...inTree], { output: true });
  if (isErrno(child)) return `no program could be started (errno ${child})`;
  const deadlineMs = ground.nowMs() + mostMs;
  while (child.exitCode() === undefined) {
    if (ground.interruption() !== 0 || ground.nowMs() >= deadlineMs) {
      child.abandon();
      return ground.interruption() !== 0 ? "interrupted" : `${argv[0]} did not come to its end`;
    }
    await ground.sleep(pollMs);
  }
  return outcomeOf(child.exitCode() ?? noTreeCode, child.output(), argv);
}

/** setfacl and getfacl end with 0, 1 or 2; everything else comes from the way to them. */
function outcomeOf(code: number, output: string, argv: string[]): { code: number; output: string } | string {
  if (code <= 1) return { code, output };
  if (code === replacedCode) return "it is another directory now, or cannot be entered";
  if (code === notFoundCode) return `${argv[0]} is missing: install the package acl`;
  return `${argv[0]} could not be run (exit code ${code}): ${printable(output.trim(), 400)}`;
}
