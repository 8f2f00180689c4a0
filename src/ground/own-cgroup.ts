// SPDX-License-Identifier: Apache-2.0
// Where a root helper runs. sudo leaves it in its caller's cgroup, and where that one was delegated (a user manager's) the
// caller can freeze or kill all that is in it, root's processes included. Whoever holds a lock does not stay there.

import { isErrno, type Kernel, type KernelView } from "../stop/kernel.ts";
import { limits } from "../stop/limits.ts";
import { parseCgroupPath, parseMounts } from "../stop/proc-files.ts";

/** The root cgroup; where that one refuses (a hierarchy that distributes controllers), PID 1's own scope. */
const shelters = ["/", "/init.scope"];

/** Moves this process out of its caller's cgroup. Returns whether it is outside now, as the kernel says. */
export function leaveCallersCgroup(kernel: Kernel): boolean {
  if (isSheltered(kernel)) return true;
  const mountPoint = findHierarchy(kernel);
  if (mountPoint === undefined) return false;
  for (const shelter of shelters) {
    const directory = shelter === "/" ? mountPoint : `${mountPoint}${shelter}`;
    kernel.writeFile(`${directory}/cgroup.procs`, String(kernel.pid));
    if (isSheltered(kernel)) return true;
  }
  return false;
}

function isSheltered(view: KernelView): boolean {
  const own = view.readText("/proc/self/cgroup");
  const path = isErrno(own) ? undefined : parseCgroupPath(own);
  return path !== undefined && shelters.includes(path);
}

/** Where the whole cgroup v2 hierarchy is mounted. */
function findHierarchy(view: KernelView): string | undefined {
  const mountinfo = view.readText("/proc/self/mountinfo", limits.mountBytes);
  if (isErrno(mountinfo)) return undefined;
  const whole = parseMounts(mountinfo).filter((mount) => mount.type === "cgroup2" && mount.root === "/");
  return (whole.findLast(({ point }) => point.startsWith("/sys/fs/cgroup")) ?? whole.at(-1))?.point;
}
