// SPDX-License-Identifier: Apache-2.0
// One lock for each project: held by whoever hands it back, so that no session begins in it meanwhile, whose new files
// would be taken away from it. A session records itself first and looks at the lock afterwards, and a handback takes the
// lock first and looks for sessions afterwards, so that one of the two sees the other.

import type { Ground } from "../ground/ground.ts";
import { EAGAIN, type Handle, isErrno } from "../stop/kernel.ts";
import { limits } from "./places.ts";
import { waitingDirectory } from "./session-records.ts";

/** The file of a project's lock: by what its path led to, and no unit's name. Of this boot. */
export function lockPath({ device, inode }: { device: number; inode: number }): string {
  return `${waitingDirectory}/${device}-${inode}.lock`;
}

/**
 * Takes the lock, waiting up to a limit for whoever has it; "busy" behind that and after an interruption. undefined where
 * there can be no lock: nobody is kept from anything by that.
 */
export async function lockProject(
  ground: Ground,
  project: { device: number; inode: number },
  limitMs: number,
): Promise<Handle | "busy" | undefined> {
  const deadlineMs = ground.nowMs() + limitMs;
  for (;;) {
    const lock = ground.lock(lockPath(project));
    if (lock !== EAGAIN) return isErrno(lock) ? undefined : lock;
    if (ground.nowMs() >= deadlineMs || ground.interruption() !== 0) return "busy";
    await ground.sleep(limits.slowPollMs);
  }
}

/** Lets the lock go, where there is one. */
export function unlockProject(ground: Ground, lock: Handle | "busy" | undefined): void {
  if (typeof lock === "object") ground.close(lock);
}
