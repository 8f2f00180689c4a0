// SPDX-License-Identifier: Apache-2.0
// Faults around the installed helper, made without changing it: strace lets one of its system calls fail, or kills or
// interrupts the helper at it, and a mount namespace of its own shows it another host than everybody else sees.

import type { LabHost } from "../../../src/tooling/lab/host.ts";
import { quoted } from "../../../src/tooling/lab/terminal.ts";
import { accountUid } from "../../../src/tooling/tempers/payloads.ts";
import { helper } from "./stop.ts";

/** A system call of the helper: by its names (strace takes several, by comma), and by the path that it is about. */
export interface Call {
  calls: string;
  path?: string;
  /** strace's word for which of them: `3` the third, `3+` from the third on. Default: all. */
  when?: string;
}

/** All ways to start a process. */
export const forks = "fork,vfork,clone,clone3";

/** The words that let what happens at this call be `fault` (`error=EIO`, `signal=KILL`, `retval=0`), before a command. */
export function injecting({ calls, path, when }: Call, fault: string): string[] {
  const at = when === undefined ? "" : `:when=${when}`;
  const about = path === undefined ? [] : ["-P", path];
  return ["strace", "-qq", "-o", "/dev/null", ...about, "-e", `trace=${calls}`, "-e", `inject=${calls}:${fault}${at}`];
}

/** The helper with these options, and this fault at this call. */
export function helperWith(call: Call, fault: string, ...options: string[]): string[] {
  return [...injecting(call, fault), helper, ...options];
}

/** A script that runs the helper in a mount namespace of its own, after this damage to what it sees. */
export function whereHelperSees(damage: string, ...options: string[]): string {
  return inOwnMounts(`${damage}\nexec ${[helper, ...options].join(" ")}`);
}

/** A script that runs another one in a mount namespace of its own. */
export function inOwnMounts(script: string): string {
  return `exec unshare --mount sh -ec ${quoted(script)}`;
}

/** The slice's directory, without a shell's help. */
export async function sliceOf(host: LabHost): Promise<string> {
  return `/sys/fs/cgroup/user.slice/user-${await accountUid(host)}.slice`;
}
