// SPDX-License-Identifier: Apache-2.0
// Holding and releasing on a ground made by hand: who may, what is recorded, and that nothing is reported that is not so.

import { beforeEach, describe, expect, test } from "vitest";
import { HandMadeGround } from "../ground/hand-made-ground.fixture.ts";
import { holdPath } from "../ground/places.ts";
import { EIO, EROFS } from "../stop/kernel.ts";
import { readHold, whyClosed } from "./gate.ts";
import { holdOrRelease } from "./hold.ts";

const lock = "/run/ai-tools/hold.lock";
const [EFBIG, ENOSPC] = [27, 28];
let ground: HandMadeGround;

beforeEach(() => {
  ground = new HandMadeGround();
  ground.calledBy(ground.person("olga", 1001));
});

function run(...words: string[]): Promise<number> {
  ground.words = words;
  ground.printed.out = "";
  ground.printed.err = "";
  return holdOrRelease(ground);
}

describe("a hold", () => {
  test("is recorded with who, when and why, closes the gate, and a release opens it", async () => {
    expect(await run("hold", "incident 7: \u00fc")).toBe(0);
    expect(readHold(ground)).toEqual({
      operator: "olga",
      since: new Date(ground.wallClockMs()).toISOString(),
      reason: "incident 7: \u00fc",
    });
    expect(ground.modes.get(holdPath)).toBe(0o644);
    expect(whyClosed(ground)).toContain("by olga");
    expect(ground.printed.out).toContain("Sessions that run go on; to end them: ai-tools --stop");
    expect(await run("release")).toBe(0);
    expect(ground.printed.out).toContain("lifted");
    expect(whyClosed(ground)).toBeUndefined();
  });

  test("needs no reason", async () => {
    expect(await run("hold")).toBe(0);
    expect(whyClosed(ground)).toContain("no reason given");
  });

  test("that is there already stays as it is, which is told", async () => {
    await run("hold", "first");
    ground.calledBy(ground.person("otto", 1002));
    expect(await run("hold", "second")).toBe(0);
    expect(readHold(ground)).toMatchObject({ operator: "olga", reason: "first" });
    expect(ground.printed.out).toMatch(/already so: .*olga: first/);
  });

  test("that cannot be read is replaced", async () => {
    ground.files.set(holdPath, "{");
    expect(await run("hold", "again")).toBe(0);
    expect(readHold(ground)).toMatchObject({ reason: "again" });
  });

  test("that another operator makes at the same moment counts, and is waited for", async () => {
    ground.lockedByOthers.add(lock);
    const sleep = ground.sleep.bind(ground);
    ground.sleep = async (ms) => {
      ground.files.set(holdPath, '{"operator":"otto","since":"NOW","reason":"first"}');
      ground.lockedByOthers.clear();
      await sleep(ms);
    };
    expect(await run("hold", "second")).toBe(0);
    expect(ground.printed.out).toMatch(/already so: .*otto: first/);
    expect(readHold(ground)).toMatchObject({ operator: "otto" });
  });

  test.each(["hold", "release"])("is set and lifted also where the lock does not come free (%s)", async (word) => {
    if (word === "release") await run("hold");
    ground.lockedByOthers.add(lock);
    expect(await run(word)).toBe(0);
    expect(typeof readHold(ground)).toBe(word === "hold" ? "object" : "undefined");
  });

  test.each([EROFS, EIO, EFBIG, ENOSPC])(
    "that cannot be written (errno %i) is not there, nor reported",
    async (errno) => {
      // As on a disk without room: the name is there, and nothing in it.
      const leaveTorn = (path: string) => {
        ground.files.set(path, "");
        return errno;
      };
      ground.createFile = leaveTorn;
      ground.replaceFile = (path) => leaveTorn(`${path}.${ground.pid}.new`);
      expect(await run("hold")).toBe(1);
      expect(ground.printed).toMatchObject({ out: "", err: expect.stringContaining("NOT held, sessions may start") });
      expect(whyClosed(ground)).toBeUndefined();
      expect([...ground.files.keys()].filter((path) => path.startsWith("/var/lib/ai-tools/"))).toEqual([]);
    },
  );

  test("that cannot take the place of one that cannot be read leaves that one, which is said", async () => {
    ground.files.set(holdPath, "{");
    ground.writeAnswers.set(holdPath, EROFS);
    expect(await run("hold")).toBe(1);
    expect(ground.printed.err).toContain("still held, by a hold that cannot be read");
    expect(ground.printed.err).not.toContain("NOT held");
  });

  test("of any operator may be lifted by any other", async () => {
    await run("hold", "mine");
    ground.calledBy(ground.person("otto", 1002));
    expect(await run("release")).toBe(0);
    expect(ground.printed.out).toContain("by olga: mine");
  });
});

describe("a release", () => {
  test("of nothing is no failure", async () => {
    expect(await run("release")).toBe(0);
    expect(ground.printed.out).toContain("no hold was set");
  });

  test("that cannot be made is not reported as made", async () => {
    await run("hold");
    ground.remove = () => EROFS;
    expect(await run("release")).toBe(1);
    expect(ground.printed.err).toContain("still held: new sessions are held since");
    ground.files.delete(holdPath);
    expect(await run("release")).toBe(1);
    expect(ground.printed.err).toContain("NOT held, sessions may start");
  });
});

describe("the caller", () => {
  test("is root where nobody came through sudo", async () => {
    ground.variables.clear();
    await run("hold");
    expect(readHold(ground)).toMatchObject({ operator: "root" });
  });

  test("who cannot be believed is recorded as root, and that is said", async () => {
    ground.variables.set("SUDO_USER", "somebody");
    await run("hold");
    expect(readHold(ground)).toMatchObject({ operator: "root" });
    expect(ground.printed.err).toContain("SUDO_USER=somebody");
  });

  test("without root's rights changes nothing", async () => {
    ground.root = false;
    expect([await run("hold"), await run("release")]).toEqual([3, 3]);
    expect(ground.files.has(holdPath)).toBe(false);
  });

  test.each([[[]], [["hold", "a", "b"]], [["release", "x"]], [["release", ""]], [["--hold"]], [["Hold"]], [[""]]])(
    "who says %j is told the grammar, and nothing changes",
    async (words) => {
      expect(await run(...words)).toBe(2);
      expect(ground.printed.err).toContain("ai-tools --hold");
      expect(ground.files.has(holdPath)).toBe(false);
    },
  );

  test("whose reason is too long or not UTF-8 changes nothing", async () => {
    expect(await run("hold", "x".repeat(401))).toBe(2);
    ground.wordsAreWhole = false;
    expect(await run("hold", "x")).toBe(2);
    expect(ground.files.has(holdPath)).toBe(false);
  });
});

test("nothing is said while others wait for the lock", async () => {
  const order: string[] = [];
  const { print, close } = ground;
  ground.print = (stream, text) => {
    order.push("print");
    print.call(ground, stream, text);
  };
  ground.close = (handle) => {
    order.push("close");
    close.call(ground, handle);
  };
  for (const words of [["hold"], ["hold"], ["release"], ["release"]]) {
    await run(...words);
    expect(order).toEqual(["close", "print"]);
    order.length = 0;
  }
});

test("the helper leaves its caller's cgroup before it makes others wait", async () => {
  ground.files.set("/proc/self/cgroup", "0::/user.slice/user-1001.slice/user@1001.service/app.slice/x.service\n");
  ground.files.set("/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  await run("hold");
  const acts = ground.acts.filter((act) => /^(write|lock)/.test(act));
  expect(acts).toEqual([
    "write /sys/fs/cgroup/cgroup.procs",
    "write /sys/fs/cgroup/init.scope/cgroup.procs",
    `lock ${lock}`,
  ]);
});
