// SPDX-License-Identifier: Apache-2.0
// What SELinux will hold a session in, as it is found before the start, and why none may be started. The launcher looks
// once more at itself (ai-tools-session).

import { launcherPath } from "../ground/places.ts";
import type { Selinux } from "../ground/selinux.ts";
import { typeOf, types } from "../ground/selinux.ts";
import { isErrno } from "../stop/kernel.ts";
import { printable } from "../stop/printable.ts";

export interface Confinement {
  /** What PID 1 is asked to start it in; undefined: as SELinux would have it by itself. */
  context: string | undefined;
  /** What the launcher is told that it must find. */
  held: "ai_tools_t" | "permissive" | "off";
  /** What the operator has to know. */
  warning?: string;
}

/** A sentence (without a full stop) where a session would be refused by SELinux, or would run unheld although it enforces. */
export function confinementOf(selinux: Selinux): Confinement | string {
  if (selinux.mode === "off") return { context: undefined, held: "off" };
  if (selinux.mode === "unknown") return `whether SELinux would hold the session cannot be told: ${selinux.why}`;
  const { mode, session: context, isDomainPermissive, launcher } = selinux;
  if (mode === "permissive") {
    const warning = "not confined: SELinux is permissive";
    return { context, held: context === undefined ? "permissive" : types.session, warning };
  }
  if (context === undefined)
    return "SELinux is enforcing, and its policy has no domain for sessions; as root: dnf install ai-tools-selinux";
  if (isErrno(launcher)) return `the SELinux label of ${launcherPath} cannot be read (errno ${launcher})`;
  if (typeOf(launcher) !== types.launcher)
    return `${launcherPath} has the SELinux label ${printable(launcher)} and not ${types.launcher}; as root: restorecon -RFv /usr/lib/ai-tools`;
  if (isDomainPermissive)
    return { context, held: types.session, warning: `not confined: SELinux is permissive for ${types.session}` };
  return { context, held: types.session };
}
