// SPDX-License-Identifier: Apache-2.0
// Frees processes that a file system in user space has hung: SIGKILL does not reach them before its connection is cut off.
// Only connections that these very processes see a mount of.

import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { readProc } from "./process-identity.ts";

/** Cuts off every FUSE connection that one of these processes sees mounted; answers with their numbers. */
export function cutOffHungFiles(pids: readonly number[]): string[] {
  const connections = [...new Set(pids.flatMap(mountsOf).flatMap(fuseConnections))];
  if (connections.length === 0) return [];
  // In a mount namespace of its own: the control files are not mounted on every machine.
  const script = `mount -t fusectl none /sys/fs/fuse/connections || exit
    for number; do if [ -e "/sys/fs/fuse/connections/$number" ]; then echo 1 >"/sys/fs/fuse/connections/$number/abort"; fi; done`;
  spawnSync("unshare", ["-m", "--propagation", "private", "sh", "-c", script, "sh", ...connections]);
  return connections;
}

/** Numbers of the connections (the minor device numbers) in the text of a mountinfo file, proc(5). */
export function fuseConnections(mountinfo: string): string[] {
  return mountinfo.split("\n").flatMap((line) => {
    const [mount = "", rest = ""] = line.split(" - ");
    return /^fuse(\.|blk\b| )/.test(rest)
      ? [mount.split(" ")[2]?.split(":")[1] ?? ""].filter((minor) => minor !== "")
      : [];
  });
}

/** What each thread sees: that of a dead leader is empty. */
function mountsOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap(
      (thread) => readProc(`/proc/${pid}/task/${thread}/mountinfo`) ?? [],
    );
  } catch (error) {
    // Gone meanwhile, or a thread that has no mounts any more (EINVAL).
    if (["ENOENT", "ESRCH", "EINVAL"].includes((error as NodeJS.ErrnoException).code ?? "")) return [];
    throw error;
  }
}
