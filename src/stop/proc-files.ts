// SPDX-License-Identifier: Apache-2.0
// The formats of the files that a stop reads: proc(5), cgroups(7), passwd(5), subuid(5). Text in, values out; undefined
// where a text does not have its form, so that the caller has to decide what unknown means.

/** `/proc/PID/status`, as far as a stop needs it. */
export interface ProcessStatus {
  /** Id of the thread group; differs from the number asked for when that number is a thread. */
  tgid: number;
  parent: number;
  /** One letter: R S D T t Z X I. */
  state: string;
  /** Real, effective, saved and file-system uid. */
  uids: readonly [number, number, number, number];
  threads: number;
  /** Process of the same account that traces it, or 0. */
  tracer: number;
  /** Entries of `NSpid`: more than one means that the process lives in a pid namespace below the helper's. */
  pidNamespaces: number;
  /** Command name as the kernel prints it here, with newline and backslash escaped. */
  command: string;
}

function field(text: string, name: string): string | undefined {
  // The kernel escapes newlines in `Name:`, so a line start is a real one; the leading newline keeps names unambiguous.
  const start = text.indexOf(`\n${name}:`);
  if (start < 0) return undefined;
  const from = start + name.length + 2;
  const end = text.indexOf("\n", from);
  return text.slice(from, end < 0 ? text.length : end).trim();
}

/** Digits only, as the kernel prints them. */
export function decimal(text: string | undefined): number | undefined {
  if (text === undefined || !/^[0-9]{1,15}$/.test(text)) return undefined;
  return Number(text);
}

/** Parses `/proc/PID/status`; undefined when a field that decides is missing. */
export function parseStatus(text: string): ProcessStatus | undefined {
  const uids = (field(text, "Uid") ?? "").split("\t").map(decimal);
  const [real, effective, saved, filesystem] = uids;
  const tgid = decimal(field(text, "Tgid"));
  const threads = decimal(field(text, "Threads"));
  const state = (field(text, "State") ?? "").charAt(0);
  if (real === undefined || effective === undefined || saved === undefined || filesystem === undefined)
    return undefined;
  if (tgid === undefined || threads === undefined || state === "") return undefined;
  const nameEnd = text.indexOf("\n");
  return {
    tgid,
    parent: decimal(field(text, "PPid")) ?? 0,
    state,
    uids: [real, effective, saved, filesystem],
    threads,
    tracer: decimal(field(text, "TracerPid")) ?? 0,
    pidNamespaces: (field(text, "NSpid") ?? "1").split(/\s+/).length,
    command: text.startsWith("Name:\t") ? text.slice(6, nameEnd) : "",
  };
}

/** Whether `/proc/PID/status` has CAP_SYS_PTRACE (bit 19, capabilities(7)) among the effective ones; false when nobody can tell. */
export function hasPtraceCapability(text: string): boolean {
  const low = Number.parseInt((field(text, "CapEff") ?? "").slice(-8), 16);
  return (low & (1 << 19)) !== 0;
}

/** Start time in clock ticks since boot (field 22) and terminal device (field 7) of `/proc/PID/stat`, after the last `)`. */
export function parseStat(text: string): { startTicks: number; terminal: number } | undefined {
  const end = text.lastIndexOf(")");
  if (end < 0) return undefined;
  const fields = text
    .slice(end + 2)
    .trim()
    .split(" ");
  const startTicks = decimal(fields[19]);
  const terminal = Number(fields[4]);
  if (startTicks === undefined || !Number.isInteger(terminal)) return undefined;
  return { startTicks, terminal };
}

/** Path in the cgroup v2 hierarchy from `/proc/PID/cgroup` (`0::PATH`, the last line where v1 hierarchies exist too). */
export function parseCgroupPath(text: string): string | undefined {
  const start = text.startsWith("0::") ? 0 : text.lastIndexOf("\n0::") + 1;
  if (!text.startsWith("0::", start)) return undefined;
  const end = text.indexOf("\n", start);
  const path = text.slice(start + 3, end < 0 ? text.length : end);
  const gone = " (deleted)";
  return path.endsWith(gone) ? path.slice(0, -gone.length) : path;
}

/** The last allocated pid: fifth field of `/proc/loadavg`. */
export function parseLastPid(loadavg: string): number | undefined {
  return decimal(loadavg.trim().split(" ")[4]);
}

/** Clock ticks since boot from `/proc/uptime`, in the unit of `startTicks` (USER_HZ is 100 on every supported architecture). */
export function parseUptimeTicks(uptime: string): number | undefined {
  const match = /^([0-9]+)\.([0-9]{2}) /.exec(uptime);
  return match === null ? undefined : Number(match[1]) * 100 + Number(match[2]);
}

/** One line of `/proc/self/mountinfo`. */
export interface Mount {
  root: string;
  point: string;
  type: string;
  /** Options of this mount alone; `ro` here is enough to make it read-only. */
  options: readonly string[];
  superOptions: readonly string[];
}

function unescapeMount(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}

/** Parses `/proc/self/mountinfo` (proc_pid_mountinfo(5)); lines that do not have its form are left out. */
export function parseMounts(mountinfo: string): Mount[] {
  const mounts: Mount[] = [];
  for (const line of mountinfo.split("\n")) {
    const [before, after] = line.split(" - ");
    const left = (before ?? "").split(" ");
    const right = (after ?? "").split(" ");
    const [root, point, options] = [left[3], left[4], left[5]];
    const [type, , superOptions] = right;
    if (root === undefined || point === undefined || type === undefined || type === "") continue;
    mounts.push({
      root: unescapeMount(root),
      point: unescapeMount(point),
      type,
      options: (options ?? "").split(","),
      superOptions: (superOptions ?? "").split(","),
    });
  }
  return mounts;
}

/** One line of `/etc/passwd`. */
export interface PasswdEntry {
  name: string;
  uid: number;
  home: string;
}

/** Parses `/etc/passwd`; lines without a plain number as uid are left out. */
export function parsePasswd(text: string): PasswdEntry[] {
  const entries: PasswdEntry[] = [];
  for (const line of text.split("\n")) {
    const [name, , uid, , , home] = line.split(":");
    const number = decimal(uid);
    if (name !== undefined && name !== "" && number !== undefined)
      entries.push({ name, uid: number, home: home ?? "" });
  }
  return entries;
}

/** A range of uids, `from` included, `to` not. */
export interface UidRange {
  owner: string;
  from: number;
  to: number;
}

/** Parses `/etc/subuid`: `owner:start:count`, the owner by name or by number. */
export function parseSubuid(text: string): UidRange[] {
  const ranges: UidRange[] = [];
  for (const line of text.split("\n")) {
    const [owner, start, count] = line.trim().split(":");
    const from = decimal(start);
    const length = decimal(count);
    if (owner !== undefined && owner !== "" && from !== undefined && length !== undefined && length > 0) {
      ranges.push({ owner, from, to: from + length });
    }
  }
  return ranges;
}

/** `populated` of `cgroup.events`: undefined when the text does not say. */
export function parsePopulated(events: string): boolean | undefined {
  const match = /^populated ([01])$/m.exec(events);
  return match === null ? undefined : match[1] === "1";
}

/** `AT_PAGESZ` and `AT_UID` of getauxval(3). */
const pageSizeKey = 6;
const executorKey = 11;

/**
 * The real uid of whoever executed a process's program, from `/proc/PID/auxv`: pairs of native words up to a key of 0.
 * The kernel writes it at execve(2), and no later change of uids touches it. undefined where the text has no such form,
 * as for a kernel thread and for a leader that has exited.
 */
export function parseExecutor(auxv: string): number | undefined {
  for (const wordBytes of [8, 4]) {
    for (const order of ["little", "big"] as const) {
      const uid = executorIn(auxv, wordBytes, order);
      if (uid !== undefined) return uid;
    }
  }
  return undefined;
}

/** The value with that key, if all keys are small, the page size is in the list and the list ends where the text does. */
function executorIn(auxv: string, wordBytes: number, order: "little" | "big"): number | undefined {
  let uid: number | undefined;
  let pageSize = 0;
  for (let at = 0; at + 2 * wordBytes <= auxv.length; at += 2 * wordBytes) {
    const key = wordAt(auxv, at, wordBytes, order);
    const value = wordAt(auxv, at + wordBytes, wordBytes, order);
    if (key === 0) return pageSize >= 4_096 && at + 2 * wordBytes === auxv.length ? uid : undefined;
    if (key >= 64) return undefined;
    if (key === pageSizeKey) pageSize = value;
    if (key === executorKey) uid = value;
  }
  return undefined;
}

function wordAt(text: string, at: number, bytes: number, order: "little" | "big"): number {
  let value = 0;
  for (let index = 0; index < bytes; index++) {
    value = value * 256 + text.charCodeAt(order === "little" ? at + bytes - 1 - index : at + index);
  }
  return value;
}
