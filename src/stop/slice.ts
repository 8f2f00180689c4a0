// SPDX-License-Identifier: Apache-2.0
// The account's slice in the cgroup v2 hierarchy: where it is, whether anything in it is alive, and the one write that
// ends all of it. Its own files are root's; the account can neither write them nor leave (cgroups(7), Delegation).

import { ENODEV, ENOENT, type Handle, isErrno, type Kernel, type KernelView } from "./kernel.ts";
import { limits } from "./limits.ts";
import {
  hasPtraceCapability,
  type Mount,
  parseCgroupPath,
  parseMounts,
  parsePopulated,
  parseStatus,
} from "./proc-files.ts";

export interface Slice {
  /** Path inside the hierarchy, e.g. `/user.slice/user-990.slice`, as `/proc/PID/cgroup` prints it. */
  path: string;
  /** The same as a directory, e.g. `/sys/fs/cgroup/user.slice/user-990.slice`. */
  directory: string;
  /** Where the hierarchy is mounted. */
  mountPoint: string;
  /** The hierarchy was mounted read-only when the stop began. */
  readOnly: boolean;
  /** `cgroup.events` as it was opened first; it stays with that cgroup when another comes under the same name. */
  events: Handle | undefined;
}

/** What a write to the slice did. `absent`: there is no slice, so nothing is in it. */
export type SliceWrite = "written" | "absent" | { refused: number };

/** Finds and opens the slice, or says why this helper cannot see the whole host. */
export function findSlice(view: KernelView, uid: number): Slice | string {
  const mountinfo = view.readText("/proc/self/mountinfo", limits.mountBytes);
  if (isErrno(mountinfo)) return `/proc/self/mountinfo cannot be read (errno ${mountinfo})`;
  const mounts = parseMounts(mountinfo);
  const proc = mounts.findLast((mount) => mount.point === "/proc");
  const isPart = proc?.superOptions.includes("subset=pid") || view.readText("/proc/loadavg") === ENOENT;
  if (isPart) return "/proc is mounted with subset=pid";
  const mount = findHierarchy(view, mounts);
  if (mount === undefined) return "no whole cgroup v2 hierarchy is mounted";
  const blind = whyBlind(view, proc?.superOptions ?? []);
  if (blind !== undefined) return blind;
  const path = `/user.slice/user-${uid}.slice`;
  const slice: Slice = {
    path,
    directory: `${mount.point}${path}`,
    mountPoint: mount.point,
    readOnly: mount.options.includes("ro") || mount.superOptions.includes("ro"),
    events: undefined,
  };
  reopen(view, slice);
  return slice;
}

/**
 * Where the whole cgroup v2 hierarchy is mounted. The list of mounts may have been cut before its line: then it is where
 * systemd mounts it, if PID 1's scope is there.
 */
function findHierarchy(
  view: KernelView,
  mounts: readonly Mount[],
): Pick<Mount, "point" | "options" | "superOptions"> | undefined {
  const all = mounts.filter((mount) => mount.type === "cgroup2");
  const whole = all.filter((mount) => mount.root === "/");
  const mount = whole.findLast((candidate) => candidate.point.startsWith("/sys/fs/cgroup")) ?? whole.at(-1);
  if (mount !== undefined || all.length > 0) return mount;
  const usual = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
  const point = usual.find((path) => !isErrno(view.lstat(`${path}/init.scope/cgroup.procs`)));
  return point === undefined ? undefined : { point, options: [], superOptions: [] };
}

/**
 * A helper in a namespace of its own, or from which `/proc` hides processes (proc(5), hidepid), would report that nothing
 * is running; undefined when it sees the whole host.
 */
function whyBlind(view: KernelView, procOptions: readonly string[]): string | undefined {
  const init = view.readText("/proc/1/cgroup");
  if (isErrno(init)) return `/proc/1/cgroup cannot be read (errno ${init})`;
  if (parseCgroupPath(init) !== "/init.scope") return "process 1 is not the host's systemd (not in /init.scope)";
  if (view.readLink("/proc/self") !== String(view.pid)) return "/proc belongs to another pid namespace";
  const own = view.readText("/proc/self/status");
  if (isErrno(own)) return `/proc/self/status cannot be read (errno ${own})`;
  if (parseStatus(own)?.pidNamespaces !== 1) return "the helper runs in a pid namespace of its own";
  // With the capability everything is shown; without it the members of `gid=` see all, and with `ptraceable` nobody does.
  const hiding = procOptions.find((option) => /^hidepid=(?!(0|off)$)/.test(option));
  if (hiding !== undefined && !hasPtraceCapability(own))
    return `/proc is mounted with ${hiding}, and the helper has no CAP_SYS_PTRACE`;
  const map = view.readText("/proc/self/uid_map");
  if (isErrno(map)) return map === ENOENT ? undefined : `/proc/self/uid_map cannot be read (errno ${map})`;
  if (map.trim().split(/\s+/).join(" ") !== "0 0 4294967295") return "the helper runs in a user namespace of its own";
  return undefined;
}

/** Opens `cgroup.events` by path where nothing is held open: a slice may appear after the stop began. */
function reopen(view: KernelView, slice: Slice): void {
  if (slice.events !== undefined) return;
  const handle = view.open(`${slice.directory}/cgroup.events`, "read");
  if (!isErrno(handle)) slice.events = handle;
}

/** Whether a path of `/proc/PID/cgroup` is the slice or below it. */
export function isInSlice(slice: Slice, cgroup: string): boolean {
  return cgroup === slice.path || cgroup.startsWith(`${slice.path}/`);
}

/**
 * Whether anything in the slice is alive, from the kernel alone: the cgroup that was open from the beginning and the one
 * that is there by name now. Only `populated 0`, ENOENT and ENODEV mean empty; unknown is alive.
 */
export function isPopulated(view: KernelView, slice: Slice): boolean {
  let alive = false;
  if (slice.events !== undefined) {
    const old = view.readAgain(slice.events);
    if (old === ENODEV) {
      view.close(slice.events);
      slice.events = undefined;
    } else if (isErrno(old) || parsePopulated(old) !== false) alive = true;
  }
  const present = view.readText(`${slice.directory}/cgroup.events`);
  if (isErrno(present)) {
    if (present !== ENOENT && present !== ENODEV) alive = true;
  } else {
    if (parsePopulated(present) !== false) alive = true;
    reopen(view, slice);
  }
  return alive;
}

/** Whether a cgroup below the slice holds a living process; false where it does not exist, true where nobody can tell. */
export function isChildPopulated(view: KernelView, slice: Slice, name: string): boolean {
  const events = view.readText(`${slice.directory}/${name}/cgroup.events`);
  if (isErrno(events)) return events !== ENOENT && events !== ENODEV;
  return parsePopulated(events) !== false;
}

/** SIGKILL to everything in the slice by one write (kernel 5.14 and newer). What it does is told by `isPopulated` only. */
export function killSlice(kernel: Kernel, slice: Slice): SliceWrite {
  return writeToSlice(kernel, slice, "cgroup.kill", "1");
}

/** Undoes a freeze or a limit of descendants that somebody left on the slice; says what it found, in words. */
export function thawSlice(kernel: Kernel, slice: Slice): string[] {
  const found: string[] = [];
  const freeze = kernel.readText(`${slice.directory}/cgroup.freeze`);
  if (!isErrno(freeze) && freeze.trim() !== "0") {
    found.push(`the slice was frozen${outcome(writeToSlice(kernel, slice, "cgroup.freeze", "0"), "thawed")}`);
  }
  const limit = kernel.readText(`${slice.directory}/cgroup.max.descendants`);
  if (!isErrno(limit) && limit.trim() !== "max") {
    const written = writeToSlice(kernel, slice, "cgroup.max.descendants", "max");
    found.push(`the slice had a limit of descendants${outcome(written, "lifted")}`);
  }
  return found;
}

/** Whether whatever is started in the slice now would stand still; unknown is yes, no slice is no. */
export function isFrozen(view: KernelView, slice: Slice): boolean {
  const freeze = view.readText(`${slice.directory}/cgroup.freeze`);
  if (isErrno(freeze)) return freeze !== ENOENT && freeze !== ENODEV;
  return freeze.trim() !== "0";
}

function outcome(write: SliceWrite, done: string): string {
  if (typeof write === "object") return ` and could not be ${done} (errno ${write.refused})`;
  return `, ${done}`;
}

function writeToSlice(kernel: Kernel, slice: Slice, file: string, text: string): SliceWrite {
  const errno = kernel.writeFile(`${slice.directory}/${file}`, text);
  if (errno === 0) return "written";
  if (errno === ENODEV) return "absent";
  if (errno !== ENOENT) return { refused: errno };
  // ENOENT is either no slice or, before kernel 5.14, no such file in it.
  return kernel.lstat(slice.directory) === ENOENT ? "absent" : { refused: ENOENT };
}

/**
 * Moves the helper out of the slice where it runs inside it: its own kill would end it and its children. The root cgroup
 * first; where that refuses (a hierarchy that distributes controllers), PID 1's own scope, which exists on every host
 * that passed `findSlice` and leaves nothing to clean up. Returns whether it is outside now, as the kernel says.
 */
export function leaveSlice(kernel: Kernel, slice: Slice): boolean {
  for (const shelter of ["", "/init.scope"]) {
    if (isOutside(kernel, slice)) return true;
    kernel.writeFile(`${slice.mountPoint}${shelter}/cgroup.procs`, String(kernel.pid));
  }
  return isOutside(kernel, slice);
}

function isOutside(kernel: KernelView, slice: Slice): boolean {
  const own = kernel.readText("/proc/self/cgroup");
  if (isErrno(own)) return false;
  const path = parseCgroupPath(own);
  return path !== undefined && !isInSlice(slice, path);
}

/** What a refused write means, for the report. */
export function refusalInWords(errno: number): string {
  if (errno === ENOENT) return "no cgroup.kill (kernel before 5.14): each process was killed by itself";
  return `cgroup.kill could not be written (errno ${errno}): each process was killed by itself`;
}
