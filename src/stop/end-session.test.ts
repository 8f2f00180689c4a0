// SPDX-License-Identifier: Apache-2.0
// When looks are a proof. What the grace and the kill do to a host is told by the laws of the simulation.

import { describe, expect, test } from "vitest";
import { describeSurvivors, killOutright, lookAgain, Proof, terminateGracefully } from "./end-session.ts";
import { HandMadeHost } from "./hand-made-host.fixture.ts";
import {
  censusOf,
  found,
  hostOf,
  loadavg,
  mortal,
  place,
  populate,
  scopeOf,
  slicePath,
  statText,
  statusText,
} from "./hand-made-processes.fixture.ts";
import { EACCES, EIO, ENODEV, EROFS, ESRCH, SIGKILL, SIGTERM } from "./kernel.ts";
import { limits } from "./limits.ts";
import { auxiliaryVector } from "./simulation/proc-texts.ts";

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

  test("runs even where nothing is left, both mechanisms in every pass", async () => {
    const host = hostOf([]);
    const kill = await killOutright(host, scopeOf(), true, new Set());
    expect(kill).toMatchObject({ proved: true, passes: 2 });
    expect(host.writes).toEqual([
      { path: killFile, text: "1" },
      { path: killFile, text: "1" },
    ]);
  });

  test("signals each process once per pass and proves it gone afterwards", async () => {
    const host = mortal(hostOf([20, 21]));
    const kill = await killOutright(host, scopeOf(), true, new Set());
    expect(host.signals).toEqual([
      { pid: 21, signal: SIGKILL },
      { pid: 20, signal: SIGKILL },
    ]);
    expect(kill).toMatchObject({ proved: true, mechanisms: ["cgroup-kill", "per-pid"], refusal: undefined });
    expect([...kill.killed.keys()].sort()).toEqual([20, 21]);
  });

  test("a signal that was accepted is no proof: whoever stays is alive, and the kill ends within its limit", async () => {
    const host = hostOf([20]);
    const startMs = host.clockMs;
    const kill = await killOutright(host, scopeOf(), true, new Set());
    expect(kill.proved).toBe(false);
    expect(kill.last?.alive.map(({ pid }) => pid)).toEqual([20]);
    expect(host.clockMs - startMs).toBeLessThanOrEqual(limits.killMs + limits.laterPollMs);
  });

  test("a slice that says populated is alive, whatever the census says", async () => {
    const host = hostOf([]);
    host.files.set(`/sys/fs/cgroup${slicePath}/cgroup.events`, "populated 1\n");
    const kill = await killOutright(host, scopeOf(), true, new Set());
    expect(kill).toMatchObject({ proved: false, slicePopulated: true });
  });

  test("goes on process by process where the write is refused, and says so", async () => {
    const host = mortal(hostOf([20]));
    host.writeAnswers.set(killFile, EROFS);
    const kill = await killOutright(host, scopeOf(), true, new Set());
    expect(kill).toMatchObject({
      proved: true,
      mechanisms: ["per-pid"],
      refusal: "cgroup.kill could not be written (errno 30): each process was killed by itself",
    });
  });

  test("a slice that is gone is neither a mechanism nor a refusal", async () => {
    const host = mortal(hostOf([20]));
    host.writeAnswers.set(killFile, ENODEV);
    const kill = await killOutright(host, scopeOf(), true, new Set());
    expect(kill).toMatchObject({ proved: true, mechanisms: ["per-pid"], refusal: undefined });
  });

  test("a helper that could not leave the slice does not write its own end", async () => {
    const host = mortal(hostOf([20]));
    await killOutright(host, scopeOf(), false, new Set());
    expect(host.writes).toEqual([]);
    expect(host.signals).toEqual([{ pid: 20, signal: SIGKILL }]);
  });

  test("whoever could be a bystander is counted and never signalled", async () => {
    const host = hostOf([]);
    populate(host, [{ pid: 20, uids: [0, 990, 0, 990] }], 20);
    host.files.set("/proc/20/cgroup", EIO);
    const kill = await killOutright(host, scopeOf(), true, new Set());
    expect(kill.proved).toBe(false);
    expect(host.signals).toEqual([]);
  });

  describe("cuts off FUSE connections", () => {
    const connections = "/sys/fs/fuse/connections";

    async function stuck(changes: (host: HandMadeHost) => void): Promise<string[]> {
      const host = hostOf([20]);
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
        host.files.set("/proc/30/auxv", auxiliaryVector(0));
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
    expect(await lookAgain(host, scopeOf(), 2_000, nobody)).toMatchObject({ quiet: true });
    expect([host.signals, host.writes]).toEqual([[], []]);
  });

  test("names who is alive again, at once, and does nothing to it", async () => {
    const host = new HandMadeHost();
    populate(host, [{ pid: 20 }, { pid: 21 }], 21);
    const startMs = host.clockMs;
    const look = await lookAgain(host, scopeOf(), 2_000, ({ pid }) => pid === 20);
    expect(look.quiet).toBe(false);
    expect(look.last?.alive.map(({ pid }) => pid)).toEqual([21]);
    expect([host.signals, host.writes, host.clockMs]).toEqual([[], [], startMs]);
  });

  test("who came with the manager is excused, though the slice is populated by it", async () => {
    const host = new HandMadeHost();
    populate(host, [{ pid: 20 }], 20);
    host.files.set(`/sys/fs/cgroup${slicePath}/cgroup.events`, "populated 1\n");
    expect(await lookAgain(host, scopeOf(), 2_000, () => true)).toMatchObject({ quiet: true });
    expect(await lookAgain(host, scopeOf(), 2_000, nobody)).toMatchObject({ quiet: false });
  });

  test("somebody who comes and goes between two looks breaks the proof", async () => {
    const host = new HandMadeHost();
    populate(host, [], 10);
    let looks = 0;
    const list = host.list.bind(host);
    host.list = (path) => {
      if (path === "/proc") looks++;
      return list(path);
    };
    host.files.set("/proc/loadavg", () => loadavg(10 + Math.min(looks, 4)));
    expect(await lookAgain(host, scopeOf(), 2_000, nobody)).toMatchObject({ quiet: true });
    // The last number was given out at the fourth look: a proof is the pair of looks that begins after it.
    expect(looks).toBe(6);
  });

  test("does not forgive who was seen once, however quiet the looks after it", async () => {
    for (const aliveAt of [1, 2, 3]) {
      const host = new HandMadeHost();
      populate(host, [{ pid: 20 }], 20);
      // Before it is seen something is created between two looks, so that these are no proof yet; after it nothing is.
      let looks = 0;
      const list = host.list.bind(host);
      host.files.set("/proc/loadavg", () => loadavg(looks < aliveAt ? 20 + host.reads.length : 20));
      host.list = (path) => {
        if (path !== "/proc") return list(path);
        looks++;
        if (looks === aliveAt) place(host, { pid: 20 });
        else host.files.delete("/proc/20/status");
        return list(path);
      };
      const look = await lookAgain(host, scopeOf(), 2_000, nobody);
      expect([look.quiet, look.last?.alive.map(({ pid }) => pid), looks]).toEqual([false, [20], aliveAt]);
    }
  });

  describe("of somebody whose place could not be read", () => {
    /** Whoever has a place came with the manager; what this one is once its place was asked for. */
    async function lookAt(then: "there" | "gone" | "dead" | "another one") {
      const host = new HandMadeHost();
      populate(host, [{ pid: 20 }], 20);
      host.files.set("/proc/20/cgroup", () => {
        if (then === "gone") host.files.delete("/proc/20/status");
        if (then === "dead") host.files.set("/proc/20/status", statusText({ pid: 20, state: "Z (zombie)" }));
        if (then === "another one") host.files.set("/proc/20/stat", statText({ pid: 20, startTicks: 9_999_999 }));
        return ESRCH;
      });
      return lookAgain(host, scopeOf(), 2_000, ({ cgroup }) => cgroup !== undefined);
    }

    test("a short-lived child of the manager that is gone by then has not reappeared", async () => {
      expect(await lookAt("gone")).toMatchObject({ quiet: true });
      expect(await lookAt("dead")).toMatchObject({ quiet: true });
    });

    test("whoever is still there has, unknown is alive", async () => {
      const look = await lookAt("there");
      expect([look.quiet, look.last?.alive.map(({ pid }) => pid)]).toEqual([false, [20]]);
    });
  });

  test("somebody whose place was read counts, also if it is gone a moment later", async () => {
    const host = new HandMadeHost();
    populate(host, [{ pid: 20 }], 20);
    const read = host.readText.bind(host);
    host.readText = (path) => {
      const text = read(path);
      if (path === "/proc/20/cgroup") host.files.delete("/proc/20/status");
      return text;
    };
    const look = await lookAgain(host, scopeOf(), 2_000, nobody);
    expect([look.quiet, look.last?.alive.map(({ pid }) => pid)]).toEqual([false, [20]]);
  });

  test("who may be a bystander, or cannot be read, is looked at until the limit and is then not quiet", async () => {
    const unread = new HandMadeHost();
    populate(unread, [{ pid: 20 }], 20);
    unread.files.set("/proc/20/status", EIO);
    const held = new HandMadeHost();
    populate(held, [{ pid: 20, uids: [0, 990, 0, 990] }], 20);
    held.files.set("/proc/20/cgroup", EIO);
    for (const host of [unread, held]) {
      const startMs = host.clockMs;
      const look = await lookAgain(host, scopeOf(), 2_000, nobody);
      expect([look.quiet, (look.last?.unreadable.length ?? 0) + (look.last?.held.length ?? 0)]).toEqual([false, 1]);
      expect(host.clockMs - startMs).toBeGreaterThanOrEqual(2_000);
      expect(host.clockMs - startMs).toBeLessThanOrEqual(2_000 + limits.laterPollMs);
    }
  });

  test("a slice that says populated with nobody in it is not quiet", async () => {
    const host = new HandMadeHost();
    populate(host, [], 10);
    host.files.set(`/sys/fs/cgroup${slicePath}/cgroup.events`, "populated 1\n");
    expect(await lookAgain(host, scopeOf(), 2_000, nobody)).toMatchObject({ quiet: false });
  });

  test("looks that were all cut off are not quiet, and nobody is named", async () => {
    const host = new HandMadeHost();
    populate(host, [{ pid: 20 }], 20);
    host.onRead = () => {
      host.clockMs += 3_000;
    };
    expect(await lookAgain(host, scopeOf(), 2_000, nobody)).toEqual({ quiet: false, last: undefined });
  });
});

describe("the grace", () => {
  const count = 300;
  const unit = `${slicePath}/ai-tools-claude-code-7.service`;

  /** Processes that only their place makes the account's; each reading of a place costs so much. */
  function costly(costMs: number) {
    const host = new HandMadeHost();
    const uids = [0, 0, 0, 0] as const;
    const processes = Array.from({ length: count }, (_, index) => ({ pid: 20 + index, uids, cgroup: unit }));
    populate(host, processes, 20 + count);
    host.files.set(`/sys/fs/cgroup${slicePath}/cgroup.events`, "populated 1\n");
    host.onRead = (path) => {
      if (/^\/proc\/[0-9]+\/cgroup$/.test(path)) host.clockMs += costMs;
    };
    return { host, census: censusOf(processes.map((process) => found(process))) };
  }

  const terminated = (host: HandMadeHost) => host.signals.filter(({ signal }) => signal === SIGTERM).length;

  test("ends at its deadline though the pass of SIGTERM alone would take longer", async () => {
    const { host, census } = costly(100);
    const startMs = host.clockMs;
    await terminateGracefully(host, scopeOf(), census, () => undefined);
    expect(host.clockMs - startMs).toBeLessThanOrEqual(limits.graceMs + limits.leftoverMs + 200);
    expect(terminated(host)).toBeGreaterThan(50);
    expect(terminated(host)).toBeLessThan(count);
  });

  test("ends at its deadline though each line of progress costs seconds", async () => {
    const { host, census } = costly(20);
    const startMs = host.clockMs;
    let lines = 0;
    await terminateGracefully(host, scopeOf(), census, () => void lines++);
    expect(terminated(host)).toBe(count);
    expect(lines).toBeGreaterThan(0);
    expect(host.clockMs - startMs).toBeLessThanOrEqual(limits.graceMs + limits.leftoverMs + 200);
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
