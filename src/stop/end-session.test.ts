// SPDX-License-Identifier: Apache-2.0
// When looks are a proof. What the grace and the kill do to a host is told by the laws of the simulation.

import { describe, expect, test } from "vitest";
import { describeSurvivors, killOutright, Proof, proveEmpty } from "./end-session.ts";
import { HandMadeHost, inTurn } from "./hand-made-host.fixture.ts";
import { censusOf, found, loadavg, populate, scopeOf, slicePath } from "./hand-made-processes.fixture.ts";
import { EACCES, EIO, ENODEV, EROFS, SIGKILL } from "./kernel.ts";
import { limits } from "./limits.ts";

type Look = readonly [empty: boolean, before: number | undefined, after: number | undefined];

/** After which look there is a proof, counted from 1; 0 for none. */
function provedAt(looks: readonly Look[]): number {
  const proof = new Proof();
  return looks.findIndex((look) => proof.add(...look)) + 1;
}

const busy = (count: number, from = 100): Look[] =>
  Array.from({ length: count }, (_, index) => [true, from + 2 * index, from + 2 * index + 1]);

describe("empty looks are a proof", () => {
  test("when two in a row have the same last pid around them: nothing was created in between", () => {
    expect(
      provedAt([
        [true, 70, 70],
        [true, 70, 70],
      ]),
    ).toBe(2);
  });

  test("one is none", () => {
    expect(provedAt([[true, 70, 70]])).toBe(0);
  });

  test("not when something was created before, between or after them", () => {
    expect(
      provedAt([
        [true, 69, 70],
        [true, 70, 70],
      ]),
    ).toBe(0);
    expect(
      provedAt([
        [true, 70, 70],
        [true, 71, 71],
      ]),
    ).toBe(0);
    expect(
      provedAt([
        [true, 70, 70],
        [true, 70, 71],
      ]),
    ).toBe(0);
  });

  test("the first look of a pair may follow a restless one", () => {
    expect(
      provedAt([
        [true, 60, 65],
        [true, 65, 70],
        [true, 70, 70],
        [true, 70, 70],
      ]),
    ).toBe(4);
  });

  test("on a host that forks without pause after ten in a row, no sooner", () => {
    expect(provedAt(busy(limits.emptyCensusesOnBusyHost - 1))).toBe(0);
    expect(provedAt(busy(limits.emptyCensusesOnBusyHost))).toBe(limits.emptyCensusesOnBusyHost);
  });

  test("a look that was not empty takes back all that came before it", () => {
    expect(
      provedAt([
        [true, 70, 70],
        [false, 70, 70],
        [true, 70, 70],
      ]),
    ).toBe(0);
    expect(provedAt([...busy(9), [false, 300, 300], ...busy(9, 400)])).toBe(0);
    const proof = new Proof();
    proof.add(true, 70, 70);
    expect(proof.begun).toBe(true);
    proof.add(false, 70, 70);
    expect(proof.begun).toBe(false);
  });

  test("looks without a last pid prove nothing, however many: the gap was not looked at", () => {
    const blind: Look[] = Array.from({ length: 40 }, () => [true, undefined, undefined]);
    expect(provedAt(blind)).toBe(0);
    expect(
      provedAt([
        [true, undefined, 70],
        [true, 70, 70],
      ]),
    ).toBe(0);
    expect(
      provedAt([
        [true, 70, undefined],
        [true, undefined, 70],
      ]),
    ).toBe(0);
  });
});

describe("the kill", () => {
  const killFile = `/sys/fs/cgroup${slicePath}/cgroup.kill`;

  function hostWith(pids: readonly number[]): HandMadeHost {
    const host = new HandMadeHost();
    populate(
      host,
      pids.map((pid) => ({ pid })),
      Math.max(10, ...pids),
    );
    return host;
  }

  /** SIGKILL takes processes off the host. */
  function mortal(host: HandMadeHost): HandMadeHost {
    const send = host.signal.bind(host);
    host.signal = (pid, signal) => {
      if (signal === SIGKILL) host.files.delete(`/proc/${pid}/status`);
      return send(pid, signal);
    };
    return host;
  }

  test("runs even where nothing is left, both mechanisms in every pass", async () => {
    const host = hostWith([]);
    const kill = await killOutright(host, scopeOf(), true, new Set());
    expect(kill).toMatchObject({ proved: true, passes: 2 });
    expect(host.writes).toEqual([
      { path: killFile, text: "1" },
      { path: killFile, text: "1" },
    ]);
  });

  test("signals each process once per pass and proves it gone afterwards", async () => {
    const host = mortal(hostWith([20, 21]));
    const kill = await killOutright(host, scopeOf(), true, new Set());
    expect(host.signals).toEqual([
      { pid: 21, signal: SIGKILL },
      { pid: 20, signal: SIGKILL },
    ]);
    expect(kill).toMatchObject({ proved: true, mechanisms: ["cgroup-kill", "per-pid"], refusal: undefined });
    expect([...kill.killed.keys()].sort()).toEqual([20, 21]);
  });

  test("a signal that was accepted is no proof: whoever stays is alive, and the kill ends within its limit", async () => {
    const host = hostWith([20]);
    const startMs = host.clockMs;
    const kill = await killOutright(host, scopeOf(), true, new Set());
    expect(kill.proved).toBe(false);
    expect(kill.last?.alive.map(({ pid }) => pid)).toEqual([20]);
    expect(host.clockMs - startMs).toBeLessThanOrEqual(limits.killMs + limits.laterPollMs);
  });

  test("a slice that says populated is alive, whatever the census says", async () => {
    const host = hostWith([]);
    host.files.set(`/sys/fs/cgroup${slicePath}/cgroup.events`, "populated 1\n");
    const kill = await killOutright(host, scopeOf(), true, new Set());
    expect(kill).toMatchObject({ proved: false, slicePopulated: true });
  });

  test("goes on process by process where the write is refused, and says so", async () => {
    const host = mortal(hostWith([20]));
    host.writeAnswers.set(killFile, EROFS);
    const kill = await killOutright(host, scopeOf(), true, new Set());
    expect(kill).toMatchObject({ proved: true, mechanisms: ["per-pid"], refusal: "cgroup.kill refused (errno 30)" });
  });

  test("a slice that is gone is neither a mechanism nor a refusal", async () => {
    const host = mortal(hostWith([20]));
    host.writeAnswers.set(killFile, ENODEV);
    const kill = await killOutright(host, scopeOf(), true, new Set());
    expect(kill).toMatchObject({ proved: true, mechanisms: ["per-pid"], refusal: undefined });
  });

  test("a helper that could not leave the slice does not write its own end", async () => {
    const host = mortal(hostWith([20]));
    await killOutright(host, scopeOf(), false, new Set());
    expect(host.writes).toEqual([]);
    expect(host.signals).toEqual([{ pid: 20, signal: SIGKILL }]);
  });

  test("whoever could be a bystander is counted and never signalled", async () => {
    const host = hostWith([]);
    populate(host, [{ pid: 20, uids: [0, 990, 0, 990] }], 20);
    host.files.set("/proc/20/cgroup", EIO);
    const kill = await killOutright(host, scopeOf(), true, new Set());
    expect(kill.proved).toBe(false);
    expect(host.signals).toEqual([]);
  });

  describe("cuts off FUSE connections", () => {
    const connections = "/sys/fs/fuse/connections";

    async function stuck(changes: (host: HandMadeHost) => void): Promise<string[]> {
      const host = hostWith([20]);
      host.files.set("/proc/20/wchan", "request_wait_answer");
      host.directories.set(connections, ["41", "42", "../41"]);
      const owned = (uid: number) => ({ kind: "directory" as const, mode: 0o500, uid, nlink: 2, rdev: 0, size: 0 });
      host.stats.set(`${connections}/41`, owned(990));
      host.stats.set(`${connections}/42`, owned(1000));
      changes(host);
      const startMs = host.clockMs;
      const kill = await killOutright(host, scopeOf(), true, new Set());
      expect(host.clockMs - startMs).toBeGreaterThan(limits.killMs - limits.fuseAbortMs);
      return kill.abortedConnections;
    }

    test("of the account alone, once, where a survivor waits for one", async () => {
      expect(await stuck(() => undefined)).toEqual(["41"]);
    });

    test("not where the survivor waits for something else", async () => {
      expect(await stuck((host) => void host.files.set("/proc/20/wchan", "ptrace_stop"))).toEqual([]);
    });

    test("not where a container's process with the same number was excepted", async () => {
      const aborted = await stuck((host) => {
        const shim = { pid: 30, uids: [0, 0, 0, 0] as const, cgroup: "/system.slice/x.service" };
        const inside = { pid: 31, parent: 30, namespacePids: "31\t1", cgroup: "/system.slice/docker-1.scope" };
        populate(host, [{ pid: 20 }, shim, inside], 31);
        host.links.set("/proc/self/ns/user", "user:[1]");
        host.links.set("/proc/31/ns/user", "user:[1]");
      });
      expect(aborted).toEqual([]);
    });
  });
});

describe("the final look", () => {
  const nobody = () => false;

  test("proves an empty host, and does nothing to it", async () => {
    const host = new HandMadeHost();
    populate(host, [], 10);
    expect(await proveEmpty(host, scopeOf(), 2_000, nobody)).toMatchObject({ proved: true });
    expect([host.signals, host.writes]).toEqual([[], []]);
  });

  test("names who is alive again when its limit has come", async () => {
    const host = new HandMadeHost();
    populate(host, [{ pid: 20 }, { pid: 21 }], 21);
    const look = await proveEmpty(host, scopeOf(), 2_000, ({ pid }) => pid === 20);
    expect(look.proved).toBe(false);
    expect(look.last?.alive.map(({ pid }) => pid)).toEqual([21]);
    expect(host.signals).toEqual([]);
  });

  test("who came with the manager is excused, though the slice is populated by it", async () => {
    const host = new HandMadeHost();
    populate(host, [{ pid: 20 }], 20);
    host.files.set(`/sys/fs/cgroup${slicePath}/cgroup.events`, "populated 1\n");
    expect(await proveEmpty(host, scopeOf(), 2_000, () => true)).toMatchObject({ proved: true });
    expect(await proveEmpty(host, scopeOf(), 2_000, nobody)).toMatchObject({ proved: false });
  });

  test("somebody who comes and goes between two looks breaks the proof", async () => {
    const host = new HandMadeHost();
    populate(host, [], 10);
    host.files.set(
      "/proc/loadavg",
      inTurn(...Array.from({ length: 9 }, (_, index) => loadavg(10 + index)), loadavg(50)),
    );
    const startReads = host.reads.length;
    expect(await proveEmpty(host, scopeOf(), 2_000, nobody)).toMatchObject({ proved: true });
    expect(host.reads.slice(startReads).filter((path) => path === "/proc").length).toBeGreaterThan(3);
  });
});

describe("a survivor is described by the kernel", () => {
  test("with state, wait channel and tracer, held ones too", () => {
    const host = new HandMadeHost();
    host.files.set("/proc/20/wchan", "ptrace_stop");
    host.files.set("/proc/21/wchan", "0");
    const census = censusOf([found({ pid: 20, state: "t", tracer: 77 })], { held: [found({ pid: 21, state: "D" })] });
    expect(describeSurvivors(host, census)).toMatchObject([
      { state: "t", waitChannel: "ptrace_stop", tracer: 77 },
      { state: "D", waitChannel: "", tracer: 0 },
    ]);
    host.files.set("/proc/20/wchan", EACCES);
    expect(describeSurvivors(host, census)[0]?.waitChannel).toBe("");
    expect(describeSurvivors(host, undefined)).toEqual([]);
  });
});
