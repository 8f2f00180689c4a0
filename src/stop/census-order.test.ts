// SPDX-License-Identifier: Apache-2.0
// Who is looked at and in which order, so that a chain of forks runs into the census instead of away from it.

import { describe, expect, test } from "vitest";
import { type Census, type CensusOptions, isEmpty, takeCensus } from "./census.ts";
import { HandMadeHost, inTurn } from "./hand-made-host.fixture.ts";
import { hostOf, loadavg, place, populate, scopeOf } from "./hand-made-processes.fixture.ts";
import { ENOSYS } from "./kernel.ts";
import { limits } from "./limits.ts";

const foreign = [1000, 1000, 1000, 1000] as const;
const elsewhere = "/system.slice/cron.service";

function lookAt(host: HandMadeHost, options: Partial<CensusOptions> = {}): Census {
  return takeCensus(host, scopeOf(), { deadlineMs: host.clockMs + 1_000, ...options });
}

const pids = (list: readonly { pid: number }[]) => list.map(({ pid }) => pid);

describe("the order of looking", () => {
  /** Numbers whose status was read, in order. */
  function lookedAt(listed: number[], last: number): number[] {
    const host = new HandMadeHost();
    populate(
      host,
      listed.map((pid) => ({ pid, uids: foreign, cgroup: elsewhere })),
      last,
    );
    lookAt(host);
    return host.reads.flatMap((path) => /^\/proc\/([0-9]+)\/status$/.exec(path)?.[1] ?? []).map(Number);
  }

  test("the list is read before the last pid: whoever is born between the two is in the gap", () => {
    const host = new HandMadeHost();
    populate(host, [{ pid: 50 }], 50);
    lookAt(host);
    expect(host.reads.indexOf("/proc")).toBeLessThan(host.reads.indexOf("/proc/loadavg"));
    expect(host.reads.indexOf("/proc/loadavg")).toBeLessThan(host.reads.indexOf("/proc/50/status"));
  });

  test("from the last pid down through the gap, then the listed ones downwards", () => {
    expect(lookedAt([10, 30, 20], 34)).toEqual([34, 33, 32, 31, 30, 20, 10]);
    expect(lookedAt([10, 30, 20], 30)).toEqual([30, 20, 10]);
  });

  test("numbers above the last pid are from before the wrap, the oldest, and come last, downwards", () => {
    expect(lookedAt([32_000, 5, 9, 31_000], 12)).toEqual([12, 11, 10, 9, 5, 32_000, 31_000]);
    expect(lookedAt([32_000, 31_000], 4)).toEqual([4, 3, 2, 32_000, 31_000]);
  });

  test("a gap that pid_max allows to be huge is walked from its top, so far and no farther", () => {
    const order = lookedAt([10], 4_000_000);
    expect(order).toHaveLength(limits.gapPids + 1);
    expect(order.slice(0, 2)).toEqual([4_000_000, 3_999_999]);
    expect(order.slice(-2)).toEqual([4_000_000 - limits.gapPids + 1, 10]);
  });

  test("each match is told before the next process is read, so that it can be signalled at once", () => {
    const host = new HandMadeHost();
    populate(host, [{ pid: 50 }, { pid: 40 }, { pid: 30, uids: foreign, cgroup: elsewhere }], 50);
    const order: string[] = [];
    host.onRead = (path) => void (path.endsWith("/status") && order.push(path));
    lookAt(host, { onAlive: ({ pid }) => void order.push(`alive ${pid}`) });
    expect(order).toEqual(["/proc/50/status", "alive 50", "/proc/40/status", "alive 40", "/proc/30/status"]);
  });

  test("each process is held from before it is read until it was told, and no other meanwhile", () => {
    const host = new HandMadeHost();
    populate(host, [{ pid: 50 }, { pid: 40, threads: 2 }, { pid: 30, uids: foreign, cgroup: elsewhere }], 51);
    place(host, { pid: 51, tgid: 40, threads: 2 });
    const holds: number[][] = [];
    const note = () => void holds.push([...host.held.values()]);
    host.onRead = (path) => {
      if (path.endsWith("/status")) note();
    };
    lookAt(host, { onAlive: note });
    // The thread 51, its process 40 (read, told), 50 (read, told), the stranger.
    expect(holds).toEqual([[], [40], [40], [50], [50], [30]]);
    expect(host.held.size).toBe(0);
  });

  test("nobody is held by a census that signals nobody", () => {
    const host = hostOf([50, 40]);
    host.hold = () => expect.unreachable("nobody is to be signalled");
    expect(pids(lookAt(host).alive)).toEqual([50, 40]);
  });

  test("whoever was born between the hold and the reading is held and read again", () => {
    const host = new HandMadeHost();
    populate(host, [{ pid: 40, uids: foreign, cgroup: elsewhere }], 50);
    host.onRead = (path) => {
      if (path === "/proc/50/status") place(host, { pid: 50 });
    };
    const told: (number | undefined)[] = [];
    lookAt(host, { onAlive: (_found, { handle }) => void told.push(handle && host.held.get(handle.fd)) });
    expect(told).toEqual([50]);
    expect(host.reads.filter((path) => path === "/proc/50/status")).toHaveLength(2);
  });

  test("a match that nobody could hold is told with its number alone where the kernel holds nobody", () => {
    const host = hostOf([50]);
    host.holdRefusal = ENOSYS;
    const told: unknown[] = [];
    lookAt(host, { onAlive: (_found, held) => void told.push(held) });
    expect(told).toEqual([{ pid: 50, handle: undefined }]);
  });

  test("a match is told before anything of it is read that could cost time", () => {
    const host = new HandMadeHost();
    populate(host, [{ pid: 50 }], 50);
    let readBefore: string[] = [];
    const onAlive = () => {
      readBefore = [...host.reads];
    };
    lookAt(host, { detailsMs: 100, onAlive });
    expect(readBefore.filter((path) => path.startsWith("/proc/50/"))).toEqual(["/proc/50/status"]);
  });

  test("a thread's number in the gap stands for its process, which counts once", () => {
    const host = new HandMadeHost();
    populate(host, [{ pid: 50, threads: 3 }], 53);
    for (const pid of [51, 53]) place(host, { pid, tgid: 50, threads: 3 });
    const signalled: number[] = [];
    const census = lookAt(host, { onAlive: ({ pid }) => void signalled.push(pid) });
    expect(signalled).toEqual([50]);
    expect(pids(census.alive)).toEqual([50]);
  });

  test("a thread at the top of a gap leads to its process, however far below and unlisted that is", () => {
    const host = new HandMadeHost();
    populate(host, [], 90_000);
    place(host, { pid: 80_000, threads: 2 });
    place(host, { pid: 90_000, tgid: 80_000, threads: 2 });
    expect(pids(lookAt(host).alive)).toEqual([80_000]);
  });

  describe("where numbers are given out while it runs, it ends with looks at the newest and above it", () => {
    /** The last pid is 50 until everybody was looked at, then 60; `above`: where the newest link of a chain is by then. */
    function chainOn(above: number | undefined, ends: readonly number[] = [60]) {
      const host = new HandMadeHost();
      populate(host, [{ pid: 50, uids: foreign, cgroup: elsewhere }], 50);
      const after = inTurn(...ends.map(loadavg));
      let over = false;
      host.onRead = (path) => {
        if (path === "/proc/50/status") over = true;
        if (over && above !== undefined) place(host, { pid: above });
      };
      host.files.set("/proc/loadavg", () => (over ? after() : loadavg(50)));
      return host;
    }

    test.each(Array.from({ length: limits.probeReach }, (_, above) => above))("%i above", (above) => {
      const signalled: number[] = [];
      const census = lookAt(chainOn(60 + above), { onAlive: ({ pid }) => void signalled.push(pid) });
      expect([pids(census.alive), signalled]).toEqual([[60 + above], [60 + above]]);
    });

    test("also where a number was looked at before and was nobody's then", () => {
      const host = new HandMadeHost();
      populate(host, [{ pid: 40, uids: foreign, cgroup: elsewhere }], 50);
      const ends = inTurn(loadavg(50), loadavg(50), loadavg(45));
      host.files.set("/proc/loadavg", ends);
      host.onRead = (path) => {
        if (path === "/proc/40/status") place(host, { pid: 47 });
      };
      expect(pids(lookAt(host).alive)).toEqual([47]);
    });

    test("in so many looks and no more, and never beyond its deadline", () => {
      const busy = () => chainOn(undefined, [60, 61, 62, 63, 64, 65]);
      const host = busy();
      expect(lookAt(host).complete).toBe(true);
      expect(host.reads.filter((path) => path.endsWith("/status"))).toHaveLength(1 + limits.probes);
      const late = busy();
      const { onRead } = late;
      late.onRead = (path) => {
        onRead(path);
        late.clockMs += 5;
      };
      lookAt(late, { deadlineMs: late.clockMs + 50 });
      expect(late.clockMs - 1_000_000).toBeLessThanOrEqual(50 + 10);
    });

    test("and with none where no number was given out", () => {
      const host = chainOn(undefined, [50]);
      lookAt(host);
      expect(host.reads.filter((path) => path.endsWith("/status"))).toEqual(["/proc/50/status"]);
    });
  });

  test("the helper's own threads and process 1 are never looked at as anybody's", () => {
    const host = new HandMadeHost();
    populate(host, [{ pid: host.pid }, { pid: 1 }], 402);
    place(host, { pid: 402, tgid: host.pid });
    place(host, { pid: 401, tgid: 1 });
    expect(isEmpty(lookAt(host))).toBe(true);
  });
});
