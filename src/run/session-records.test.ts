// SPDX-License-Identifier: Apache-2.0
// Records of sessions: none is lost or taken for another, and a session that cannot be seen counts as running.

import { describe, expect, test } from "vitest";
import { sessionDirectory } from "../ground/places.ts";
import { ENOENT } from "../stop/kernel.ts";
import { boot, events, HandMadeSession, project, uid, unit } from "./hand-made-session.fixture.ts";
import {
  isLauncherAtWork,
  isRunning,
  markEnded,
  ownMark,
  readSession,
  readSessions,
  removeSession,
  type StoredSession,
  sessionsOf,
  unitForm,
  unitName,
  waitingPath,
  writeSession,
} from "./session-records.ts";

const ended = { at: "later", how: "ended with 0", clean: true };

describe("records", () => {
  test("are read back as they were written, also with a path of any characters", () => {
    const ground = new HandMadeSession();
    const record = ground.sessionRecord({ project: "/srv/ü\n漢 %", directory: "/srv/ü\n漢 %/x" });
    expect(writeSession(ground, record)).toBe(0);
    expect(readSession(ground, unit)).toEqual({ ...record, file: `${sessionDirectory}/${unit}.json` });
    expect(ground.modes.get(`${sessionDirectory}/${unit}.json`)).toBe(0o644);
  });

  test("of an earlier session with the same number are moved aside, each", () => {
    const ground = new HandMadeSession();
    for (const since of ["1", "2", "3"]) expect(writeSession(ground, ground.sessionRecord({ since }))).toBe(0);
    const { sessions, problems } = readSessions(ground);
    expect(problems).toEqual([]);
    expect(sessions.map((session) => session.since)).toEqual(["1", "2", "3"]);
    expect((readSession(ground, unit) as StoredSession).since).toBe("3");
  });

  test("that cannot be kept are an error, and the earlier one stays", () => {
    const ground = new HandMadeSession();
    writeSession(ground, ground.sessionRecord({ since: "1" }));
    ground.writeAnswers.set(`${sessionDirectory}/${unit}.2.json`, 28);
    expect(writeSession(ground, ground.sessionRecord({ since: "2" }))).toBe(28);
    // A copy that is cut off would be a record that nobody can read.
    expect(ground.acts.filter((act) => act.startsWith("create "))).toEqual([]);
    expect((readSession(ground, unit) as StoredSession).since).toBe("1");
  });

  test("that are no records are told, not left out", () => {
    const ground = new HandMadeSession();
    const texts = ["", "null", "{}", "[]", "3", '{"unit":"x"}', '{"ended":{}}'];
    for (const [index, text] of texts.entries()) ground.files.set(`${sessionDirectory}/${index}.json`, text);
    ground.files.set(`${sessionDirectory}/x.json`, 13);
    ground.files.set(`${sessionDirectory}/half.400.new`, "not ours to read");
    const { problems } = readSessions(ground);
    expect(problems).toHaveLength(texts.length + 1);
    for (const problem of problems) expect(problem).toMatch(/\(as root: rm \/var\/lib\/ai-tools\/sessions\/.\.json; /);
    ground.directories.set(sessionDirectory, () => 5 as never);
    expect(readSessions(ground)).toEqual({ sessions: [], problems: [`${sessionDirectory} cannot be read (errno 5)`] });
  });

  test("are none where there is no directory for them", () => {
    expect(readSessions(new HandMadeSession())).toEqual({ sessions: [], problems: [] });
  });

  test("are marked and removed in their own file", () => {
    const ground = new HandMadeSession();
    writeSession(ground, ground.sessionRecord({ since: "1" }));
    writeSession(ground, ground.sessionRecord({ since: "2" }));
    const [first] = readSessions(ground).sessions as [StoredSession];
    expect(markEnded(ground, first, ended)).toBe(0);
    expect(readSessions(ground).sessions.map((session) => session.ended)).toEqual([ended, undefined]);
    expect(removeSession(ground, first)).toBe(0);
    expect(readSessions(ground).sessions.map((session) => session.since)).toEqual(["2"]);
    expect(sessionsOf(readSessions(ground).sessions, project)).toHaveLength(1);
    expect(sessionsOf(readSessions(ground).sessions, `${project}/sub`)).toEqual([]);
  });
});

describe("a unit's name", () => {
  test("has the form of a session", () => {
    expect(unitName("claude-code", 12)).toBe("ai-tools-claude-code-12.service");
    expect(unitForm.test(unitName("a-1", 12))).toBe(true);
    for (const other of [
      "ai-tools-x.service",
      "ai-tools-../1.service",
      "ai-tools-x-1.scope",
      "x",
      "ai-tools-X-1.service",
    ])
      expect(unitForm.test(other)).toBe(false);
  });
});

describe("a session runs", () => {
  const runs = (ground: HandMadeSession, changes = {}) => isRunning(ground, ground.sessionRecord(changes), uid);

  test.each([
    ["populated 1\n", true],
    ["populated 0\n", false],
    ["nonsense", true],
    [ENOENT, false],
    [13, true],
  ])("as its cgroup says %j: %s", (answer, expected) => {
    const ground = new HandMadeSession();
    ground.files.set(events, answer);
    expect(runs(ground)).toBe(expected);
  });

  test("not after another boot, whatever has its name now", () => {
    const ground = new HandMadeSession();
    ground.files.set(events, "populated 1\n");
    expect(runs(ground, { boot: "earlier" })).toBe(false);
  });

  test("for all that is known where boot or hierarchy cannot be seen", () => {
    const ground = new HandMadeSession();
    ground.files.set("/proc/sys/kernel/random/boot_id", 13);
    ground.files.set(events, "populated 1\n");
    expect(runs(ground)).toBe(true);
    ground.files.delete(events);
    ground.files.set("/proc/self/mountinfo", 13);
    expect(runs(ground, { boot })).toBe(true);
  });

  test("while its launcher is at work on it, before the unit and behind it", () => {
    const ground = new HandMadeSession();
    ground.files.set(events, ENOENT);
    ground.launcher(700);
    ground.files.set(waitingPath(unit), "launcher 700 1700\n");
    expect(runs(ground)).toBe(true);
    ground.files.delete("/proc/700/status");
    expect(runs(ground)).toBe(false);
  });

  test("without leaving a file open at each look", () => {
    const ground = new HandMadeSession();
    ground.files.set("/sys/fs/cgroup/user.slice/user-990.slice/cgroup.events", "populated 0\n");
    runs(ground);
    expect(ground.closed).toHaveLength(1);
  });
});

describe("a launcher is at work", () => {
  const marked = (mark: string) => {
    const ground = new HandMadeSession();
    ground.launcher(700);
    ground.files.set(waitingPath(unit), mark);
    return isLauncherAtWork(ground, unit);
  };

  test("as its mark says, by pid and start", () => {
    expect(ownMark(new HandMadeSession())).toBe("launcher 400 1400\n");
    expect(marked("launcher 700 1700\n")).toBe(true);
    expect(marked('launcher 700 1700\n{"code":0}\n')).toBe(true);
  });

  test.each(["launcher 700 1701\n", "launcher 701 1700\n", "launcher x y\n", "", "other 700 1700\n"])(
    "not by %j: another process, none, or no mark",
    (mark) => {
      expect(marked(mark)).toBe(false);
    },
  );
});
