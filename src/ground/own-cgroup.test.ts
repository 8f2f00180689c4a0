// SPDX-License-Identifier: Apache-2.0
// A root helper leaves its caller's cgroup, and believes only the kernel that it did.

import { beforeEach, expect, test } from "vitest";
import { EBUSY, EIO, ENOENT } from "../stop/kernel.ts";
import { HandMadeGround } from "./hand-made-ground.fixture.ts";
import { leaveCallersCgroup } from "./own-cgroup.ts";

const callers = "/user.slice/user-1001.slice/user@1001.service/app.slice/x.service";
let ground: HandMadeGround;

beforeEach(() => {
  ground = new HandMadeGround();
  ground.files.set("/proc/self/cgroup", `0::${callers}\n`);
  ground.files.set("/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  const write = ground.writeFile.bind(ground);
  ground.writeFile = (path, text) => {
    const errno = write(path, text);
    const [, place] = /^\/sys\/fs\/cgroup(.*)\/cgroup\.procs$/.exec(path) ?? [];
    if (errno === 0) ground.files.set("/proc/self/cgroup", `0::${place === "" ? "/" : place}\n`);
    return errno;
  };
});

test("into the root cgroup, with its own number", () => {
  expect(leaveCallersCgroup(ground)).toBe(true);
  expect(ground.writes).toEqual([{ path: "/sys/fs/cgroup/cgroup.procs", text: "400" }]);
});

test("into PID 1's scope where the root cgroup takes no process", () => {
  ground.writeAnswers.set("/sys/fs/cgroup/cgroup.procs", EBUSY);
  expect(leaveCallersCgroup(ground)).toBe(true);
  expect(ground.files.get("/proc/self/cgroup")).toBe("0::/init.scope\n");
});

test.each(["/", "/init.scope"])("not at all where it is in %s already", (place) => {
  ground.files.set("/proc/self/cgroup", `0::${place}\n`);
  expect(leaveCallersCgroup(ground)).toBe(true);
  expect(ground.writes).toEqual([]);
});

test("which is not believed where the kernel does not say so", () => {
  ground.writeFile = () => 0;
  expect(leaveCallersCgroup(ground)).toBe(false);
  ground.files.set("/proc/self/cgroup", EIO);
  expect(leaveCallersCgroup(ground)).toBe(false);
});

test("which cannot be where no hierarchy is found", () => {
  ground.files.set("/proc/self/mountinfo", "30 23 0:26 /part /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  expect(leaveCallersCgroup(ground)).toBe(false);
  ground.files.set("/proc/self/mountinfo", ENOENT);
  expect(leaveCallersCgroup(ground)).toBe(false);
});
