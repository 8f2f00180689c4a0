// SPDX-License-Identifier: Apache-2.0
// What the kernel says about SELinux: whether it refuses anything, whether its policy has a domain for sessions, and how
// the launcher that leads into it is labelled. The kernel is asked, and no list of modules: what was installed and not
// loaded holds nobody.

import { EINVAL, ENOENT, type Errno, isErrno } from "../stop/kernel.ts";
import { printable } from "../stop/printable.ts";
import { decimal } from "../stop/proc-files.ts";
import type { Ground } from "./ground.ts";
import { launcherPath } from "./places.ts";

/** The types of the policy's module `ai_tools` that the programs know by name. */
export const types = {
  session: "ai_tools_t",
  launcher: "ai_tools_exec_t",
  project: "ai_tools_project_t",
  home: "ai_tools_home_t",
  tmp: "ai_tools_tmp_t",
} as const;

/** Where the kernel answers (selinuxfs). */
const kernel = "/sys/fs/selinux";

export type Selinux =
  /** None, or none for this part of the host: what a container sees. */
  { mode: "off" } | { mode: "unknown"; why: string } | Enabled;

export interface Enabled {
  mode: "permissive" | "enforcing";
  /** The context that a session gets; undefined: this policy has none for it. */
  session: string | undefined;
  /** The policy refuses sessions nothing, whatever the mode is (`semanage permissive`). */
  isDomainPermissive: boolean;
  /** The context of the launcher's file. */
  launcher: string | Errno;
}

/** Whether this host, or this part of it, has SELinux at all. Unreadable is there. */
export function hasSelinux(ground: Ground): boolean {
  return ground.readText(`${kernel}/enforce`) !== ENOENT;
}

/** Looks; whoever is not root may be told less ("unknown"). */
export function findSelinux(ground: Ground): Selinux {
  const enforce = ground.readText(`${kernel}/enforce`);
  if (enforce === ENOENT) return { mode: "off" };
  const unknown = (what: string, errno: Errno): Selinux => ({ mode: "unknown", why: `${what} (errno ${errno})` });
  if (isErrno(enforce)) return unknown(`${kernel}/enforce cannot be read`, enforce);
  const mode = ({ 0: "permissive", 1: "enforcing" } as const)[decimal(enforce.trim()) ?? 2];
  if (mode === undefined) return { mode: "unknown", why: `${kernel}/enforce is "${printable(enforce, 40)}"` };
  const launcher = ground.fileContext(launcherPath);
  const session = findContext(ground, "system_r", types.session);
  if (isErrno(session)) return unknown("whether the policy has a domain for sessions cannot be told", session);
  if (session === undefined) return { mode, session, isDomainPermissive: false, launcher };
  const isDomainPermissive = isPermissive(ground, session);
  if (isErrno(isDomainPermissive))
    return unknown("what the policy refuses sessions cannot be told", isDomainPermissive);
  return { mode, session, isDomainPermissive, launcher };
}

/** The context that the system gives what it makes itself of this type; undefined: the policy knows no such thing. */
export function findContext(ground: Ground, role: "system_r" | "object_r", type: string): string | undefined | Errno {
  const levels = ground.readText(`${kernel}/mls`);
  if (isErrno(levels)) return levels;
  const context = `system_u:${role}:${type}${levels.trim() === "0" ? "" : ":s0"}`;
  const answer = ground.ask(`${kernel}/context`, context);
  return answer === EINVAL ? undefined : isErrno(answer) ? answer : context;
}

/** The type in a context; undefined where the text is none. */
export function typeOf(context: string): string | undefined {
  return context.split(":")[2];
}

/**
 * From the flags of any decision about the domain (`AVD_FLAGS_PERMISSIVE` of the kernel's security.h): question "source
 * target class", answer "allowed decided auditallow auditdeny sequence flags", hexadecimal.
 */
function isPermissive(ground: Ground, context: string): boolean | Errno {
  const number = ground.readText(`${kernel}/class/process/index`);
  if (isErrno(number)) return number;
  const answer = ground.ask(`${kernel}/access`, `${context} ${context} ${number.trim()}`);
  if (isErrno(answer)) return answer;
  const flags = Number.parseInt(answer.split(" ")[5] ?? "", 16);
  return Number.isNaN(flags) ? EINVAL : (flags & 1) === 1;
}
