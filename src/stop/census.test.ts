// SPDX-License-Identifier: Apache-2.0
// Who of those that are looked at counts: every condition of a bystander is broken once, and whatever
// cannot be read counts.

import { describe, expect, test } from "vitest";
import { type Census, type CensusOptions, isEmpty, isStillAlive, readStatus, takeCensus } from "./census.ts";
import { HandMadeHost, inTurn } from "./hand-made-host.fixture.ts";
import {
  type Described,
  found,
  loadavg,
  place,
  populate,
  scopeOf,
  slicePath,
  statusText,
} from "./hand-made-processes.fixture.ts";
import { EACCES, EIO, ENOENT, EPERM, ESRCH } from "./kernel.ts";
import { auxiliaryVector } from "./simulation/proc-texts.ts";

const foreign = [1000, 1000, 1000, 1000] as const;
const asRoot = [0, 0, 0, 0] as const;
const elsewhere = "/system.slice/cron.service";
const ownUserNamespace = "user:[4026531837]";

function lookAt(host: HandMadeHost, options: Partial<CensusOptions> = {}, scope = scopeOf()): Census {
  return takeCensus(host, scope, { deadlineMs: host.clockMs + 1_000, ...options });
}

function censusOn(processes: readonly Described[], last?: number): Census {
  const host = new HandMadeHost();
  populate(host, processes, last ?? Math.max(...processes.map(({ pid }) => pid)));
  host.files.set(sliceEvents, "populated 1\n");
  return lookAt(host);
}

const sliceEvents = `/sys/fs/cgroup${slicePath}/cgroup.events`;
const pids = (list: readonly { pid: number }[]) => list.map(({ pid }) => pid);

describe("who counts outside the slice", () => {
  test.each([
    ["real", [990, 1000, 1000, 1000]],
    ["effective", [1000, 990, 1000, 1000]],
    ["saved", [1000, 1000, 990, 1000]],
    ["file system", [1000, 1000, 1000, 990]],
  ] as const)("whoever has the account's uid as %s uid", (_name, uids) => {
    expect(pids(censusOn([{ pid: 50, uids, cgroup: elsewhere }]).alive)).toEqual([50]);
  });

  test("whoever has a subordinate or an earlier number of it", () => {
    const scope = scopeOf({
      numbers: new Set([990, 980]),
      subordinate: [{ owner: "ai-tools", from: 100_000, to: 100_010 }],
    });
    const host = new HandMadeHost();
    const of = (pid: number, uid: number) => ({ pid, uids: [uid, uid, uid, uid] as const, cgroup: elsewhere });
    populate(host, [of(50, 980), of(51, 100_009), of(52, 100_010), of(53, 99_999)], 53);
    expect(pids(lookAt(host, {}, scope).alive)).toEqual([51, 50]);
  });

  test("nobody else", () => {
    expect(isEmpty(censusOn([{ pid: 50, uids: foreign, cgroup: elsewhere }]))).toBe(true);
  });
});

describe("inside the slice everything counts", () => {
  test.each([
    ["another user's process", { uids: foreign }],
    ["root's process", { uids: asRoot }],
    ["a root process acting for the account", { uids: [0, 990, 0, 990] as const }],
    ["a process of another pid namespace", { namespacePids: "50\t1" }],
    ["a process in the slice itself", { cgroup: slicePath, uids: foreign }],
    ["a process whose cgroup was removed behind it", { cgroup: `${slicePath}/x.scope (deleted)`, uids: foreign }],
    [
      "a process below a look-alike of root's manager",
      { cgroup: `${slicePath}/user@0.service/init.scope`, uids: asRoot },
    ],
  ])("%s", (_name, process) => {
    expect(pids(censusOn([{ pid: 50, ...process }]).alive)).toEqual([50]);
  });

  test("a path that only begins like the slice's is outside", () => {
    expect(isEmpty(censusOn([{ pid: 50, uids: foreign, cgroup: `${slicePath}-other/x.scope` }]))).toBe(true);
    expect(isEmpty(censusOn([{ pid: 50, uids: foreign, cgroup: "/user.slice/user-9900.slice/x.scope" }]))).toBe(true);
  });
});

// PID 1 looks up the places of a thousand dead in a deep cgroup, one each 0.2 s, and every reading of a place waits.
describe("where the places of processes are slow to be told", () => {
  const strangers = Array.from({ length: 100 }, (_, index) => ({ pid: 50 + index, uids: foreign, cgroup: "/x.scope" }));
  const placesRead = (host: HandMadeHost) => host.reads.filter((path) => path.endsWith("/cgroup")).length;

  function slowHost(events: () => string): HandMadeHost {
    const host = new HandMadeHost();
    populate(host, strangers, 149);
    host.files.set(sliceEvents, events);
    host.onRead = (path) => {
      if (path.endsWith("/cgroup")) host.clockMs += 200;
    };
    return host;
  }

  test.each(["populated 0\n", ENOENT])("no stranger's is read while nobody lives in the slice: %j", (events) => {
    const host = slowHost(() => "populated 1\n");
    host.files.set(sliceEvents, events);
    expect(isEmpty(lookAt(host))).toBe(true);
    expect(placesRead(host)).toBe(0);
  });

  test("the slice is asked again after each, and none is read once it is empty", () => {
    const host: HandMadeHost = slowHost(() => (placesRead(host) < 2 ? "populated 1\n" : "populated 0\n"));
    expect(lookAt(host).complete).toBe(true);
    expect(placesRead(host)).toBe(2);
  });

  test("they are read as long as somebody lives there, or nobody can tell, and a look that is cut off says so", () => {
    for (const events of ["populated 1\n", "", "populated 2\n"]) {
      const host = slowHost(() => events);
      expect(lookAt(host).complete).toBe(false);
      expect(placesRead(host)).toBeGreaterThan(3);
    }
  });
});

describe("a root process acting for the account", () => {
  test("is a bystander: named, not counted, not signalled", () => {
    const host = new HandMadeHost();
    populate(host, [{ pid: 50, uids: [0, 990, 0, 990], cgroup: "/system.slice/smbd.service" }], 50);
    const signalled: number[] = [];
    const census = lookAt(host, { onAlive: ({ pid }) => void signalled.push(pid) });
    expect(census.bystanders).toMatchObject([{ found: { pid: 50 }, reason: "a root process acting for the account" }]);
    expect(signalled).toEqual([]);
    expect(isEmpty(census)).toBe(true);
  });

  test.each([
    ["real uid is not root's", [990, 0, 0, 0]],
    ["saved uid is not root's", [0, 0, 990, 0]],
    ["saved uid is another user's", [0, 990, 1000, 990]],
  ] as const)("is none where its %s", (_name, uids) => {
    expect(pids(censusOn([{ pid: 50, uids, cgroup: elsewhere }]).alive)).toEqual([50]);
  });

  test.each([EIO, EACCES, ""])("is counted, though not signalled, where its place answers %j", (answer) => {
    const host = new HandMadeHost();
    populate(host, [{ pid: 50, uids: [0, 990, 0, 990] }], 50);
    host.files.set("/proc/50/cgroup", answer);
    const census = lookAt(host, { onAlive: () => expect.unreachable("it could be somebody else's") });
    expect(pids(census.held)).toEqual([50]);
    expect(isEmpty(census)).toBe(false);
  });
});

describe("a container's process with the account's number", () => {
  const container = "/system.slice/docker-4f2a.scope";

  /** The number in a container: init 60 of the namespace below root's shim 55, a process 61 below it. */
  function containerHost(): HandMadeHost {
    const host = new HandMadeHost();
    const shim: Described = { pid: 55, uids: asRoot, parent: 1, cgroup: "/system.slice/containerd.service" };
    const init: Described = { pid: 60, parent: 55, namespacePids: "60\t1", uids: asRoot, cgroup: container };
    const process: Described = { pid: 61, parent: 60, namespacePids: "61\t7", cgroup: container };
    populate(host, [shim, init, process], 61);
    host.links.set("/proc/self/ns/user", ownUserNamespace);
    for (const pid of [55, 60, 61]) host.links.set(`/proc/${pid}/ns/user`, ownUserNamespace);
    host.files.set("/proc/55/auxv", auxiliaryVector(0));
    return host;
  }

  test("is a bystander where all conditions hold", () => {
    const census = lookAt(containerHost(), { onAlive: () => expect.unreachable("a bystander is never signalled") });
    expect(census.bystanders).toMatchObject([
      { found: { pid: 61 }, reason: "a container's process with the same number" },
    ]);
    expect(isEmpty(census)).toBe(true);
  });

  test("is the account's where it lives in no pid namespace below", () => {
    const host = containerHost();
    place(host, { pid: 61, parent: 55, cgroup: container });
    expect(pids(lookAt(host).alive)).toEqual([61]);
  });

  test("is the account's in a user namespace of its own, whoever its parent is (CLONE_PARENT)", () => {
    const host = containerHost();
    host.links.set("/proc/61/ns/user", "user:[4026532301]");
    expect(pids(lookAt(host).alive)).toEqual([61]);
  });

  test.each([
    ["of the account (a setuid sandbox)", [990, 990, 990, 990]],
    ["of another user", foreign],
    ["of root in part only", [0, 0, 0, 1000]],
  ] as const)("is the account's where its first ancestor outside is a process %s", (_name, uids) => {
    const host = containerHost();
    place(host, { pid: 55, uids, cgroup: container });
    host.directories.set("/proc", ["60", "61"]);
    expect(pids(lookAt(host).alive)).toContain(61);
  });

  test("is the account's where somebody else executed the program that became root's (a setuid sandbox)", () => {
    const host = containerHost();
    host.files.set("/proc/55/auxv", auxiliaryVector(990));
    expect(pids(lookAt(host).alive)).toEqual([61]);
  });

  test.each([0, 1])("is the account's where its first ancestor outside is process %i", (parent) => {
    const host = containerHost();
    place(host, { pid: 60, parent, namespacePids: "60\t1", uids: asRoot, cgroup: container });
    expect(pids(lookAt(host).alive)).toEqual([61]);
  });

  test.each<[string, (host: HandMadeHost) => void]>([
    ["its user namespace cannot be read", (host) => void host.links.set("/proc/61/ns/user", EPERM)],
    ["the helper's user namespace cannot be read", (host) => void host.links.set("/proc/self/ns/user", EACCES)],
    ["an ancestor is gone", (host) => void host.files.set("/proc/60/status", ENOENT)],
    ["an ancestor cannot be read", (host) => void host.files.set("/proc/55/status", EIO)],
    ["it cannot be read who executed the shim", (host) => void host.files.set("/proc/55/auxv", EACCES)],
    ["the shim's program says nothing of who executed it", (host) => void host.files.set("/proc/55/auxv", "")],
    ["its place cannot be read", (host) => void host.files.set("/proc/61/cgroup", EIO)],
    [
      "its ancestors go round in a circle",
      (host) => place(host, { pid: 60, parent: 61, namespacePids: "60\t1", uids: asRoot, cgroup: container }),
    ],
  ])("counts, is not signalled, and is looked at again where %s", (_name, breakIt) => {
    const host = containerHost();
    breakIt(host);
    const census = lookAt(host, { onAlive: () => expect.unreachable("it could be a container's") });
    expect(pids(census.held)).toEqual([61]);
    expect(isEmpty(census)).toBe(false);
  });
});

describe("dead or alive", () => {
  test("a zombie is dead, reported with its parent, and not signalled: its number may be somebody's in a moment", () => {
    const host = new HandMadeHost();
    populate(host, [{ pid: 50, state: "Z (zombie)", threads: 1, parent: 44 }], 50);
    const signalled: number[] = [];
    const census = lookAt(host, { onAlive: ({ pid }) => void signalled.push(pid) });
    expect(census.unreaped).toMatchObject([{ pid: 50, status: { parent: 44 } }]);
    expect(signalled).toEqual([]);
    expect(isEmpty(census)).toBe(true);
  });

  test("a leader that has exited while another thread lives shows Z and is alive", () => {
    expect(pids(censusOn([{ pid: 50, state: "Z (zombie)", threads: 2 }]).alive)).toEqual([50]);
  });

  test.each([
    "R (running)",
    "S (sleeping)",
    "D (disk sleep)",
    "T (stopped)",
    "t (tracing stop)",
    "I (idle)",
    "P (parked)",
  ])("%s is alive", (state) => expect(pids(censusOn([{ pid: 50, state }]).alive)).toEqual([50]));

  test.each([
    ["X", { state: "X (dead)", threads: 1 }],
    ["no thread", { state: "S (sleeping)", threads: 0 }],
    ["Z without a thread", { state: "Z (zombie)", threads: 0 }],
  ])("%s is between states: look again, and gone is gone then", (_name, process) => {
    const host = new HandMadeHost();
    populate(host, [{ pid: 50 }], 50);
    host.files.set("/proc/50/status", inTurn<string | number>(statusText({ pid: 50, ...process }), ESRCH));
    expect(isEmpty(lookAt(host))).toBe(true);
  });

  test("whoever stays between states counts as alive", () => {
    expect(pids(censusOn([{ pid: 50, state: "X (dead)", threads: 0 }]).alive)).toEqual([50]);
    expect(pids(censusOn([{ pid: 50, state: "Z (zombie)", threads: 0 }]).alive)).toEqual([50]);
  });

  test.each([ENOENT, ESRCH])("errno %i of a status means gone", (errno) => {
    const host = new HandMadeHost();
    populate(host, [{ pid: 50 }], 50);
    host.files.set("/proc/50/status", errno);
    expect(readStatus(host, 50)).toBe("gone");
    expect(isEmpty(lookAt(host))).toBe(true);
  });

  test.each([EACCES, EPERM, EIO, "", "Name:\tagent\n"])(
    "a status that answers %j could be anybody's, and counts",
    (answer) => {
      const host = new HandMadeHost();
      populate(host, [{ pid: 50 }], 50);
      host.files.set("/proc/50/status", answer);
      const census = lookAt(host);
      expect(census.unreadable).toEqual([50]);
      expect(isEmpty(census)).toBe(false);
    },
  );
});

describe("a census that cannot be finished proves nothing", () => {
  test.each<[string, (host: HandMadeHost) => void]>([
    ["/proc cannot be listed", (host) => void host.directories.set("/proc", EIO)],
    [
      "its limit cuts it off",
      (host) => {
        host.onRead = () => {
          host.clockMs += 600;
        };
      },
    ],
  ])("%s", (_name, breakIt) => {
    const host = new HandMadeHost();
    populate(
      host,
      [51, 52, 53].map((pid) => ({ pid, uids: foreign, cgroup: elsewhere })),
      53,
    );
    breakIt(host);
    const census = lookAt(host);
    expect(census.complete).toBe(false);
    expect(isEmpty(census)).toBe(false);
  });

  test("one that was not cut off and found nobody is empty", () => {
    expect(isEmpty(censusOn([{ pid: 51, uids: foreign, cgroup: elsewhere }]))).toBe(true);
  });
});

describe("details for the table", () => {
  test("place, start time and terminal are read for a match, behind a hostile name too", () => {
    const host = new HandMadeHost();
    populate(
      host,
      [{ pid: 50, command: ") R 1 (", startTicks: 777, terminal: 34_816, cgroup: `${slicePath}/a.scope` }],
      50,
    );
    expect(lookAt(host, { detailsMs: 100 }).alive).toMatchObject([
      { pid: 50, startTicks: 777, terminal: 34_816, cgroup: `${slicePath}/a.scope` },
    ]);
  });

  test("cost at most what they may: after that processes still count", () => {
    const host = new HandMadeHost();
    populate(
      host,
      [50, 51, 52].map((pid) => ({ pid })),
      52,
    );
    host.onRead = (path) => {
      if (path.endsWith("/cgroup")) host.clockMs += 60;
    };
    const census = lookAt(host, { detailsMs: 100 });
    expect(pids(census.alive)).toEqual([52, 51, 50]);
    expect(census.alive.map(({ cgroup }) => cgroup !== undefined)).toEqual([true, true, false]);
    expect(
      census.alive.map(({ terminal }) => terminal),
      "terminals decide who is asked",
    ).toEqual([0, 0, 0]);
  });

  test("a process that is gone by then has no terminal, so that it keeps nobody from being asked", () => {
    const host = new HandMadeHost();
    populate(host, [{ pid: 50 }, { pid: 51 }, { pid: 52 }], 52);
    host.files.set("/proc/52/stat", ENOENT);
    host.files.set("/proc/51/stat", ESRCH);
    host.files.set("/proc/50/stat", EIO);
    expect(lookAt(host, { detailsMs: 100 }).alive.map(({ terminal }) => terminal)).toEqual([0, 0, undefined]);
  });

  test("kill and verdict need none of them: a matching process costs one reading", () => {
    const host = new HandMadeHost();
    populate(host, [{ pid: 50 }], 50);
    lookAt(host);
    expect(host.reads.filter((path) => path !== "/proc/loadavg")).toEqual(["/proc", "/proc/50/status"]);
    expect(host.reads.slice(0, 2)).toEqual(["/proc", "/proc/loadavg"]);
  });
});

describe("whether a process found earlier is still the same and alive", () => {
  const before = found({ pid: 50, startTicks: 5_050 });

  function isAlive(process: Described | undefined, answers: Record<string, string | number> = {}): boolean {
    const host = new HandMadeHost();
    if (process !== undefined) place(host, process);
    for (const [path, answer] of Object.entries(answers)) host.files.set(path, answer);
    return isStillAlive(host, scopeOf(), before);
  }

  test("it is", () => expect(isAlive({ pid: 50 })).toBe(true));
  test("gone is not", () => expect(isAlive(undefined)).toBe(false));
  test("a zombie is not", () => expect(isAlive({ pid: 50, state: "Z (zombie)" })).toBe(false));
  test("a recycled number is not, whoever has it now", () => {
    expect(isAlive({ pid: 50, startTicks: 5_051 })).toBe(false);
    expect(isAlive({ pid: 50, startTicks: 5_051, uids: foreign, cgroup: elsewhere })).toBe(false);
  });
  test("a number that another user has now is not, even where no start time can be read", () => {
    expect(isAlive({ pid: 50, uids: foreign, cgroup: elsewhere }, { "/proc/50/stat": EIO })).toBe(false);
  });
  test("unreadable is", () => expect(isAlive({ pid: 50 }, { "/proc/50/status": EACCES })).toBe(true));
});

test("a link of a chain of forks that was born after the list was read is found in the gap", () => {
  const host = new HandMadeHost();
  let link = 50;
  populate(host, [{ pid: link }], link);
  host.onRead = (path) => {
    if (path !== "/proc/loadavg" || link !== 50) return;
    host.files.delete("/proc/50/status");
    link = 52;
    place(host, { pid: link });
    host.files.set("/proc/loadavg", loadavg(link));
  };
  expect(pids(lookAt(host).alive)).toEqual([52]);
});
