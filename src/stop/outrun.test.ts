// SPDX-License-Identifier: Apache-2.0
// A kill that newcomers outrun: all are stopped before they are killed, for a moment at a time, and nobody is stopped who
// would take a process of somebody else's with him.

import { expect, test } from "vitest";
import { killOutright } from "./end-session.ts";
import type { HandMadeHost } from "./hand-made-host.fixture.ts";
import { hostOf, loadavg, mortal, place, scopeOf } from "./hand-made-processes.fixture.ts";
import { SIGKILL, SIGSTOP } from "./kernel.ts";
import { limits } from "./limits.ts";

/** Another process, the newest. */
function bear(host: HandMadeHost, pid: number, parent = 1): void {
  place(host, { pid, parent });
  host.files.set("/proc/loadavg", loadavg(pid));
  host.directories.set("/proc", [...(host.directories.get("/proc") as string[]), String(pid)]);
}

// Under a limit of processes each one that is killed makes room for a child of another.
test("stops all first where those whom it killed are followed by others, which then fork no more", async () => {
  const host = hostOf([30, 31, 32]);
  const send = host.signal.bind(host);
  const stopped = new Set<number>();
  let next = 40;
  host.signal = (pid, signal) => {
    if (signal === SIGSTOP) stopped.add(pid);
    if (signal !== SIGKILL || !host.files.delete(`/proc/${pid}/status`)) return send(pid, signal);
    const forker = [...host.files.keys()].find((path) => {
      const other = /^\/proc\/([0-9]+)\/status$/.exec(path)?.[1];
      return other !== undefined && Number(other) !== host.pid && !stopped.has(Number(other));
    });
    host.clockMs += 10;
    if (forker !== undefined) {
      bear(host, ++next);
    }
    return send(pid, signal);
  };
  const startMs = host.clockMs;
  const kill = await killOutright(host, scopeOf(), true, new Set());
  expect(kill.proved).toBe(true);
  expect(stopped.size).toBeGreaterThan(0);
  expect(host.clockMs - startMs).toBeGreaterThan(limits.killAloneMs);
  expect(host.clockMs - startMs).toBeLessThan(2_000);
});

// One that a timer continues at once, and one more in each look: nobody is ever found stopped.
test("does not go on stopping who cannot be stopped: killing goes on in between", async () => {
  const host = hostOf([30]);
  const killedAtMs: number[] = [];
  const send = host.signal.bind(host);
  host.signal = (pid, signal) => {
    if (signal === SIGKILL) killedAtMs.push(host.clockMs);
    return send(pid, signal);
  };
  const list = host.list.bind(host);
  let next = 40;
  host.list = (path) => {
    if (path === "/proc") {
      host.clockMs += 40;
      bear(host, ++next);
    }
    return list(path);
  };
  await killOutright(host, scopeOf(), true, new Set());
  const gaps = killedAtMs.slice(1).map((ms, index) => ms - (killedAtMs[index] as number));
  expect(Math.max(...gaps)).toBeLessThan(1_000);
  expect(host.signals.filter(({ pid, signal }) => pid === 30 && signal === SIGSTOP).length).toBeGreaterThan(1);
});

test("stops nobody whom a parent of somebody else's waits for: sudo would stop itself for good", async () => {
  const host = hostOf([30, 31]);
  place(host, { pid: 20, uids: [0, 0, 0, 0], cgroup: "/system.slice/cron.service" });
  place(host, { pid: 30, parent: 20 });
  place(host, { pid: 31, parent: 30 });
  const list = host.list.bind(host);
  let next = 40;
  host.list = (path) => {
    if (path === "/proc") {
      host.clockMs += 100;
      bear(host, ++next, 31);
    }
    return list(path);
  };
  await killOutright(host, scopeOf(), true, new Set());
  const stopped = new Set(host.signals.filter(({ signal }) => signal === SIGSTOP).map(({ pid }) => pid));
  expect([stopped.has(30), stopped.has(31)]).toEqual([false, true]);
});

test("stops nobody where killing alone is enough", async () => {
  const host = mortal(hostOf([30, 31, 32]));
  await killOutright(host, scopeOf(), true, new Set());
  expect(host.signals.map(({ signal }) => signal)).not.toContain(SIGSTOP);
});
