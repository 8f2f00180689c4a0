// SPDX-License-Identifier: Apache-2.0
// Who counts as the operator that asks, on a ground made by hand.

import { beforeEach, describe, expect, test } from "vitest";
import { HandMadeGround } from "./hand-made-ground.fixture.ts";
import { findPerson, isAskedByRoot, operatorOf } from "./operator.ts";

let ground: HandMadeGround;

beforeEach(() => {
  ground = new HandMadeGround();
  ground.person("root", 0, "/root");
  ground.person("ai-tools", 647, "/var/lib/ai-tools");
});

describe("the operator", () => {
  test("is whoever sudo, the login and passwd agree on, with the group and the home from passwd", () => {
    ground.calledBy(ground.person("olga", 1001, "/home/olga", 100));
    expect(operatorOf(ground)).toEqual({ person: { name: "olga", uid: 1001, gid: 100 }, home: "/home/olga" });
    expect(isAskedByRoot(ground)).toBe(false);
  });

  test("has a home that can be used as a path, whatever letters it has", () => {
    ground.calledBy(ground.person("olga", 1001, "/home/ölga"));
    expect(operatorOf(ground)).toMatchObject({ home: "/home/ölga" });
  });

  test("is the one of two names for a number that sudo names", () => {
    ground.person("old-olga", 1001);
    ground.calledBy(ground.person("olga", 1001));
    expect(operatorOf(ground)).toMatchObject({ person: { name: "olga" } });
  });

  test("is nobody where root itself asks", () => {
    expect(operatorOf(ground)).toMatch(/^root itself asks/);
    expect(isAskedByRoot(ground)).toBe(true);
  });

  test.each([
    ["SUDO_USER names somebody else", { SUDO_USER: "root" }],
    ["SUDO_UID is root's", { SUDO_UID: "0" }],
    ["SUDO_UID is missing", { SUDO_UID: undefined }],
    ["SUDO_UID is no number", { SUDO_UID: "1001x" }],
  ])("is nobody, and not root either, where %s", (_what, variables: Record<string, string | undefined>) => {
    ground.calledBy(ground.person("olga", 1001));
    for (const [name, value] of Object.entries(variables)) {
      if (value === undefined) ground.variables.delete(name);
      else ground.variables.set(name, value);
    }
    expect(operatorOf(ground)).toMatch(/^it cannot be told who asks/);
    expect(isAskedByRoot(ground)).toBe(false);
  });

  test("is nobody where somebody else logged in", () => {
    ground.calledBy(ground.person("olga", 1001));
    ground.files.set("/proc/self/loginuid", "1002");
    expect(operatorOf(ground)).toMatch(/login uid 1002/);
  });

  test("is never the account itself", () => {
    ground.calledBy({ name: "ai-tools", uid: 647 });
    expect(operatorOf(ground)).toMatch(/no operator/);
  });

  test("is never somebody who has the account's number", () => {
    ground.calledBy(ground.person("ai-tools-too", 647));
    expect(operatorOf(ground)).toMatch(/no operator/);
  });

  test("is nobody where passwd does not have them", () => {
    ground.calledBy({ name: "lena", uid: 5001 });
    expect(operatorOf(ground)).toBe("lena (uid 5001) is not in /etc/passwd");
  });

  test("is unknown where passwd cannot be read", () => {
    ground.calledBy({ name: "lena", uid: 5001 });
    ground.files.set("/etc/passwd", 5);
    expect(operatorOf(ground)).toBe("/etc/passwd cannot be read (errno 5)");
    expect(findPerson(ground, 5001)).toBe("/etc/passwd cannot be read (errno 5)");
  });
});

describe("passwd", () => {
  test("knows nobody by a number that it does not have, or whose line has no group", () => {
    ground.files.set("/etc/passwd", "olga:x:1001:1001::/home/olga:/bin/sh\nbad:x:1002::::\n:x:1003:1003:::\n");
    expect(findPerson(ground, 1001)).toMatchObject({ person: { name: "olga" } });
    for (const uid of [1002, 1003, 4]) expect(findPerson(ground, uid)).toBeUndefined();
  });
});
