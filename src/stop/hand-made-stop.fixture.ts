// SPDX-License-Identifier: Apache-2.0
// A whole host made by hand for a stop from its first step to its last, and what it left behind. For tests only.

import type { StopRequest } from "./grammar.ts";
import { HandMadeHost } from "./hand-made-host.fixture.ts";
import { type Described, populate, slicePath, stat, statText, statusText } from "./hand-made-processes.fixture.ts";
import { SIGKILL } from "./kernel.ts";

export const plain: StopRequest = { dryRun: false, yes: false, force: false, json: false };
export const atOnce: StopRequest = { ...plain, yes: true, force: true };
export const lastStopPath = "/run/ai-tools/last-stop.json";
export const restoreNote = "/run/ai-tools/stop/restore-wanted";
/** Asked about the account's own manager; absent where it does not run. */
export const managerEvents = `/sys/fs/cgroup${slicePath}/user@990.service/cgroup.events`;
export const startManager = "/usr/bin/systemctl start user@990.service";

/** A whole host with these processes; SIGKILL takes a process off it unless it is deaf to that too. */
export function hostWith(processes: readonly Described[], immortal: readonly number[] = []): HandMadeHost {
  const host = new HandMadeHost();
  const files = {
    "/etc/passwd":
      "root:x:0:0::/root:/bin/sh\nolga:x:1000:1000::/home/olga:/bin/sh\nai-tools:x:990:990::/var/lib/ai-tools:/bin/false\n",
    "/proc/1/cgroup": "0::/init.scope\n",
    "/proc/self/status": statusText({ pid: host.pid, uids: [0, 0, 0, 0] }),
    "/proc/self/stat": statText({ pid: host.pid }),
    "/proc/self/uid_map": "0 0 4294967295\n",
    "/proc/self/loginuid": "1000",
    "/proc/self/cgroup": "0::/user.slice/user-1000.slice/session-3.scope\n",
    "/proc/self/mountinfo":
      "22 28 0:20 / /proc rw - proc proc rw\n30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
    "/proc/uptime": "900.00 1.00\n",
  };
  for (const [path, text] of Object.entries(files)) host.files.set(path, text);
  host.links.set("/proc/self", String(host.pid));
  host.variables.set("SUDO_UID", "1000");
  host.variables.set("SUDO_USER", "olga");
  host.stats.set(lastStopPath, stat());
  populate(host, processes, Math.max(10, ...processes.map(({ pid }) => pid)));
  const send = host.signal.bind(host);
  host.signal = (pid, signal) => {
    if (signal === SIGKILL && !immortal.includes(pid)) host.files.delete(`/proc/${pid}/status`);
    return send(pid, signal);
  };
  return host;
}

/** Lingering is on, the manager runs, and it can read nothing that the account wrote. */
export function withManager(host: HandMadeHost): HandMadeHost {
  host.files.set(managerEvents, "populated 1\n");
  host.stats.set("/var/lib/systemd/linger/ai-tools", stat());
  host.stats.set("/var/lib/ai-tools", stat({ kind: "directory", mode: 0o755 }));
  host.directories.set("/var/lib/ai-tools", []);
  const send = host.signal.bind(host);
  host.signal = (pid, signal) => {
    if (signal === SIGKILL) host.files.set(managerEvents, "populated 0\n");
    return send(pid, signal);
  };
  return host;
}

/** Makes one call of a method throw, the nth (from 1) whose first argument is of interest. */
export function throwing<
  M extends "list" | "readText" | "readLink" | "makeDirectory" | "createFile" | "signal" | "print" | "remove",
>(host: HandMadeHost, method: M, about: (first: unknown, second: unknown) => boolean, nth = 1): void {
  const work = host[method].bind(host) as (...args: unknown[]) => unknown;
  let call = 0;
  (host[method] as (...args: unknown[]) => unknown) = (...args) => {
    if (about(args[0], args[1]) && ++call === nth) throw new Error("out of everything");
    return work(...args);
  };
}

export function events(host: HandMadeHost): { AI_TOOLS_RESULT: string; message: string }[] {
  const lines = host.children.flatMap(({ sent }) => sent.split("\n"));
  return lines.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line));
}

export const results = (host: HandMadeHost) => events(host).map((event) => event.AI_TOOLS_RESULT);
export const lastStop = (host: HandMadeHost) => JSON.parse(String(host.files.get(lastStopPath) ?? "null"));
