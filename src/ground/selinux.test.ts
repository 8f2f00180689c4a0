// SPDX-License-Identifier: Apache-2.0
// What the kernel's answers about SELinux are taken for: unknown is never off, and never confined.

import { describe, expect, test } from "vitest";
import { EACCES, EINVAL, EIO, ENOENT } from "../stop/kernel.ts";
import { HandMadeGround } from "./hand-made-ground.fixture.ts";
import { enforcing } from "./hand-made-selinux.fixture.ts";
import { findSelinux, typeOf } from "./selinux.ts";

const found = (change: (ground: HandMadeGround) => unknown) => {
  const ground = new HandMadeGround();
  enforcing(ground);
  change(ground);
  return findSelinux(ground);
};

const session = "system_u:system_r:ai_tools_t:s0";
const launcher = "system_u:object_r:ai_tools_exec_t:s0";
const whole = { mode: "enforcing", session, isDomainPermissive: false, launcher };

describe("SELinux is", () => {
  test("off where the kernel answers nothing", () => {
    expect(found((ground) => ground.files.delete("/sys/fs/selinux/enforce"))).toEqual({ mode: "off" });
  });

  test("enforcing with a domain for sessions, where both are there", () => {
    expect(found(() => undefined)).toEqual(whole);
  });

  test("permissive", () => {
    expect(found((ground) => ground.files.set("/sys/fs/selinux/enforce", "0"))).toEqual({
      ...whole,
      mode: "permissive",
    });
  });

  test("without a domain for sessions where the policy does not know the context", () => {
    expect(
      found((ground) => {
        ground.answers = () => EINVAL;
      }),
    ).toEqual({ ...whole, session: undefined });
  });

  test("without levels where the policy has none", () => {
    expect(
      found((ground) => {
        enforcing(ground, { levels: false });
      }),
    ).toMatchObject({ mode: "enforcing", session: "system_u:system_r:ai_tools_t" });
  });

  test("permissive for the domain alone, by the flags of the kernel's own decision", () => {
    expect(found((ground) => enforcing(ground, { flags: 1 }))).toEqual({ ...whole, isDomainPermissive: true });
    expect(found((ground) => enforcing(ground, { flags: 2 }))).toEqual(whole);
  });

  test("there with a launcher that has no label", () => {
    expect(found((ground) => ground.fileContexts.clear())).toMatchObject({ launcher: 61 });
  });

  test.each<[string, (ground: HandMadeGround) => unknown, string]>([
    ["its mode cannot be read", (ground) => ground.files.set("/sys/fs/selinux/enforce", EACCES), "errno 13"],
    ["its mode is none", (ground) => ground.files.set("/sys/fs/selinux/enforce", "2"), '"2"'],
    ["its levels cannot be read", (ground) => ground.files.set("/sys/fs/selinux/mls", EIO), "errno 5"],
    ["a class cannot be read", (ground) => ground.files.delete("/sys/fs/selinux/class/process/index"), "errno 2"],
    ["its policy may not be asked", (ground) => (ground.answers = () => EACCES), "errno 13"],
    [
      "decisions may not be asked for",
      (ground) => (ground.answers = (path) => (path.endsWith("/context") ? "" : ENOENT)),
      "errno 2",
    ],
    [
      "a decision is none",
      (ground) => (ground.answers = (path) => (path.endsWith("/context") ? "" : "ffffffff")),
      "errno 22",
    ],
  ])("unknown where %s", (_what, change, why) => {
    expect(found(change)).toMatchObject({ mode: "unknown", why: expect.stringContaining(why) });
  });
});

test("a type is the third word of a context", () => {
  expect([launcher, "a:b:c", "a:b", ""].map(typeOf)).toEqual(["ai_tools_exec_t", "c", undefined, undefined]);
});
