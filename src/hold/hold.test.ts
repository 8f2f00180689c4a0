// SPDX-License-Identifier: Apache-2.0
// Holding and releasing on a ground made by hand: who may, what is recorded, and that nothing is reported that is not so.

import { beforeEach, describe, expect, test } from "vitest";
import { HandMadeGround } from "../ground/hand-made-ground.fixture.ts";
import { holdPath } from "../ground/places.ts";
import { EIO, EROFS } from "../stop/kernel.ts";
import { readHold, whyClosed } from "./gate.ts";
import { holdOrRelease } from "./hold.ts";

let ground: HandMadeGround;

beforeEach(() => {
  ground = new HandMadeGround();
  ground.calledBy(ground.person("olga", 1001));
});

function run(...words: string[]): number {
  ground.words = words;
  ground.printed.out = "";
  ground.printed.err = "";
  return holdOrRelease(ground);
}

describe("a hold", () => {
  test("is recorded with who, when and why, closes the gate, and a release opens it", () => {
    expect(run("hold", "incident 7: \u00fc")).toBe(0);
    expect(readHold(ground)).toEqual({
      operator: "olga",
      since: new Date(ground.wallClockMs()).toISOString(),
      reason: "incident 7: \u00fc",
    });
    expect(ground.modes.get(holdPath)).toBe(0o644);
    expect(whyClosed(ground)).toContain("by olga");
    expect(ground.printed.out).toContain("Sessions that run go on; to end them: ai-tools --stop");
    expect(run("release")).toBe(0);
    expect(ground.printed.out).toContain("lifted");
    expect(whyClosed(ground)).toBeUndefined();
  });

  test("needs no reason", () => {
    expect(run("hold")).toBe(0);
    expect(whyClosed(ground)).toContain("no reason given");
  });

  test("that is there already stays as it is, which is told", () => {
    run("hold", "first");
    ground.calledBy(ground.person("otto", 1002));
    expect(run("hold", "second")).toBe(0);
    expect(readHold(ground)).toMatchObject({ operator: "olga", reason: "first" });
    expect(ground.printed.out).toMatch(/already so: .*olga: first/);
  });

  test("that cannot be read is replaced", () => {
    ground.files.set(holdPath, "{");
    expect(run("hold", "again")).toBe(0);
    expect(readHold(ground)).toMatchObject({ reason: "again" });
  });

  test("that another operator makes at the same moment counts", () => {
    ground.writeAnswers.set(holdPath, 17);
    expect(run("hold")).toBe(0);
    expect(ground.printed.out).toContain("already so");
  });

  test.each([EROFS, EIO])("that cannot be written (errno %i) is not reported as set", (errno) => {
    ground.writeAnswers.set(holdPath, errno);
    expect(run("hold")).toBe(1);
    expect(ground.printed).toMatchObject({ out: "", err: expect.stringContaining("NOT held") });
  });

  test("of any operator may be lifted by any other", () => {
    run("hold", "mine");
    ground.calledBy(ground.person("otto", 1002));
    expect(run("release")).toBe(0);
    expect(ground.printed.out).toContain("by olga: mine");
  });
});

describe("a release", () => {
  test("of nothing is no failure", () => {
    expect(run("release")).toBe(0);
    expect(ground.printed.out).toContain("no hold was set");
  });

  test("that cannot be made is not reported as made", () => {
    run("hold");
    ground.remove = () => EROFS;
    expect(run("release")).toBe(1);
    expect(ground.printed.err).toContain("still held");
  });
});

describe("the caller", () => {
  test("is root where nobody came through sudo", () => {
    ground.variables.clear();
    run("hold");
    expect(readHold(ground)).toMatchObject({ operator: "root" });
  });

  test("who cannot be believed is recorded as root, and that is said", () => {
    ground.variables.set("SUDO_USER", "somebody");
    run("hold");
    expect(readHold(ground)).toMatchObject({ operator: "root" });
    expect(ground.printed.err).toContain("SUDO_USER=somebody");
  });

  test("without root's rights changes nothing", () => {
    ground.root = false;
    expect([run("hold"), run("release")]).toEqual([3, 3]);
    expect(ground.files.has(holdPath)).toBe(false);
  });

  test.each([[[]], [["hold", "a", "b"]], [["release", "x"]], [["release", ""]], [["--hold"]], [["Hold"]], [[""]]])(
    "who says %j is told the grammar, and nothing changes",
    (words) => {
      expect(run(...words)).toBe(2);
      expect(ground.printed.err).toContain("ai-tools --hold");
      expect(ground.files.has(holdPath)).toBe(false);
    },
  );

  test("whose reason is too long or not UTF-8 changes nothing", () => {
    expect(run("hold", "x".repeat(401))).toBe(2);
    ground.wordsAreWhole = false;
    expect(run("hold", "x")).toBe(2);
    expect(ground.files.has(holdPath)).toBe(false);
  });
});
