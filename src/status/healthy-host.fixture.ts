// SPDX-License-Identifier: Apache-2.0
// A host made by hand on which everything is as it should be and nothing runs. A test breaks one thing. For tests only.

import { HandMadeGround } from "../ground/hand-made-ground.fixture.ts";
import { enforcing } from "../ground/hand-made-selinux.fixture.ts";
import { helpers } from "../ground/places.ts";
import { encodeUtf8, type SessionRecord } from "../ground/records.ts";
import { type Described, place, populate, slicePath, stat, statusText } from "../stop/hand-made-processes.fixture.ts";
import { EACCES } from "../stop/kernel.ts";
import { expectedLines } from "./sudo-rule.ts";

export const sliceDirectory = `/sys/fs/cgroup${slicePath}`;
export const grant = `User olga may run the following commands on host:
    (root) NOPASSWD: /usr/libexec/ai-tools/ai-tools-stop ""
    (root) NOPASSWD: ${Object.values(helpers).join(", ")}
`;
export const list = "/usr/bin/sudo -n -l";

const directory = (mode: number, uid = 0) => stat({ kind: "directory", mode, uid });

/** As root sees it, unless `caller` is an operator or somebody else. */
export function healthyHost(caller: "root" | "operator" | "other" = "root"): HandMadeGround {
  const host = new HandMadeGround();
  host.root = caller === "root";
  const own = statusText({ pid: host.pid, uids: host.root ? [0, 0, 0, 0] : [1001, 1001, 1001, 1001] });
  const files = {
    "/etc/passwd": "root:x:0:0::/root:/bin/sh\nai-tools:x:990:990::/var/lib/ai-tools:/bin/false\n",
    "/etc/group": "root:x:0:\nai-ops:x:980:olga\n",
    "/proc/1/cgroup": "0::/init.scope\n",
    "/proc/self/status": own.replace("Groups:\t990 ", caller === "operator" ? "Groups:\t980 1001 " : "Groups:\t1002 "),
    "/proc/self/uid_map": "0 0 4294967295\n",
    "/proc/self/mountinfo":
      "22 28 0:20 / /proc rw - proc proc rw\n30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
    "/proc/sys/kernel/random/boot_id": "this-boot\n",
    "/sys/fs/cgroup/cgroup.controllers": "cpu io memory pids\n",
    "/etc/sudoers.d/ai-tools": `${expectedLines.join("\n")}\n`,
    "/var/lib/ai-tools/uids": "990\n",
    "/etc/cron.deny": "ai-tools\n",
    "/etc/at.deny": "ai-tools\n",
    "/run/systemd/generator/user-990.slice.d/50-ai-tools.conf":
      "[Slice]\nCPUWeight=20\nIOWeight=20\nCPUQuota=150%\nTasksMax=8192\nMemoryHigh=80%\n",
    "/run/systemd/generator/user@990.service.d/50-ai-tools.conf":
      "[Service]\nEnvironment=SYSTEMD_UNIT_PATH=/etc/systemd/user:/usr/lib/systemd/user\n",
  };
  for (const [path, text] of Object.entries(files)) host.files.set(path, text);
  host.links.set("/proc/self", String(host.pid));
  host.person("olga", 1001);
  host.stats.set("/var/lib/ai-tools", directory(0o755));
  host.stats.set("/etc/sudoers.d/ai-tools", stat({ mode: 0o440, uid: 0 }));
  host.stats.set("/usr/bin/crontab", stat({ mode: 0o2755, uid: 0 }));
  host.stats.set("/usr/bin/at", stat({ mode: 0o4755, uid: 0 }));
  host.stats.set("/var/log/ai-tools", directory(0o700));
  host.stats.set("/usr/lib/ai-tools/ai-tools-session", stat({ mode: 0o755, uid: 0 }));
  enforcing(host);
  for (const name of ["stop", "claim", "run", "hold"]) {
    host.stats.set(`/usr/libexec/ai-tools/ai-tools-${name}`, stat({ mode: 0o700, uid: 0 }));
  }
  host.program = (line) => (line.startsWith(list) ? { code: 0, output: grant } : undefined);
  populate(host, [], 50);
  if (caller !== "root") closeToOthers(host);
  return host;
}

/** What only root sees into on a real host. */
function closeToOthers(host: HandMadeGround): void {
  for (const name of ["stop", "claim", "run", "hold"]) host.stats.set(`/usr/libexec/ai-tools/ai-tools-${name}`, EACCES);
  host.stats.set("/var/log/ai-tools/stop.log", EACCES);
  host.stats.set("/etc/sudoers.d/ai-tools", EACCES);
  for (const path of ["/var/spool/cron/crontabs/ai-tools", "/var/spool/cron/ai-tools"]) host.stats.set(path, EACCES);
  for (const spool of ["/var/spool/cron/atjobs", "/var/spool/at"]) host.directories.set(spool, EACCES);
}

/** A cgroup with processes, below the slice unless the path is absolute. */
export function cgroup(host: HandMadeGround, path: string, processes: number, changes: { below?: number } = {}): void {
  const at = path.startsWith("/") ? path : `${sliceDirectory}/${path}`;
  host.stats.set(at, stat({ kind: "directory", mode: 0o755, uid: 0, nlink: 2 + (changes.below ?? 0) }));
  host.files.set(`${at}/cgroup.events`, `populated ${processes > 0 || changes.below ? 1 : 0}\nfrozen 0\n`);
  host.files.set(`${at}/cgroup.procs`, Array.from({ length: processes }, (_, index) => `${700 + index}\n`).join(""));
}

/** The slice as PID 1 makes it, within its limits. */
export function slice(host: HandMadeGround, units: number): void {
  cgroup(host, sliceDirectory, 0, { below: units });
  const files = { "cgroup.freeze": "0", "cgroup.max.descendants": "max", "cgroup.max.depth": "max" };
  const limits = { "cpu.weight": "20", "cpu.max": "150000 100000", "pids.max": "8192", "memory.high": "16384" };
  for (const [name, text] of Object.entries({ ...files, ...limits }))
    host.files.set(`${sliceDirectory}/${name}`, `${text}\n`);
}

/** A session with its unit and root's record, begun an hour and two minutes ago. */
export function session(host: HandMadeGround, changes: Partial<SessionRecord> = {}): SessionRecord {
  const record: SessionRecord = {
    unit: "ai-tools-claude-41.service",
    entryPoint: "claude",
    project: "/srv/shop",
    device: 1,
    inode: 5,
    directory: "/srv/shop",
    operator: { name: "olga", uid: 1001, gid: 1001 },
    since: new Date(host.wallClockMs() - 3_720_000).toISOString(),
    boot: "this-boot",
    stops: 0,
    withGit: false,
    ...changes,
  };
  host.files.set(`/var/lib/ai-tools/sessions/${record.unit}.json`, encodeUtf8(JSON.stringify(record)));
  return record;
}

/** The account's manager (pid 700) and its (sd-pam) as systemd 252 starts them, and its cgroups with nothing else in them. */
export function manager(host: HandMadeGround): void {
  cgroup(host, "user@990.service", 0, { below: 1 });
  cgroup(host, "user@990.service/init.scope", 2);
  const there = `${slicePath}/user@990.service/init.scope`;
  place(host, { pid: 700, command: "systemd", cgroup: there });
  companion(host, { pid: 701 });
}

/** A process beside the manager: its child, in its session, unless it says otherwise. */
export function companion(host: HandMadeGround, described: Described & { session?: number }): void {
  const { pid, parent = 700, session = 700, command = "(sd-pam)" } = described;
  place(host, { cgroup: `${slicePath}/user@990.service/init.scope`, ...described, parent, command });
  host.files.set(`/proc/${pid}/stat`, `${pid} (${command}) S ${parent} ${session} ${session} 0 -1\n`);
}

/** Processes of the account anywhere on the host. */
export function processes(host: HandMadeGround, described: readonly Described[]): void {
  for (const process of described) place(host, process);
  host.directories.set(
    "/proc",
    described.map(({ pid }) => String(pid)),
  );
}
