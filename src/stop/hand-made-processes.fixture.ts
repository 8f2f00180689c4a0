// SPDX-License-Identifier: Apache-2.0
// Processes, places and findings written down by hand for unit tests, in the form in which Linux 6.18 prints them.

import type { Census, Found, Scope } from "./census.ts";
import { HandMadeHost } from "./hand-made-host.fixture.ts";
import type { Identity } from "./identity.ts";
import { type FileStat, SIGKILL } from "./kernel.ts";
import type { ProcessStatus } from "./proc-files.ts";
import type { Slice } from "./slice.ts";

/** The account's uid in unit tests, and its slice. */
export const accountUid = 990;
export const slicePath = "/user.slice/user-990.slice";

export interface Described {
  pid: number;
  tgid?: number;
  parent?: number;
  state?: string;
  uids?: readonly [number, number, number, number];
  threads?: number;
  tracer?: number;
  /** The line `NSpid`, e.g. "700\t1" for the init of a pid namespace. */
  namespacePids?: string;
  command?: string;
  cgroup?: string;
  startTicks?: number;
  terminal?: number;
}

const fourTimes = (uid: number) => [uid, uid, uid, uid] as const;

/** `/proc/PID/status` of a process of the account, unless it says otherwise. */
export function statusText(process: Described): string {
  const { pid, command = "agent", state = "S (sleeping)", uids = fourTimes(accountUid) } = process;
  const lines = [
    `Name:\t${command}`,
    "Umask:\t0077",
    `State:\t${state}`,
    `Tgid:\t${process.tgid ?? pid}`,
    "Ngid:\t0",
    `Pid:\t${pid}`,
    `PPid:\t${process.parent ?? 1}`,
    `TracerPid:\t${process.tracer ?? 0}`,
    `Uid:\t${uids.join("\t")}`,
    `Gid:\t${uids.join("\t")}`,
    "FDSize:\t64",
    "Groups:\t990 ",
    `NStgid:\t${process.namespacePids ?? pid}`,
    `NSpid:\t${process.namespacePids ?? pid}`,
    `NSpgid:\t${process.namespacePids ?? pid}`,
    "Kthread:\t0",
    "VmPeak:\t    2464 kB",
    `Threads:\t${process.threads ?? 1}`,
    "SigQ:\t0/15421",
    "NoNewPrivs:\t1",
    "Seccomp:\t0",
  ];
  return `${lines.join("\n")}\n`;
}

/** `/proc/PID/stat`: terminal is field 7, start time field 22. */
export function statText(process: Described): string {
  const { pid, command = "agent", state = "S", terminal = 0, startTicks = 5_000 + process.pid } = process;
  const fields = [
    state.charAt(0),
    process.parent ?? 1,
    pid,
    pid,
    terminal,
    -1,
    4_194_304,
    91,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    20,
    0,
    1,
    0,
    startTicks,
    2_523_136,
    230,
    "18446744073709551615",
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
  ];
  return `${pid} (${command}) ${fields.join(" ")}\n`;
}

/** Puts a process on the host: status, stat, cgroup. The list of `/proc` is the test's. */
export function place(host: HandMadeHost, process: Described): void {
  const { pid, cgroup = `${slicePath}/ai-tools-claude-code-${pid}.service` } = process;
  host.files.set(`/proc/${pid}/status`, statusText(process));
  host.files.set(`/proc/${pid}/stat`, statText(process));
  host.files.set(`/proc/${pid}/cgroup`, `0::${cgroup}\n`);
}

/** A host with these processes, listed in `/proc`, and the last pid that the kernel gave. */
export function populate(host: HandMadeHost, processes: readonly Described[], last: number): void {
  for (const process of processes) place(host, process);
  host.directories.set("/proc", ["1", ...processes.map(({ pid }) => String(pid)), "self", "meminfo"]);
  host.files.set("/proc/loadavg", loadavg(last));
}

/** A host with the account's processes of these numbers. */
export function hostOf(pids: readonly number[]): HandMadeHost {
  const host = new HandMadeHost();
  populate(
    host,
    pids.map((pid) => ({ pid })),
    Math.max(10, ...pids),
  );
  return host;
}

/** SIGKILL takes processes off the host. */
export function mortal(host: HandMadeHost): HandMadeHost {
  const send = host.signal.bind(host);
  host.signal = (pid, signal) => {
    if (signal === SIGKILL) host.files.delete(`/proc/${pid}/status`);
    return send(pid, signal);
  };
  return host;
}

/** `/proc/loadavg` with the last pid. */
export function loadavg(last: number): string {
  return `0.52 0.58 0.59 1/598 ${last}\n`;
}

export const identity: Identity = {
  uid: accountUid,
  numbers: new Set([accountUid]),
  subordinate: [],
  home: "/var/lib/ai-tools",
  notes: [],
};

export function sliceAt(): Slice {
  const directory = `/sys/fs/cgroup${slicePath}`;
  return { path: slicePath, directory, mountPoint: "/sys/fs/cgroup", readOnly: false, events: undefined };
}

export function scopeOf(changes: Partial<Identity> = {}): Scope {
  return { identity: { ...identity, ...changes }, slice: sliceAt() };
}

/** Something that a census found. */
export function found(described: Described): Found {
  const { pid, cgroup = `${slicePath}/ai-tools-claude-code-${pid}.service` } = described;
  const status: ProcessStatus = {
    tgid: described.tgid ?? pid,
    parent: described.parent ?? 1,
    state: (described.state ?? "S").charAt(0),
    uids: described.uids ?? fourTimes(accountUid),
    threads: described.threads ?? 1,
    tracer: described.tracer ?? 0,
    pidNamespaces: (described.namespacePids ?? "1").split("\t").length,
    command: described.command ?? "agent",
  };
  return { pid, status, cgroup, startTicks: described.startTicks ?? 5_000 + pid, terminal: described.terminal ?? 0 };
}

/** A census that found these alive. */
export function censusOf(alive: Found[], changes: Partial<Census> = {}): Census {
  return { alive, held: [], unreaped: [], bystanders: [], unreadable: [], complete: true, ...changes };
}

/** A file, directory or link of root, unless it says otherwise. */
export function stat(changes: Partial<FileStat> = {}): FileStat {
  return { kind: "file", mode: 0o644, uid: 0, nlink: 1, rdev: 0, size: 0, ...changes };
}
