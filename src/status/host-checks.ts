// SPDX-License-Identifier: Apache-2.0
// Whether this host would pass a stop, and whether sessions can start and stay within their limits: one check for each
// thing that both rest on, each with the lines that mend it. sudo's rule is in sudo-rule.ts, cron and at in scheduled.ts.

import { helpers, launcherPath } from "../ground/places.ts";
import { type Selinux, typeOf, types } from "../ground/selinux.ts";
import type { Identity } from "../stop/identity.ts";
import { EACCES, ENODEV, ENOENT, type FileStat, isErrno, type KernelView } from "../stop/kernel.ts";
import { printable } from "../stop/printable.ts";
import type { Slice } from "../stop/slice.ts";
import { broken, type Check, note, ok, unknown } from "./facts.ts";

const reinstall = "dnf reinstall ai-tools";
const stateDirectory = "/var/lib/ai-tools";
const logDirectory = "/var/log/ai-tools";
const logPath = `${logDirectory}/stop.log`;

/** The hierarchy, or why a stop would refuse; hidden from the caller is not yet broken. */
export function checkHierarchy(slice: Slice | string, asRoot: boolean): Check {
  const name = "cgroup v2";
  if (typeof slice !== "string") {
    if (!slice.readOnly) return ok(name, `mounted whole at ${slice.mountPoint}`);
    return broken(
      name,
      `${slice.mountPoint} is read-only: a stop would have to end each process by itself`,
      `mount -o remount,rw ${slice.mountPoint}`,
    );
  }
  if (!asRoot && isHidden(slice))
    return unknown(name, "processes are hidden from you (hidepid): only root sees who runs");
  return broken(name, `${printable(slice)}: a stop would refuse to work (exit 5)`);
}

/** Whether `findSlice` could not tell because the host hides processes from whoever asks. */
export function isHidden(reason: string): boolean {
  return reason.includes("hidepid") || reason.startsWith("/proc/1/cgroup cannot be read");
}

/** The account, its number, and that it can neither stop nor change what its manager reads. */
export function checkAccount(view: KernelView, identity: Identity | string): Check {
  const name = "account";
  if (typeof identity === "string") return broken(name, `${printable(identity)}: a stop would refuse to work (exit 5)`);
  const { uid } = identity;
  const group = view.readText("/etc/group");
  if (isErrno(group)) return broken(name, `/etc/group cannot be read (errno ${group})`);
  const members =
    group
      .split("\n")
      .find((line) => line.startsWith("ai-ops:"))
      ?.split(":")[3]
      ?.split(",") ?? [];
  if (members.includes("ai-tools"))
    return broken(name, "the sandbox account is in ai-ops: it is no operator", "gpasswd -d ai-tools ai-ops");
  const home = view.lstat(identity.home);
  if (isErrno(home))
    return broken(name, `its home ${printable(identity.home)} cannot be seen (errno ${home})`, reinstall);
  if (home.kind !== "directory" || isWritableByOthers(home)) {
    return broken(
      name,
      `its home ${printable(identity.home)} is not root's alone to write: what is planted there would run`,
      `chown root:root ${stateDirectory}`,
      `chmod 0755 ${stateDirectory}`,
    );
  }
  const recorded = view.readText(`${stateDirectory}/uids`);
  const numbers = isErrno(recorded) ? [] : recorded.split("\n").map((line) => line.trim());
  if (numbers.includes(String(uid))) return ok(name, `ai-tools, uid ${uid}`);
  return broken(
    name,
    `uid ${uid} is not recorded: if it ever changed, a stop would not know the old one`,
    `echo ${uid} >> ${stateDirectory}/uids`,
  );
}

/** Programs that only root may execute; their folder is closed, so only root sees them. */
export function checkPrograms(view: KernelView): Check {
  const name = "helpers";
  const programs = ["/usr/libexec/ai-tools/ai-tools-stop", ...Object.values(helpers)];
  for (const path of programs) {
    const stat = view.lstat(path);
    if (stat === EACCES) return unknown(name, "only root sees them");
    if (isErrno(stat) || stat.kind !== "file") return broken(name, `${path} is not there`, reinstall);
    if (isWritableByOthers(stat)) return broken(name, `${path} is not root's alone to write`, reinstall);
    if ((stat.mode & 0o100) === 0) return broken(name, `${path} cannot be executed`, `chmod 0700 ${path}`);
  }
  return ok(name, "in place");
}

/** The trail: without it a stop happens all the same, and nobody knows of it later. */
export function checkLog(view: KernelView): Check {
  const name = "log";
  const mend = [`install -d -o root -g root -m 0700 ${logDirectory}`];
  const directory = view.lstat(logDirectory);
  if (directory === EACCES) return unknown(name, "only root sees it");
  if (isErrno(directory)) return broken(name, `${logDirectory} is not there (errno ${directory})`, ...mend);
  if (directory.kind !== "directory")
    return broken(name, `${logDirectory} is not a directory`, `rm ${logDirectory}`, ...mend);
  if (isOpen(directory)) return broken(name, `${logDirectory} is open to others than root`, ...mend);
  const log = view.lstat(logPath);
  if (log === EACCES) return unknown(name, "only root sees into it");
  if (log === ENOENT) return ok(name, `${logPath} is made by the first stop`);
  if (isErrno(log)) return broken(name, `${logPath} cannot be looked at (errno ${log})`);
  if (log.kind !== "file") return broken(name, `${logPath} is not a file: nothing is written there`, `rm ${logPath}`);
  if (isOpen(log))
    return broken(
      name,
      `${logPath} is open to others than root`,
      `chown root:root ${logPath}`,
      `chmod 0600 ${logPath}`,
    );
  return ok(name, logPath);
}

/** A slice that somebody left frozen or limited: a stop undoes the first two, but until then nothing starts or runs. */
export function checkSlice(view: KernelView, slice: Slice): Check {
  const name = "slice";
  const stat = view.lstat(slice.directory);
  if (stat === ENOENT) return ok(name, "not there: nothing runs");
  if (isErrno(stat)) return unknown(name, `${slice.directory} cannot be looked at (errno ${stat})`);
  const repair: string[] = [];
  const wrong: string[] = [];
  for (const { file, value, free, says } of brakes) {
    const text = view.readText(`${slice.directory}/${file}`);
    // Gone meanwhile, a controller that is not there, or a kernel before that file.
    if (text === ENOENT || text === ENODEV) continue;
    if (isErrno(text)) return unknown(name, `${file} cannot be read (errno ${text})`);
    if (!value.test(text.trim())) continue;
    wrong.push(says);
    repair.push(`echo ${free} > ${slice.directory}/${file}`);
  }
  const frozenAbove = wrong.length === 0 && isFrozen(view, slice.directory);
  if (frozenAbove) return broken(name, "something above the slice is frozen", "systemctl thaw user.slice");
  return wrong.length === 0
    ? ok(name, "neither frozen nor limited to nothing")
    : broken(name, wrong.join("; "), ...repair);
}

const brakes = [
  { file: "cgroup.freeze", value: /^1$/, free: "0", says: "it is frozen: sessions stand still, and new ones hang" },
  {
    file: "cgroup.max.descendants",
    value: /^[0-9]+$/,
    free: "max",
    says: "the number of its cgroups is limited: sessions do not start",
  },
  {
    file: "cgroup.max.depth",
    value: /^[0-9]+$/,
    free: "max",
    says: "the depth of its cgroups is limited: sessions may not start",
  },
  { file: "pids.max", value: /^0$/, free: "max", says: "it may have no process at all: sessions do not start" },
] as const;

function isFrozen(view: KernelView, directory: string): boolean {
  const events = view.readText(`${directory}/cgroup.events`);
  return !isErrno(events) && /^frozen 1$/m.test(events);
}

const generated = "/run/systemd/generator";
const reload = ["systemctl daemon-reload"];
/** What the generator limits, by the drop-in's key, and what the kernel's file says where nothing limits it. */
const controls = [
  { key: "CPUWeight", file: "cpu.weight", unlimited: /^(100|[0-9]{4,}|[1-9][0-9]{2})$/, controller: "cpu" },
  { key: "CPUQuota", file: "cpu.max", unlimited: /^max /, controller: "cpu" },
  { key: "TasksMax", file: "pids.max", unlimited: /^max$/, controller: "pids" },
  { key: "MemoryHigh", file: "memory.high", unlimited: /^max$/, controller: "memory" },
] as const;

/** The limits of the slice: the generator's drop-in, and what the kernel has of it where the slice is there. */
export function checkLimits(view: KernelView, uid: number, slice: Slice): Check {
  const name = "limits";
  const path = `${generated}/user-${uid}.slice.d/50-ai-tools.conf`;
  const text = view.readText(path);
  if (isErrno(text)) return broken(name, `${path} is not there: sessions could starve everybody else`, ...reload);
  if (view.lstat(slice.directory) === ENOENT) return ok(name, "set for the slice, which is not there now");
  const controllers = view.readText(`${slice.mountPoint}/cgroup.controllers`);
  const has = isErrno(controllers) ? [] : controllers.trim().split(" ");
  const absent = new Set<string>();
  for (const { key, file, unlimited, controller } of controls) {
    if (!new RegExp(`^${key}=`, "m").test(text)) continue;
    const value = view.readText(`${slice.directory}/${file}`);
    if (!has.includes(controller)) absent.add(controller);
    else if (isErrno(value))
      return broken(name, `${key} is set and ${slice.directory}/${file} is not there (errno ${value})`, ...reload);
    else if (unlimited.test(value.trim()))
      return broken(name, `${key} is set and not in force: ${file} is "${printable(value.trim())}"`, ...reload);
  }
  if (absent.size > 0)
    return note(name, `set, but this kernel hands out no ${[...absent].join(", ")} here: not in force`);
  return ok(name, "in force on the slice");
}

/** A manager of the account that read units from where sessions write would start what they planted. */
export function checkManager(view: KernelView, uid: number): Check {
  const name = "manager";
  const path = `${generated}/user@${uid}.service.d/50-ai-tools.conf`;
  const text = view.readText(path);
  if (isErrno(text))
    return broken(
      name,
      `${path} is not there: a manager of the account would run units that sessions planted`,
      ...reload,
    );
  if (/^Environment=SYSTEMD_UNIT_PATH=\/etc\/systemd\/user:\/usr\/lib\/systemd\/user$/m.test(text))
    return ok(name, "reads root's units alone");
  return broken(name, `${path} does not pin the unit path`, ...reload);
}

/** What every session executes first. */
export function checkLauncher(view: KernelView): Check {
  const name = "launcher";
  const stat = view.lstat(launcherPath);
  if (isErrno(stat) || stat.kind !== "file") return broken(name, `${launcherPath} is not there`, reinstall);
  if (isWritableByOthers(stat)) return broken(name, `${launcherPath} is not root's alone to write`, reinstall);
  if ((stat.mode & 0o555) !== 0o555)
    return broken(name, `${launcherPath} cannot be executed by the account`, `chmod 0755 ${launcherPath}`);
  return ok(name, "in place");
}

/**
 * Whether SELinux holds sessions. Off and permissive are the administrator's to say; a host that enforces and holds no
 * session is broken, as is a label that would keep every session from starting.
 */
export function checkSelinux(selinux: Selinux): Check {
  const name = "SELinux";
  if (selinux.mode === "off") return note(name, "off: file permissions alone hold sessions");
  if (selinux.mode === "unknown") return unknown(name, `cannot be told: ${selinux.why}`);
  const { mode, session, isDomainPermissive, launcher } = selinux;
  if (session === undefined) {
    const what = `${mode}, and its policy has no domain for sessions`;
    if (mode === "permissive") return note(name, `${what}: file permissions alone hold them`);
    return broken(name, `${what}: none is started`, "dnf install ai-tools-selinux");
  }
  if (isErrno(launcher)) return unknown(name, `the label of ${launcherPath} cannot be read (errno ${launcher})`);
  if (typeOf(launcher) !== types.launcher) {
    const label = `${launcherPath} has the label ${printable(launcher, 200)} and not ${types.launcher}`;
    const so = mode === "enforcing" ? ": no session is started" : "";
    return broken(name, `${mode}, and ${label}${so}`, "restorecon -RFv /usr/lib/ai-tools");
  }
  if (mode === "permissive") return note(name, "permissive: it refuses sessions nothing");
  if (isDomainPermissive)
    return broken(
      name,
      `permissive for ${types.session}: it refuses sessions nothing`,
      `semanage permissive -d ${types.session}`,
    );
  return ok(name, `enforcing, sessions are held in ${types.session}`);
}

function isWritableByOthers(stat: FileStat): boolean {
  return stat.uid !== 0 || (stat.mode & 0o022) !== 0;
}

function isOpen(stat: FileStat): boolean {
  return stat.uid !== 0 || (stat.mode & 0o077) !== 0;
}
