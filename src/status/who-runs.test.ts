// SPDX-License-Identifier: Apache-2.0
// Counting in cgroups whose names and number are the account's choice: all of it within a limit, or a count that says that
// it is not whole.

import { beforeEach, describe, expect, test } from "vitest";
import type { HandMadeGround } from "../ground/hand-made-ground.fixture.ts";
import { place, sliceAt } from "../stop/hand-made-processes.fixture.ts";
import { EACCES, EIO, ENODEV, EOPNOTSUPP } from "../stop/kernel.ts";
import { cgroup, companion, healthyHost, manager, slice, sliceDirectory } from "./healthy-host.fixture.ts";
import { lookIntoSlice } from "./who-runs.ts";

const unit = "ai-tools-claude-41.service";
let host: HandMadeGround;

beforeEach(() => {
  host = healthyHost();
  slice(host, 1);
});

const look = () => lookIntoSlice(host, sliceAt(), 990, []);
const counted = () => look()?.sessions.map(({ processes, atLeast }) => ({ processes, atLeast }));

describe("the processes of a session", () => {
  test("are those of its cgroup and of all below it", () => {
    cgroup(host, unit, 1, { below: 2 });
    cgroup(host, `${unit}/a`, 2, { below: 1 });
    cgroup(host, `${unit}/a/deep`, 4);
    cgroup(host, `${unit}/b`, 8);
    expect(counted()).toEqual([{ processes: 15, atLeast: false }]);
  });

  test("in a threaded cgroup are listed at the domain above it, and counted there", () => {
    cgroup(host, unit, 3, { below: 1 });
    cgroup(host, `${unit}/threads`, 1);
    host.files.set(`${sliceDirectory}/${unit}/threads/cgroup.procs`, EOPNOTSUPP);
    expect(counted()).toEqual([{ processes: 3, atLeast: false }]);
  });

  test("that went while they were counted are none", () => {
    cgroup(host, unit, 3, { below: 1 });
    cgroup(host, `${unit}/going`, 1);
    host.files.set(`${sliceDirectory}/${unit}/going/cgroup.procs`, ENODEV);
    expect(counted()).toEqual([{ processes: 3, atLeast: false }]);
  });

  test.each([EACCES, EIO])("that cannot be read (errno %i) make the count a least one, or unknown", (errno) => {
    cgroup(host, unit, 3, { below: 1 });
    cgroup(host, `${unit}/a`, 1);
    host.files.set(`${sliceDirectory}/${unit}/a/cgroup.procs`, errno);
    expect(counted()).toEqual([{ processes: 3, atLeast: true }]);
    host.files.set(`${sliceDirectory}/${unit}/cgroup.procs`, errno);
    expect(counted()).toEqual([{ processes: null, atLeast: true }]);
  });

  test("in more cgroups than are looked at are more than were counted", () => {
    cgroup(host, unit, 1, { below: 5_000 });
    for (let number = 0; number < 5_000; number++) cgroup(host, `${unit}/${number}`, 1);
    const [session] = counted() ?? [];
    expect(session?.atLeast).toBe(true);
    expect(session?.processes).toBeLessThan(5_000);
  });
});

describe("a unit", () => {
  test("that is empty is not there, and one with a session's name without a record is there without its project", () => {
    cgroup(host, "ai-tools-gone-1.service", 0);
    cgroup(host, unit, 1);
    expect(look()?.sessions).toMatchObject([{ unit, project: null, operator: null, ageSeconds: null, memory: null }]);
  });

  test("of another name, and processes in the slice itself, are at work as well", () => {
    cgroup(host, "session-3.scope", 1);
    cgroup(host, sliceDirectory, 2, { below: 1 });
    expect(look()).toMatchObject({
      sessions: [],
      plumbing: [
        { unit: "session-3.scope", works: true },
        { unit: "/user.slice/user-990.slice", processes: 2, works: true },
      ],
    });
  });

  test("of a session's name below the account's own manager is the account's word: at work, and no session", () => {
    cgroup(host, "user@990.service", 0, { below: 1 });
    cgroup(host, `user@990.service/${unit}`, 1);
    expect(look()).toMatchObject({ sessions: [], plumbing: [{ unit: "user@990.service", works: true }] });
  });
});

describe("the account's manager", () => {
  const scope = `${sliceDirectory}/user@990.service/init.scope`;
  const works = () => look()?.plumbing.map((each) => each.works);

  beforeEach(() => {
    host = healthyHost();
    slice(host, 1);
    manager(host);
  });

  test("is idle alone, and with the child that it had from the beginning", () => {
    expect(works()).toEqual([false]);
    cgroup(host, "user@990.service/init.scope", 1);
    expect(works()).toEqual([false]);
  });

  test.each<[string, () => void]>([
    ["a third process", () => cgroup(host, "user@990.service/init.scope", 3)],
    [
      "a third process that claims to be another such child",
      () => {
        cgroup(host, "user@990.service/init.scope", 3);
        companion(host, { pid: 702 });
      },
    ],
    [
      "a process in a cgroup below",
      () => {
        cgroup(host, "user@990.service/init.scope", 2, { below: 1 });
        cgroup(host, "user@990.service/init.scope/x", 1);
      },
    ],
    ["in that child's place, one that the manager has started", () => companion(host, { pid: 701, session: 701 })],
    ["in that child's place, one in a session of somebody else", () => companion(host, { pid: 701, session: 43 })],
    ["in that child's place, one with another parent", () => companion(host, { pid: 701, parent: 1 })],
    [
      "in that child's place, one whose name ends its own line",
      () => {
        companion(host, { pid: 701, session: 701, command: "x) S 700 700 700 (" });
      },
    ],
    ["no manager, and one that was left by it", () => place(host, { pid: 700, parent: 1, uids: [991, 991, 991, 991] })],
    ["a manager that somebody else than PID 1 has started", () => place(host, { pid: 700, parent: 99 })],
    ["a child that cannot be looked at", () => host.files.set("/proc/701/status", EACCES)],
    ["a child whose session cannot be told", () => host.files.set("/proc/701/stat", "701 (x")],
    ["a process of another pid namespace", () => host.files.set(`${scope}/cgroup.procs`, "700\n0\n")],
    ["a list that cannot be read", () => host.files.set(`${scope}/cgroup.procs`, EIO)],
  ])("is at work with %s", (_what, change) => {
    change();
    expect(works()).toEqual([true]);
  });
});
