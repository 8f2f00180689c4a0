// SPDX-License-Identifier: Apache-2.0
// Whom the signals of a stop reach: whoever was looked at, and never who has the number by then; nor anybody dead. Also
// where nobody can be held.

import { describe, expect, test } from "vitest";
import { killOutright, terminateGracefully } from "./end-session.ts";
import type { HandMadeHost } from "./hand-made-host.fixture.ts";
import { censusOf, found, hostOf, mortal, place, populate, scopeOf } from "./hand-made-processes.fixture.ts";
import { EMFILE, ENOSYS, EPERM, SIGCONT, SIGTERM } from "./kernel.ts";

describe("in the kill", () => {
  test("nobody who is dead is signalled, whether anybody can be held or not", async () => {
    for (const refusal of [0, ENOSYS]) {
      const host = hostOf([]);
      populate(host, [{ pid: 20, state: "Z (zombie)", parent: 44 }], 20);
      host.holdRefusal = refusal;
      const kill = await killOutright(host, scopeOf(), true, new Set());
      expect(host.signals).toEqual([]);
      expect(kill).toMatchObject({ proved: true, mechanisms: ["cgroup-kill"] });
      expect([kill.killed.size, kill.last?.unreaped.map(({ pid }) => pid)]).toEqual([0, [20]]);
    }
  });

  test("whoever got the number of one that was looked at gets no signal", async () => {
    const host = hostOf([20]);
    host.onRead = (path) => {
      if (path !== "/proc/20/status") return;
      // Looked at, ended, reaped, and the number given to another user's process.
      host.reaped.add(20);
      queueMicrotask(() =>
        place(host, { pid: 20, uids: [1_001, 1_001, 1_001, 1_001], cgroup: "/system.slice/x.service" }),
      );
    };
    const kill = await killOutright(host, scopeOf(), true, new Set());
    expect(host.signals).toEqual([]);
    expect(kill).toMatchObject({ proved: true, mechanisms: ["cgroup-kill"] });
    expect(host.held.size).toBe(0);
  });

  test.each([
    ["no kernel before 5.3", ENOSYS],
    ["no descriptor is free", EMFILE],
    ["it is forbidden", EPERM],
  ])("signals by number where nobody can be held: %s", async (_name, refusal) => {
    const host = mortal(hostOf([20, 21]));
    host.holdRefusal = refusal;
    const kill = await killOutright(host, scopeOf(), true, new Set());
    expect(host.signals.map(({ pid }) => pid)).toEqual([21, 20]);
    expect(kill).toMatchObject({ proved: true, mechanisms: ["cgroup-kill", "per-pid"] });
  });
});

describe("in the grace", () => {
  /** A polite process that ends at SIGTERM, whose number another user's has at once. */
  function politeHost(): HandMadeHost {
    const host = hostOf([20]);
    const send = host.signal.bind(host);
    host.signal = (pid, signal) => {
      const sent = send(pid, signal);
      if (signal !== SIGTERM) return sent;
      host.reaped.add(20);
      place(host, {
        pid: 20,
        uids: [1_001, 1_001, 1_001, 1_001],
        cgroup: "/system.slice/x.service",
        startTicks: 9_000,
      });
      return sent;
    };
    return host;
  }

  test.each([
    ["held", 0],
    ["a number alone", ENOSYS],
  ])("SIGCONT does not reach whoever got the number of one that SIGTERM has ended: %s", async (_name, refusal) => {
    const host = politeHost();
    host.holdRefusal = refusal;
    const census = censusOf([found({ pid: 20 })]);
    await terminateGracefully(host, scopeOf(), census, () => undefined);
    expect(host.signals).toEqual([{ pid: 20, signal: SIGTERM }]);
    expect(host.held.size).toBe(0);
  });

  test.each([
    ["held", 0],
    ["a number alone", ENOSYS],
  ])("SIGCONT follows SIGTERM where that has not ended it: %s", async (_name, refusal) => {
    const host = hostOf([20]);
    host.holdRefusal = refusal;
    await terminateGracefully(host, scopeOf(), censusOf([found({ pid: 20 })]), () => undefined);
    expect(host.signals).toEqual([
      { pid: 20, signal: SIGTERM },
      { pid: 20, signal: SIGCONT },
    ]);
  });

  test("a number that is nobody's, or a thread's by now, is not asked", async () => {
    const host = hostOf([30]);
    place(host, { pid: 21, tgid: 30 });
    await terminateGracefully(host, scopeOf(), censusOf([found({ pid: 20 }), found({ pid: 21 })]), () => undefined);
    expect(host.signals).toEqual([]);
  });
});
