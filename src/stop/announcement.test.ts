// SPDX-License-Identifier: Apache-2.0
// What a stop says to others: an entry of a helper that is dead or somebody else by now holds up nobody.

import { describe, expect, test } from "vitest";
import {
  announceStop,
  beginRestoring,
  endRestoring,
  isAnotherStopRunning,
  isRestoreWanted,
  lastStopPath,
  removeRestoreNote,
  wantRestore,
  wasAnotherStopAtWork,
  withdrawStop,
  writeLastStop,
} from "./announcement.ts";
import { HandMadeHost } from "./hand-made-host.fixture.ts";
import { place, populate, stat, statusText } from "./hand-made-processes.fixture.ts";
import { EACCES, EEXIST, EIO, EROFS } from "./kernel.ts";
import { limits } from "./limits.ts";

const ENOSPC = 28;

const directory = "/run/ai-tools/stop";
const asRoot = { uids: [0, 0, 0, 0], cgroup: "/user.slice/user-1000.slice/session-1.scope" } as const;

/** A host with this stop (pid 400) and another one, 300, that started at tick 7. */
function twoStops(): HandMadeHost {
  const host = new HandMadeHost();
  place(host, { pid: host.pid, startTicks: 9, ...asRoot });
  place(host, { pid: 300, startTicks: 7, ...asRoot });
  host.directories.set(directory, ["400-9", "300-7", "count", "restore-wanted"]);
  return host;
}

const own = `${directory}/400-9`;

describe("announcing", () => {
  test("leaves an entry with pid and start time and one byte in the counter, and takes the entry back", () => {
    const host = new HandMadeHost();
    place(host, { pid: host.pid, startTicks: 9, ...asRoot });
    expect(announceStop(host)).toMatchObject({ path: own, alone: true });
    announceStop(host);
    expect([...host.files.keys()].filter((path) => path.startsWith("/run"))).toEqual([own, `${directory}/count`]);
    expect(host.files.get(`${directory}/count`)).toBe("..");
    withdrawStop(host, own);
    expect(host.files.has(own)).toBe(false);
  });

  test("cannot stop a stop: nothing that refuses throws", () => {
    const host = new HandMadeHost();
    host.makeDirectory = () => EROFS;
    host.createFile = () => EROFS;
    host.appendFile = () => EROFS;
    host.remove = () => EROFS;
    withdrawStop(host, announceStop(host).path);
    expect(wantRestore(host, true)).toBe(false);
    expect(isRestoreWanted(host)).toBe(false);
    expect(beginRestoring(host)).toBe(true);
    expect(isAnotherStopRunning(host)).toBe(false);
  });
});

test("entries of helpers that were killed are cleared away by the next stop, living and unreadable ones are not", () => {
  const host = new HandMadeHost();
  populate(
    host,
    [
      { pid: 300, startTicks: 7, ...asRoot },
      { pid: 301, startTicks: 9, ...asRoot },
    ],
    301,
  );
  host.files.set("/proc/303/status", EACCES);
  const names = ["300-7", "301-8", "302-5", "303-1", "count", "restore-wanted"];
  for (const name of names) host.files.set(`${directory}/${name}`, "");
  host.directories.set(directory, names);
  announceStop(host);
  const left = [...host.files.keys()].filter((path) => path.startsWith(directory)).map((path) => path.split("/").pop());
  expect(left.filter((name) => names.includes(name ?? ""))).toEqual(["300-7", "303-1", "count", "restore-wanted"]);
});

describe("another stop", () => {
  test("runs while the process of its entry lives", () => {
    expect(isAnotherStopRunning(twoStops())).toBe(true);
  });

  test.each<[string, (host: HandMadeHost) => void]>([
    ["dead", (host) => void host.files.delete("/proc/300/status")],
    [
      "dead and not reaped",
      (host) => void host.files.set("/proc/300/status", statusText({ pid: 300, state: "Z (zombie)" })),
    ],
    ["somebody else by now", (host) => place(host, { pid: 300, startTicks: 8, ...asRoot })],
    [
      "standing still (stopped, frozen, in D) since long",
      (host) => void host.files.set(`${directory}/300-7`, String(host.clockMs - limits.stopAtMostMs - 1)),
    ],
    ["this one itself", (host) => void host.directories.set(directory, ["400-9"])],
    [
      "not an entry",
      (host) =>
        void host.directories.set(directory, ["count", "restore-wanted", "300", "-7", "300-", "x-7", "300-7-1"]),
    ],
    ["in a directory that cannot be listed", (host) => void host.directories.set(directory, EACCES)],
  ])("does not run where it is %s", (_name, changes) => {
    const host = twoStops();
    changes(host);
    expect(isAnotherStopRunning(host)).toBe(false);
  });

  test("runs as long as its limits allow, and where nobody can tell since when", () => {
    const host = twoStops();
    for (const begun of [String(host.clockMs - limits.stopAtMostMs), "", "nonsense"]) {
      host.files.set(`${directory}/300-7`, begun);
      expect(isAnotherStopRunning(host)).toBe(true);
    }
  });

  // An exec keeps the start of the process, and a suspended machine ages it.
  test("runs however old its process is", () => {
    const host = twoStops();
    host.files.set("/proc/uptime", "1000000.00 1.00\n");
    announceStop(host);
    expect(Number(host.files.get(own))).toBe(host.clockMs);
    expect(isAnotherStopRunning(host)).toBe(true);
  });

  test("runs where its leader's thread has exited and another lives", () => {
    const host = twoStops();
    host.files.set("/proc/300/status", statusText({ pid: 300, state: "Z (zombie)", threads: 2 }));
    expect(isAnotherStopRunning(host)).toBe(true);
  });

  test("one dead entry does not hide a living one", () => {
    const host = twoStops();
    host.directories.set(directory, ["9-9", "300-7"]);
    expect(isAnotherStopRunning(host)).toBe(true);
  });
});

test("the note that the manager should come back stays until it is answered", () => {
  const host = new HandMadeHost();
  expect(isRestoreWanted(host)).toBe(false);
  expect([wantRestore(host, true), wantRestore(host, true)]).toEqual([true, true]);
  expect([isRestoreWanted(host), isRestoreWanted(host)]).toEqual([true, true]);
  removeRestoreNote(host);
  expect(isRestoreWanted(host)).toBe(false);
});

test("a manager that did not run leaves no note, and takes none away", () => {
  const host = new HandMadeHost();
  expect([wantRestore(host, false), isRestoreWanted(host)]).toEqual([false, false]);
  wantRestore(host, true);
  expect([wantRestore(host, false), isRestoreWanted(host)]).toEqual([false, true]);
});

describe("of several stops one at a time restores", () => {
  const lock = `${directory}/restoring`;

  test("while the one that does it lives, no other does", () => {
    const host = twoStops();
    for (const text of ["300-7", `300-7 ${host.clockMs}`]) {
      host.files.set(lock, text);
      expect(beginRestoring(host)).toBe(false);
      expect(host.files.get(lock)).toBe(text);
    }
    host.files.set(lock, `300-7 ${host.clockMs - limits.stopAtMostMs - 1}`);
    expect(beginRestoring(host)).toBe(true);
  });

  test.each(["300-8", "302-7", "", "nonsense"])("one that was killed at it (%s) holds up nobody", (owner) => {
    const host = twoStops();
    host.files.set(lock, owner);
    expect(beginRestoring(host)).toBe(true);
    expect(host.files.get(lock)).toBe(`400-9 ${host.clockMs}`);
    endRestoring(host);
    expect(host.files.has(lock)).toBe(false);
  });

  test("where nothing can be written, a stop goes on alone", () => {
    const host = twoStops();
    host.createFile = () => EROFS;
    expect(beginRestoring(host)).toBe(true);
  });
});

describe("whether another stop was at work", () => {
  const counter = `${directory}/count`;

  test("is no for a stop that was alone from its beginning to now", () => {
    const host = new HandMadeHost();
    host.stats.set(counter, stat({ size: 3 }));
    const announcement = announceStop(host);
    expect(wasAnotherStopAtWork(host, announcement)).toBe(false);
  });

  test("is yes where another one ran already", () => {
    expect(wasAnotherStopAtWork(twoStops(), announceStop(twoStops()))).toBe(true);
  });

  test("is yes where the counter was raised since", () => {
    const host = new HandMadeHost();
    host.stats.set(counter, stat({ size: 3 }));
    const announcement = announceStop(host);
    host.stats.set(counter, stat({ size: 4 }));
    expect(wasAnotherStopAtWork(host, announcement)).toBe(true);
  });
});

test("a note that another stop has left is a note", () => {
  const host = new HandMadeHost();
  host.writeAnswers.set(`${directory}/restore-wanted`, EEXIST);
  expect(wantRestore(host, true)).toBe(true);
});

test.each([EROFS, ENOSPC, EACCES])("a note that could not be left (errno %i) is none", (errno) => {
  const host = new HandMadeHost();
  host.writeAnswers.set(`${directory}/restore-wanted`, errno);
  expect(wantRestore(host, true)).toBe(false);
});

describe("the record of the last stop", () => {
  const last = {
    run: "r1",
    time: "2026-01-02T03:04:05.000Z",
    caller: "olga (uid 1000)",
    verdict: "stopped",
    exitCode: 0,
  };

  async function written(changes: (host: HandMadeHost) => void = () => undefined) {
    const host = new HandMadeHost();
    host.stats.set(lastStopPath, stat());
    changes(host);
    return { host, errno: await writeLastStop(host, last) };
  }

  test("is one line of JSON", async () => {
    const { host, errno } = await written();
    expect(host.files.get(lastStopPath)).toBe(`${JSON.stringify(last)}\n`);
    expect([errno, host.commandLines]).toEqual([0, []]);
  });

  test("is opened to readers where the umask closed it", async () => {
    const { host } = await written((one) => void one.stats.set(lastStopPath, stat({ mode: 0o600 })));
    expect(host.commandLines).toEqual([`/usr/bin/chmod 0644 ${lastStopPath}`]);
  });

  test("cannot fail a stop", async () => {
    const { host, errno } = await written((one) => {
      one.replaceFile = () => EIO;
      one.createFile = () => EEXIST;
      one.stats.set(lastStopPath, EIO);
    });
    expect([errno, host.commandLines]).toEqual([EIO, []]);
  });

  test("that could not be replaced is told by its errno, and no old one is opened in its place", async () => {
    const { host, errno } = await written((one) => {
      one.writeAnswers.set(lastStopPath, ENOSPC);
      one.stats.set(lastStopPath, stat({ mode: 0o600 }));
    });
    expect([errno, host.commandLines]).toEqual([ENOSPC, []]);
  });

  test("waits for its opening no longer than its limit", async () => {
    const { host } = await written((one) => {
      one.stats.set(lastStopPath, stat({ mode: 0o600 }));
      one.program = () => "hangs";
    });
    expect(host.clockMs - 1_000_000).toBeLessThanOrEqual(limits.openRecordMs + limits.childPollMs);
    expect(host.children[0]?.abandoned).toBe(true);
  });
});
