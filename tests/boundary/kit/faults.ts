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
  /** Why the case is one although the call may not come, or not with this count. */
  mayNotHappen?: string;
}

/** How the helper signals, where the kernel lets it hold a process: by descriptor. */
export const signals = "pidfd_send_signal";

/** All ways to start a process. */
export const forks = "fork,vfork,clone,clone3";

/** What strace saw of the last run under a fault. */
const trace = "/run/lab/injected";
/** The exit code of a run in which the fault did not happen: no code of the helper's. */
const neverHappened = 99;

/**
 * The helper with these options, and this fault (`error=EIO`, `signal=KILL`, `retval=0`) at this call. A run in which the
 * fault did not happen proves nothing and ends with 99.
 */
export function helperWith(call: Call, fault: string, ...options: string[]): string[] {
  return injecting(call, fault, [helper, ...options]);
}

/** Any command with this fault at this call of it, see `helperWith`. */
export function injecting(call: Call, fault: string, command: string[]): string[] {
  const { calls, path, when, mayNotHappen } = call;
  const at = when === undefined ? "" : `:when=${when}`;
  const about = path === undefined ? [] : ["-P", path];
  const words = ["strace", "-o", trace, ...about, "-e", `trace=${calls}`, "-e", `inject=${calls}:${fault}${at}`];
  const strace = [...words, ...command].map(quoted).join(" ");
  const didHappen = mayNotHappen === undefined ? `grep -qE '${signOf(fault)}' ${trace} || exit ${neverHappened}` : "";
  return ["sh", "-c", `rm -f ${trace}; ${strace}; code=$?; ${didHappen}\nexit $code`];
}

/** How strace marks the fault. */
function signOf(fault: string): string {
  const signal = /^signal=(?:SIG)?(\w+)$/.exec(fault)?.[1];
  if (signal === "KILL") return "^\\+\\+\\+ killed by SIGKILL";
  return signal === undefined ? "\\((INJECTED|DELAYED)" : `^--- SIG${signal} `;
}

/** A script that runs the helper in a mount namespace of its own, after this damage to what it sees. */
export function whereHelperSees(damage: string, ...options: string[]): string {
  return inOwnMounts(`${damage}\nexec ${[helper, ...options].join(" ")}`);
}

/** A script that runs another one in a mount namespace of its own. */
export function inOwnMounts(script: string): string {
  return `exec unshare --mount sh -ec ${quoted(script)}`;
}

/**
 * A script that cuts off the FUSE file system that is mounted there, so that whoever waits for it is let go. A connection
 * bears its mount's minor number; the others in that directory are those of all hosts of the lab, which share a kernel.
 */
export function lettingGoOf(place: string): string {
  const mount = `s|^[0-9]* [0-9]* 0:\\([0-9]*\\) / ${place} .*|\\1|p`;
  return `for minor in $(sed -n '${mount}' /proc/self/mountinfo); do echo 1 >/sys/fs/fuse/connections/$minor/abort; done`;
}

/** The slice's directory, without a shell's help. */
export async function sliceOf(host: LabHost): Promise<string> {
  return `/sys/fs/cgroup/user.slice/user-${await accountUid(host)}.slice`;
}
