// SPDX-License-Identifier: Apache-2.0
// The SELinux type of a project: where the policy has one for projects, a claim gives it to what is in them, and the end
// of the claim gives back the type that the project's directory had. Of a label nothing but the type is changed, and only
// from types of plain content: what a policy has put under a type of its own stays there.

import type { Ground, Relabelled } from "../ground/ground.ts";
import { findContext, hasSelinux, typeOf, types } from "../ground/selinux.ts";
import { isErrno } from "../stop/kernel.ts";
import { printable } from "../stop/printable.ts";
import type { ClaimRecord } from "./claims.ts";
import { pastedPath } from "./paths.ts";
import type { Project } from "./project.ts";

/** Types that say nothing about their content but where it lies. */
const plain: readonly string[] = [
  "user_home_t",
  "user_tmp_t",
  "tmp_t",
  "var_t",
  "var_lib_t",
  "usr_t",
  "mnt_t",
  "default_t",
  "unlabeled_t",
  "file_t",
  // What a session has moved in from its own home or temporary directory.
  types.home,
  types.tmp,
];

/** The type that a claim has to remember; undefined: labels are not this host's, or there is nothing to go back to. */
export function findFormerType(ground: Ground, { path }: Project): { type: string | undefined } | string {
  const has = hasType(ground);
  if (typeof has === "string") return has;
  if (!has) return { type: undefined };
  const context = ground.fileContext(path);
  if (isErrno(context)) return `its SELinux label cannot be read (errno ${context})`;
  const type = typeOf(context);
  if (type === types.project) return { type: undefined };
  if (type !== undefined && plain.includes(type)) return { type };
  return `it has the SELinux type ${printable(type ?? context, 100)}, which a claim does not change; if that is yours to do: chcon -R -t user_home_t ${pastedPath(path)}`;
}

/** Gives the type of projects; undefined where the policy has none. */
export function labelProject(ground: Ground, project: Project, account: number): Relabelled | undefined | string {
  const has = hasType(ground);
  if (typeof has === "string") return has;
  return has ? change(ground, project, account, plain, types.project) : undefined;
}

/** Gives back the type that the directory had; undefined where the claim changed none. */
export function unlabelProject(
  ground: Ground,
  project: Project,
  account: number,
  { formerType }: ClaimRecord,
): Relabelled | undefined | string {
  if (formerType === undefined || !hasSelinux(ground)) return undefined;
  const ours = [types.project, types.home, types.tmp];
  return change(ground, project, account, ours, formerType);
}

function hasType(ground: Ground): boolean | string {
  if (!hasSelinux(ground)) return false;
  const context = findContext(ground, "object_r", types.project);
  if (isErrno(context)) return `whether SELinux has a type for projects cannot be told (errno ${context})`;
  return context !== undefined;
}

function change(ground: Ground, project: Project, account: number, from: readonly string[], to: string) {
  const { path, device, inode, owner } = project;
  const relabelled = ground.relabel({ path, device, inode, owner: owner.uid, account, from, to });
  return isErrno(relabelled) ? `its SELinux labels cannot be changed (errno ${relabelled})` : relabelled;
}
