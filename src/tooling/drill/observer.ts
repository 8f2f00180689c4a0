// SPDX-License-Identifier: Apache-2.0
// Looks at a lab host from outside and shares no code with the helper: plain grep, find and systemctl on the host, and
// the counters of the payloads, from which no chain of forks can hide.

import type { LabHost } from "../lab/host.ts";
import { type Counter, readCounters } from "../tempers/counters.ts";

/** A process that has the account's number among its four uids. */
export interface SeenProcess {
  pid: number;
  name: string;
  /** The letter of `State:`. */
  state: string;
  threads: number;
  /** Real, effective, saved and filesystem uid. */
  uids: number[];
  /** Two and more for a process in a pid namespace of its own. */
  namespaceDepth: number;
  /** The line of `/proc/PID/cgroup`, without `0::`. */
  cgroup: string;
}

/** Everything that one look saw. */
export interface Look {
  atMs: number;
  counters: Counter[];
  processes: SeenProcess[];
  /** `populated` of the slice's cgroup.events; undefined when the slice has no cgroup. */
  slicePopulated: boolean | undefined;
  /** Every process that cgroupfs lists below the slice, with its cgroup. */
  sliceMembers: { pid: number; cgroup: string }[];
  /** `systemctl is-active` of the account's manager. */
  manager: string;
}

/** One look at everything: counters first, so that what moves between two looks moved before the rest was read. */
export async function look(host: LabHost, uid: number): Promise<Look> {
  const counters = await readCounters(host);
  const atMs = Date.now();
  return {
    atMs,
    counters,
    processes: await processesOf(host, uid),
    ...(await sliceOf(host, uid)),
    manager: await managerOf(host, uid),
  };
}

/** Two looks, `windowMs` apart. */
export async function lookTwice(host: LabHost, uid: number, windowMs: number): Promise<[Look, Look]> {
  const first = await look(host, uid);
  await new Promise((done) => setTimeout(done, windowMs));
  return [first, await look(host, uid)];
}

/** One entry of the trail, as one sink has it. */
export type TrailEntry = Record<string, string>;

/** The whole trail, from both sinks. */
export async function readTrail(host: LabHost): Promise<{ log: TrailEntry[]; journal: TrailEntry[] }> {
  const log = await host.sh("cat /var/log/ai-tools/stop.log 2>/dev/null || true");
  const journal = await host.sh(
    "journalctl --sync; journalctl -t ai-tools-stop -o json --no-pager --all 2>/dev/null || true",
  );
  return { log: trailEntries(log), journal: trailEntries(journal).filter((entry) => "AI_TOOLS_RESULT" in entry) };
}

/** Entries in either sink's form, one JSON object per line; the journal knows only text, so every value becomes that. */
export function trailEntries(text: string): TrailEntry[] {
  const entries = text
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  return entries.map((entry) =>
    Object.fromEntries(Object.entries(entry).map(([name, value]) => [name, String(value)])),
  );
}

/** What the host is, by names for people; "" is what nobody could tell. */
export async function describeHost(host: LabHost): Promise<Record<string, string>> {
  const text = await host.sh(`hostname; (. /etc/os-release; echo "$PRETTY_NAME"); uname -r
    systemctl --version | sed -n '1s/^systemd \\([0-9]*\\).*/\\1/p'; rpm -q --qf '%{version}-%{release}\\n' ai-tools
    cat /sys/fs/selinux/enforce 2>/dev/null || echo`);
  const [name = "", system = "", kernel = "", systemd = "", product = "", enforce = ""] = text.split("\n");
  const selinux = enforce === "" ? "off" : enforce === "1" ? "enforcing" : "permissive";
  return { name, system, kernel, systemd, product, selinux };
}

/** What the helper left for programs that only need to know; null where it left nothing that can be read. */
export async function readLastStop(host: LabHost): Promise<unknown> {
  const { code, stdout } = await host.run(["cat", "/run/ai-tools/last-stop.json"]);
  return code === 0 ? JSON.parse(stdout) : null;
}

async function processesOf(host: LabHost, uid: number): Promise<SeenProcess[]> {
  // grep's code is 2 for every process that went away between the listing and the reading.
  const status = await host.sh("grep -Es '^(Name|State|Threads|Uid|NSpid):' /proc/[0-9]*/status || true");
  const seen = new Map<number, Record<string, string>>();
  for (const line of status.split("\n")) {
    const match = /^\/proc\/(\d+)\/status:(\w+):\s*(.*)$/.exec(line);
    if (!match) continue;
    const [, pid = "", field = "", value = ""] = match;
    const fields = seen.get(Number(pid)) ?? {};
    fields[field] = value;
    seen.set(Number(pid), fields);
  }
  const processes = [...seen]
    .map(([pid, fields]) => seenProcess(pid, fields))
    .filter((process) => process.uids.includes(uid));
  const cgroups = await cgroupsOf(host, processes);
  return processes.map((process) => ({ ...process, cgroup: cgroups.get(process.pid) ?? "gone" }));
}

function seenProcess(pid: number, fields: Record<string, string>): SeenProcess {
  return {
    pid,
    name: fields.Name ?? "",
    state: (fields.State ?? "?").charAt(0),
    threads: Number(fields.Threads ?? 0),
    uids: (fields.Uid ?? "").split(/\s+/).map(Number),
    namespaceDepth: (fields.NSpid ?? "").split(/\s+/).length,
    cgroup: "",
  };
}

async function cgroupsOf(host: LabHost, processes: SeenProcess[]): Promise<Map<number, string>> {
  if (processes.length === 0) return new Map();
  const files = processes.map((process) => `/proc/${process.pid}/cgroup`).join(" ");
  const text = await host.sh(`grep -Hs '^0::' ${files} || true`);
  const lines = text.split("\n").map((line) => /^\/proc\/(\d+)\/cgroup:0::(.*)$/.exec(line));
  return new Map(lines.filter((match) => match !== null).map((match) => [Number(match[1]), match[2] ?? ""]));
}

async function sliceOf(host: LabHost, uid: number): Promise<Pick<Look, "slicePopulated" | "sliceMembers">> {
  const slice = `/sys/fs/cgroup/user.slice/user-${uid}.slice`;
  const events = await host.sh(`cat ${slice}/cgroup.events 2>/dev/null || true`);
  const populated = /^populated (\d)$/m.exec(events)?.[1];
  const lists = await host.sh(`find ${slice} -name cgroup.procs -exec grep -Hs . {} + 2>/dev/null || true`);
  const members = lists.split("\n").map((line) => /^\/sys\/fs\/cgroup(.*)\/cgroup\.procs:(\d+)$/.exec(line));
  return {
    slicePopulated: populated === undefined ? undefined : populated === "1",
    sliceMembers: members
      .filter((match) => match !== null)
      .map((match) => ({ cgroup: match[1] ?? "", pid: Number(match[2]) })),
  };
}

async function managerOf(host: LabHost, uid: number): Promise<string> {
  return (await host.sh(`systemctl is-active user@${uid}.service || true`)).trim();
}
