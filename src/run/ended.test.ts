// SPDX-License-Identifier: Apache-2.0
// A session's end: handed back when it ended by itself, and in no other case; nothing is lost by being interrupted.

import { describe, expect, test } from "vitest";
import { handedBack } from "../ground/hand-made-ground.fixture.ts";
import { ENOENT } from "../stop/kernel.ts";
import { afterSession } from "./ended.ts";
import { events, HandMadeSession, project, uid, unit } from "./hand-made-session.fixture.ts";
import { lockPath } from "./handback-lock.ts";
import { ownMark, readSessions, waitingPath } from "./session-records.ts";
import { readWord } from "./word.ts";

function ending(result: string, kind?: string, status?: string) {
  return (ground: HandMadeSession) => {
    ground.variables.set("MONITOR_SERVICE_RESULT", result);
    if (kind !== undefined) ground.variables.set("MONITOR_EXIT_CODE", kind);
    if (status !== undefined) ground.variables.set("MONITOR_EXIT_STATUS", status);
  };
}
const fine = ending("success", "exited", "0");

/** Its launcher (pid 400) waits, unless the test takes the mark away. */
async function endOf(...changes: ((ground: HandMadeSession) => void)[]) {
  const ground = new HandMadeSession();
  ground.variables.clear();
  ground.words = [unit.replace(".service", "")];
  ground.files.set(events, ENOENT);
  ground.files.set(waitingPath(unit), ownMark(ground));
  ground.recorded();
  ground.handBackAnswer = () => handedBack({ changed: 3 });
  for (const change of changes) change(ground);
  const code = await afterSession(ground);
  return { ground, code, word: readWord(ground, unit), record: ground.record() };
}

describe("a session that ended by itself", () => {
  test.each([
    ["success", "0"],
    ["exit-code", "1"],
    ["exit-code", "255"],
  ])("with %s %s has its files handed back to the operator, and its record removed", async (result, status) => {
    const { ground, code, word, record } = await endOf(ending(result, "exited", status));
    expect(code).toBe(0);
    expect(ground.handBacks).toEqual([
      { path: project, device: 8, inode: 72, from: uid, uid: 1001, gid: 1001, withGit: false },
    ]);
    expect(record).toBeUndefined();
    expect(word).toMatchObject({ code: Number(status), clean: true, after: { changed: 3 } });
  });

  test("has its end recorded before anything is handed back", async () => {
    const { ground } = await endOf(fine, (ground) => {
      ground.handBackAnswer = () => {
        expect(ground.record()?.ended).toMatchObject({ clean: true, how: "ended with 0" });
        return handedBack();
      };
    });
    expect(ground.handBacks).toHaveLength(1);
  });

  test("keeps its record where something could not be handed back", async () => {
    const { code, record, word } = await endOf(fine, (ground) => {
      ground.handBackAnswer = () => handedBack({ failed: 1, failures: ["x: no"] });
    });
    expect(code).toBe(1);
    expect(record?.ended).toMatchObject({ clean: true });
    expect(word?.after).toMatchObject({ failed: 1 });
  });

  test("keeps it where the project is another directory now", async () => {
    const { code, record, word } = await endOf(fine, (ground) => {
      ground.handBackAnswer = () => 116;
    });
    expect(code).toBe(1);
    expect(record).toBeDefined();
    expect(word?.after).toContain("another directory (errno 116)");
  });

  test("takes earlier ones of the same project with it when .git was handed back as well", async () => {
    const other = (number: number, changes = {}) => ({
      unit: `ai-tools-shell-${number}.service`,
      since: "2026-01-01",
      ...changes,
    });
    const { ground } = await endOf(fine, (ground) => {
      ground.recorded({ withGit: true });
      ground.recorded(other(1));
      ground.recorded(other(2, { project: "/srv/other" }));
      ground.recorded(other(3, { inode: 1 }));
      ground.recorded(other(4, { since: "2027" }));
    });
    expect(ground.handBacks[0]?.withGit).toBe(true);
    const left = readSessions(ground).sessions.map((session) => session.unit);
    expect(left.sort()).toEqual([2, 3, 4].map((number) => `ai-tools-shell-${number}.service`));
  });

  test("takes none with it when .git was left", async () => {
    const { ground } = await endOf(
      fine,
      (ground) => void ground.recorded({ unit: "ai-tools-shell-1.service", since: "2026-01-01" }),
    );
    expect(readSessions(ground).sessions).toHaveLength(1);
  });
});

describe("nothing is handed back", () => {
  test.each<[string, (ground: HandMadeSession) => void, number, string]>([
    ["when it was killed", ending("signal", "killed", "KILL"), 137, "was killed by signal 9"],
    [
      "when SIGTERM ended it, which systemd calls a success",
      ending("success", "killed", "TERM"),
      143,
      "was killed by signal 15",
    ],
    ["when a hang-up ended it", ending("success", "killed", "HUP"), 129, "was killed by signal 1"],
    ["when it dumped core", ending("core-dump", "dumped", "SEGV"), 139, "was killed by signal 11"],
    ["when a signal by number ended it", ending("signal", "killed", "34"), 162, "was killed by signal 34"],
    ["when a real-time signal ended it", ending("signal", "killed", "RTMIN+1"), 163, "was killed by signal 35"],
    ["when memory ran out", ending("oom-kill", "exited", "0"), 0, "ended with 0 (oom-kill)"],
    ["when a time limit ended it", ending("timeout", "exited", "0"), 0, "ended with 0 (timeout)"],
    ["when systemd could not start it", ending("resources"), 125, "ended in an unknown way (resources)"],
    ["when systemd says nothing", () => undefined, 125, "ended in an unknown way (unknown)"],
    [
      "when a stop ran meanwhile, whatever its code",
      (ground) => {
        fine(ground);
        ground.stopsBegun(1);
      },
      0,
      "ended with 0 while a stop ran",
    ],
    [
      "when stops cannot be counted",
      (ground) => {
        fine(ground);
        ground.stats.set("/run/ai-tools/stop/count", 13);
      },
      0,
      "ended with 0 while a stop ran",
    ],
    [
      "when a stop runs",
      (ground) => {
        fine(ground);
        ground.launcher(700);
        ground.files.set("/run/ai-tools/stop/700-1700", "999000");
      },
      0,
      "ended with 0 while a stop ran",
    ],
    [
      "when whether one runs cannot be told",
      (ground) => {
        fine(ground);
        ground.directories.set("/run/ai-tools/stop", () => 13 as never);
      },
      0,
      "ended with 0 while a stop ran",
    ],
    [
      "when something of it is alive",
      (ground) => {
        fine(ground);
        ground.files.set(events, "populated 1\n");
      },
      0,
      "and processes are left",
    ],
  ])("%s", async (_name, change, code, how) => {
    const { ground, word, record } = await endOf(change);
    expect(ground.handBacks).toEqual([]);
    expect(word).toMatchObject({ code, clean: false });
    expect(word?.how).toContain(how);
    expect(record?.ended).toMatchObject({ clean: false });
  });

  test.each([
    [
      "without a record",
      (ground: HandMadeSession) => void ground.files.delete(`/var/lib/ai-tools/sessions/${unit}.json`),
    ],
    [
      "by a record that is none",
      (ground: HandMadeSession) => void ground.files.set(`/var/lib/ai-tools/sessions/${unit}.json`, "{"),
    ],
    ["where the account cannot be told", (ground: HandMadeSession) => void ground.files.set("/etc/passwd", "")],
  ])("%s, and the exit code says that something is left", async (_name, change) => {
    const { ground, code } = await endOf(fine, change);
    expect(code).toBe(1);
    expect(ground.handBacks).toEqual([]);
  });
});

test("the unit's last processes are waited for", async () => {
  const { ground, word } = await endOf(fine, (ground) => {
    ground.files.set(events, () => (ground.clockMs < 1_002_000 ? "populated 1\n" : ENOENT));
  });
  expect(word?.clean).toBe(true);
  expect(ground.handBacks).toHaveLength(1);
});

test("nobody is left word who does not wait", async () => {
  const { ground, code } = await endOf(fine, (ground) => void ground.files.delete(waitingPath(unit)));
  expect(code).toBe(0);
  expect(ground.files.has(waitingPath(unit))).toBe(false);
  const gone = await endOf(fine, (ground) => void ground.files.set(waitingPath(unit), "launcher 9 9\n"));
  expect(gone.word).toBeUndefined();
});

test("the failed unit is reset when everything is told, and not before", async () => {
  const { ground } = await endOf(fine);
  const reset = ground.acts.indexOf(`run /usr/bin/systemctl reset-failed ${unit}`);
  expect(reset).toBeGreaterThan(ground.acts.lastIndexOf(`replace ${waitingPath(unit)}`));
});

test("where the project was mounted is taken away in a step of its own, which does nothing else", async () => {
  const place = `/run/ai-tools/projects/${unit}`;
  const { ground, code } = await endOf(fine, (ground) => {
    ground.words = ["place", unit.replace(".service", "")];
    ground.existing(place);
    ground.mounted.set(place, { path: project, device: 8, inode: 72, uid: 1001, place });
  });
  expect(code).toBe(0);
  expect(ground.acts).toEqual([`unbind ${place}`, `remove ${place}`]);
});

describe("while another session of the project runs", () => {
  const other = "ai-tools-shell-9.service";
  const runs = (ground: HandMadeSession, name = other) => ground.files.set(events.replace(unit, name), "populated 1\n");

  test("a clean end hands nothing back: its record waits, and its launcher is told for whom", async () => {
    const { ground, code, word, record } = await endOf(fine, (ground) => {
      ground.recorded({ unit: other });
      runs(ground);
    });
    expect(code).toBe(0);
    expect(ground.handBacks).toEqual([]);
    expect(record?.ended).toMatchObject({ clean: true });
    expect(word).toMatchObject({ clean: true, waitsFor: other });
  });

  test.each([
    ["of another project", { project: "/srv/other" }],
    ["of another directory at that path", { inode: 1 }],
    ["that has ended already", { ended: { at: "t", how: "ended with 0", clean: true } }],
  ])("%s it hands back", async (_name, changes) => {
    const { ground } = await endOf(fine, (ground) => {
      ground.recorded({ unit: other, ...changes });
      runs(ground);
    });
    expect(ground.handBacks).toHaveLength(1);
  });

  test("the last clean one hands back for those that waited, with .git where one of them was told to, and forgets them", async () => {
    const clean = { at: "t", how: "ended with 0", clean: true };
    const { ground } = await endOf(fine, (ground) => {
      ground.recorded({ unit: other, ended: clean, since: "2026-01-03", withGit: true });
      ground.recorded({ unit: "ai-tools-shell-8.service", ended: clean, since: "2026-01-04" });
      ground.recorded({ unit: "ai-tools-shell-7.service", since: "2026-01-01" });
      ground.recorded({ unit: "ai-tools-shell-6.service", since: "2026-01-05" });
    });
    expect(ground.handBacks).toMatchObject([{ withGit: true }]);
    expect(readSessions(ground).sessions.map((session) => session.unit)).toEqual(["ai-tools-shell-6.service"]);
  });

  test("nothing is handed back for any of them when the last one is killed", async () => {
    const { ground } = await endOf(ending("signal", "killed", "KILL"), (ground) => {
      ground.recorded({ unit: other, ended: { at: "t", how: "ended with 0", clean: true } });
    });
    expect(ground.handBacks).toEqual([]);
    expect(readSessions(ground).sessions).toHaveLength(2);
  });

  test("one that is only being started is waited for: it may never run", async () => {
    const { ground } = await endOf(fine, (ground) => {
      ground.recorded({ unit: other });
      ground.launcher(700);
      ground.files.set(waitingPath(other), () => (ground.clockMs < 1_001_000 ? "launcher 700 1700\n" : ENOENT));
    });
    expect(ground.handBacks).toHaveLength(1);
  });

  test("that begins between the look and the lock, it is left to that one", async () => {
    const { ground, word } = await endOf(fine, (ground) => {
      const lock = ground.lock.bind(ground);
      ground.lock = (path) => {
        ground.recorded({ unit: other });
        runs(ground);
        return lock(path);
      };
    });
    expect(ground.handBacks).toEqual([]);
    expect(word?.waitsFor).toBe(other);
    expect(ground.lock(lockPath(ground.claim))).toBeTypeOf("object");
  });

  test("none begins while it hands back: it has the lock", async () => {
    const { ground } = await endOf(fine, (ground) => {
      ground.handBackAnswer = () => {
        expect(ground.lock(lockPath(ground.claim))).toBe(11);
        return handedBack();
      };
    });
    expect(ground.handBacks).toHaveLength(1);
    expect(ground.lock(lockPath(ground.claim))).toBeTypeOf("object");
  });

  test("an older record of the same unit is none that runs", async () => {
    const { ground } = await endOf(fine, (ground) => {
      const file = `/var/lib/ai-tools/sessions/${unit.replace(".service", ".service.2.json")}`;
      ground.files.set(file, JSON.stringify(ground.sessionRecord({ since: "2025" })));
    });
    expect(ground.handBacks).toHaveLength(1);
  });
});

test("a session that a stop ends while another one's files are handed back keeps its record", async () => {
  const late = "ai-tools-shell-9.service";
  const { ground } = await endOf(fine, (ground) => {
    ground.recorded({ withGit: true });
    ground.recorded({ unit: "ai-tools-shell-1.service", since: "2026-01-01" });
    ground.handBackAnswer = () => {
      // It began and ended since, older by the clock; and another one has got the name of the one that was over.
      ground.recorded({ unit: late, since: "2026-01-01", ended: { at: "t", how: "killed", clean: false } });
      ground.recorded({ unit: "ai-tools-shell-1.service", since: "2026-01-01T01:00:00.000Z" });
      return handedBack();
    };
  });
  const left = readSessions(ground).sessions.map((session) => session.unit);
  expect(left.sort()).toEqual(["ai-tools-shell-1.service", late]);
});

test.each([
  [[]],
  [["place"]],
  [["place", "../x-1"]],
  [["place", "ai-tools-shell-1", "more"]],
  [["ai-tools-shell-1.service"]],
  [["ai-tools-shell-1", "more"]],
  [["../x-1"]],
  [["cron"]],
])("%j is no session", async (words) => {
  const { ground, code } = await endOf(fine, (ground) => {
    ground.words = words;
  });
  expect(code).toBe(2);
  expect(ground.acts).toEqual([]);
});

test("nobody but root is served", async () => {
  const { ground, code } = await endOf(fine, (ground) => {
    ground.root = false;
  });
  expect(code).toBe(2);
  expect(ground.acts).toEqual([]);
});
