// SPDX-License-Identifier: Apache-2.0
// Counting in cgroups whose names and number are the account's choice: all of it within a limit, or a count that says that
// it is not whole.

import { beforeEach, describe, expect, test } from "vitest";
import type { HandMadeGround } from "../ground/hand-made-ground.fixture.ts";
import { sliceAt } from "../stop/hand-made-processes.fixture.ts";
import { EACCES, EIO, ENODEV, EOPNOTSUPP } from "../stop/kernel.ts";
import { cgroup, healthyHost, slice, sliceDirectory } from "./healthy-host.fixture.ts";
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
