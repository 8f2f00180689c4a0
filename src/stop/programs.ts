// SPDX-License-Identifier: Apache-2.0
// The few programs that a stop runs around the kill, by absolute path. Each may be missing, hang or fail, and the stop
// still happens; none decides or proves anything, and none runs between consent and verdict.

import { type Child, type Host, isErrno } from "./kernel.ts";
import { limits } from "./limits.ts";

export const systemctlPath = "/usr/bin/systemctl";
export const loggerPath = "/usr/bin/logger";
export const chmodPath = "/usr/bin/chmod";

export type Ran =
  | { kind: "ended"; code: number; output: string }
  | { kind: "hung" }
  | { kind: "not started"; errno: number };

/** Runs a program until it ends or `nowMs` reaches the deadline; one that outlives it is killed, alone. */
export async function runProgram(host: Host, argv: string[], deadlineMs: number): Promise<Ran> {
  const child = host.startProgram(argv, { output: true });
  if (isErrno(child)) return { kind: "not started", errno: child };
  if (!(await waitFor(host, child, deadlineMs))) {
    child.abandon();
    return { kind: "hung" };
  }
  return { kind: "ended", code: child.exitCode() ?? 0, output: child.output() };
}

/** Waits for a child; false when the deadline came first. */
export async function waitFor(host: Host, child: Child, deadlineMs: number): Promise<boolean> {
  while (child.exitCode() === undefined) {
    if (host.nowMs() >= deadlineMs) return false;
    await host.sleep(limits.childPollMs);
  }
  return true;
}
