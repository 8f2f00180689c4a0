// SPDX-License-Identifier: Apache-2.0
// The texts of /proc in a simulated world: what the kernel prints for a process, a thread and the whole host (proc(5)).

import { ENOENT, type Errno, ESRCH } from "../kernel.ts";
import { pathOf } from "./cgroups.ts";
import type { Process } from "./processes.ts";
import type { World } from "./world.ts";

const stateNames: Record<string, string> = {
  R: "R (running)",
  S: "S (sleeping)",
  D: "D (disk sleep)",
  T: "T (stopped)",
  t: "t (tracing stop)",
  Z: "Z (zombie)",
  X: "X (dead)",
};

/** Longest path that `/proc/PID/cgroup` prints. */
const longestCgroupPath = 4_095;

/** State letter of the number's own task: the leader's for a process, a living thread's for a thread id. */
export function stateLetter(process: Process, pid: number): string {
  if (process.phase === "leaving") return "X";
  if (process.phase === "zombie") return "Z";
  return process.zombieLeader && pid === process.pid ? "Z" : process.letter;
}

/** Threads that are not released yet; a dead leader counts until its whole group is gone. */
function threadCount(process: Process): number {
  return process.phase === "leaving" ? 0 : 1 + process.threadIds.length;
}

/** `/proc/PID/NAME` or ENOENT; ESRCH where the process goes while it is read. `helper` is what `self` means. */
export function processText(world: World, pid: number, name: string): string | Errno {
  const process = world.lookUp(pid);
  if (process === undefined || process.phase === "gone") return ENOENT;
  switch (name) {
    case "status":
      return status(process, pid);
    case "stat":
      return stat(process, pid);
    case "cgroup":
      return cgroup(world, process);
    case "wchan":
      return process.phase === "alive" && !(process.zombieLeader && pid === process.pid) ? process.wchan : "0";
    case "auxv":
      // It is in the memory of the program, which a dead leader has no more.
      if (process.phase !== "alive" || process.zombieLeader) return ESRCH;
      return auxiliaryVector(process.executedBy ?? process.uids[0]);
    case "loginuid":
      return "4294967295";
    case "mountinfo":
      return mountinfo(world);
    default:
      return ENOENT;
  }
}

/** Little-endian words of eight bytes: AT_PAGESZ, AT_UID, AT_NULL. */
export function auxiliaryVector(uid: number): string {
  const word = (value: number) => {
    const low = [0, 8, 16, 24].map((shift) => String.fromCharCode((value >>> shift) & 0xff));
    return `${low.join("")}\0\0\0\0`;
  };
  return [6, 4096, 11, uid, 0, 0].map(word).join("");
}

/** `/proc/PID/ns/user`, `/proc/PID/cwd`; a dead process has neither. */
export function processLink(world: World, pid: number, name: string): string | Errno {
  const process = world.lookUp(pid);
  if (process === undefined || process.phase === "gone") return ENOENT;
  const living = process.phase === "alive" && !(process.zombieLeader && pid === process.pid);
  if (name === "ns/user") return process.phase === "leaving" ? ESRCH : process.userNamespace;
  if (name === "cwd") return living ? process.cwd : ENOENT;
  return ENOENT;
}

function status(process: Process, pid: number): string {
  const uids = process.uids.join("\t");
  const numbers = process.namespacePids.join("\t");
  const living = process.phase === "alive" && !process.zombieLeader;
  return `Name:\t${escaped(process.comm)}
${living ? "Umask:\t0022\n" : ""}State:\t${stateNames[stateLetter(process, pid)] ?? "?"}
Tgid:\t${process.pid}
Ngid:\t0
Pid:\t${pid}
PPid:\t${process.parent?.pid ?? 0}
TracerPid:\t${process.exitTracer?.pid ?? 0}
Uid:\t${uids}
Gid:\t${uids}
FDSize:\t${living ? 64 : 0}
Groups:\t 
NStgid:\t${numbers}
NSpid:\t${numbers}
${living ? "VmPeak:\t    5000 kB\n" : ""}Threads:\t${threadCount(process)}
SigQ:\t0/31000
`;
}

function escaped(comm: string): string {
  return comm.includes("\n") || comm.includes("\\") ? comm.replaceAll("\\", "\\\\").replaceAll("\n", "\\n") : comm;
}

function stat(process: Process, pid: number): string {
  const before = `${pid} (${process.comm}) ${stateLetter(process, pid)} ${process.parent?.pid ?? 0}`;
  const fields = `${process.pid} ${process.pid} ${process.terminal} -1 4194304 0 0 0 0 0 0 0 0 20 0 ${threadCount(process)} 0`;
  return `${before} ${fields} ${process.startTicks} 5000000 200 ${"0 ".repeat(28)}0\n`;
}

function cgroup(world: World, process: Process): string {
  const path = pathOf(process.cgroup).slice(0, longestCgroupPath);
  const line = `0::${path}${process.cgroup.removed ? " (deleted)" : ""}\n`;
  return world.host.layout === "hybrid" ? `3:pids:/user.slice\n1:name=systemd:/user.slice\n${line}` : line;
}

/** Where the cgroup2 hierarchy is mounted on this host. */
export function cgroupMount(world: World): string {
  return world.host.layout === "hybrid" ? "/sys/fs/cgroup/unified" : "/sys/fs/cgroup";
}

function mountinfo(world: World): string {
  const { layout, readOnlyCgroups } = world.host;
  const how = readOnlyCgroups ? "ro" : "rw";
  const lines = [
    "21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw",
    `22 21 0:20 / /proc rw,nosuid - proc proc rw${layout === "subset-pid" ? ",subset=pid" : ""}`,
    "23 21 0:21 / /sys rw,nosuid - sysfs sysfs rw",
    "24 21 0:23 / /var/lib/with\\040space rw - tmpfs tmpfs rw",
  ];
  if (layout === "hybrid") {
    lines.push("30 23 0:26 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755");
    lines.push("31 30 0:28 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids");
  }
  const root = layout === "cgroup-namespace" ? "/.." : "/";
  if (layout !== "no-cgroup2")
    lines.push(`32 23 0:27 ${root} ${cgroupMount(world)} ${how},nosuid - cgroup2 cgroup2 ${how}`);
  return `${lines.join("\n")}\n`;
}

/** `/proc/NAME` for the files that belong to no process. */
export function hostText(world: World, name: string): string | Errno {
  const nowUs = world.timeline.nowUs;
  if (world.host.layout === "subset-pid") return ENOENT;
  if (name === "loadavg") return `0.10 0.20 0.30 1/${world.processes.size} ${world.lastPid}\n`;
  if (name === "uptime") return `${(nowUs / 1_000_000 + 0.01).toFixed(2)} 0.00\n`;
  return ENOENT;
}

/** The names in /proc: ascending numbers of the leaders, and the host's own files. */
export function procNames(world: World): string[] {
  return [...[...world.processes.keys()].sort((a, b) => a - b).map(String), "cgroups", "loadavg", "self", "uptime"];
}
