// SPDX-License-Identifier: Apache-2.0
// `reclaim PATH`: to whom what goes, never beyond a project, and which records of sessions are answered by it.

import { beforeEach, describe, expect, test } from "vitest";
import { handedBack } from "../ground/hand-made-ground.fixture.ts";
import { claimDirectory } from "../ground/places.ts";
import { EIO } from "../stop/kernel.ts";
import { account, atHome, HandMadeProjects, onDisk } from "./hand-made-projects.fixture.ts";
import { claimVerbs } from "./verbs.ts";

let ground: HandMadeProjects;

beforeEach(() => {
  ground = new HandMadeProjects();
});

function reclaim(path = atHome): Promise<number> {
  ground.called("reclaim", path);
  return claimVerbs(ground);
}

async function refused(path = atHome): Promise<string> {
  expect(await reclaim(path)).toBe(3);
  expect(ground.handBacks).toEqual([]);
  return ground.printed.err;
}

describe("what the account owns in a project goes back", () => {
  test("to its operator, .git included, and is counted", async () => {
    ground.claimed(atHome);
    ground.handBackAnswer = () => handedBack({ changed: 4, mounts: 2 });
    expect(await reclaim()).toBe(0);
    expect(ground.handBacks).toEqual([
      { path: atHome, device: 1, inode: 71, from: account, uid: 1001, gid: 1001, withGit: true },
    ]);
    expect(ground.printed.out).toContain(
      "4 files and directories in /home/olga/work given back to olga; 2 mounted below",
    );
    expect(ground.recorded(atHome)).toBeDefined();
  });

  test("to the claim's operator also where root asks", async () => {
    ground.claimed(atHome);
    ground.calledByRoot();
    expect(await reclaim()).toBe(0);
    expect(ground.handBacks[0]).toMatchObject({ uid: 1001, gid: 1001 });
  });

  test("of the whole project, when something in it is named", async () => {
    ground.claimed(atHome);
    ground.realPaths.set(`${atHome}/sub`, "/srv/data/site");
    expect(await reclaim(`${atHome}/sub`)).toBe(0);
    expect(ground.handBacks[0]?.path).toBe(atHome);
  });

  test("where the claim is unfinished as well", async () => {
    ground.claimed(atHome, { unfinished: "unclaim" });
    expect(await reclaim()).toBe(0);
  });

  test("without a claim, in what could be one: to its owner", async () => {
    expect(await reclaim(onDisk)).toBe(0);
    expect(ground.handBacks[0]).toMatchObject({ path: onDisk, device: 8, inode: 72, uid: 1001 });
    ground.calledByRoot();
    ground.existing(onDisk, { uid: 1002 });
    ground.existing("/srv/data", { uid: 1002 });
    expect(await reclaim(onDisk)).toBe(0);
    expect(ground.handBacks[1]).toMatchObject({ uid: 1002, gid: 1002 });
  });
});

describe("the records of sessions", () => {
  test("that are over go, those of other projects and those that run stay, which is said", async () => {
    ground.claimed(atHome);
    const over = ground.session(atHome, "an earlier boot");
    const other = ground.session(onDisk, "an earlier boot");
    const running = ground.session(atHome, "this boot");
    expect(await reclaim()).toBe(0);
    expect([over, other, running].map((file) => ground.files.has(file))).toEqual([false, true, true]);
    expect(ground.printed.out).toMatch(/the session ai-tools-shell-\d+\.service runs there/);
  });

  test("stay where something could not be given back", async () => {
    ground.claimed(atHome);
    const over = ground.session(atHome, "an earlier boot");
    ground.handBackAnswer = () => handedBack({ changed: 1, failed: 11, failures: ["a\\x1b: EPERM"] });
    expect(await reclaim()).toBe(1);
    expect(ground.files.has(over)).toBe(true);
    expect(ground.printed.err).toContain("11 could not be given back to olga:\n  a\\x1b: EPERM\n  and 10 more\n");
  });

  test("of a session that came under the same name meanwhile stay", async () => {
    ground.claimed(atHome);
    const over = ground.session(atHome, "an earlier boot");
    ground.handBackAnswer = () => {
      ground.files.set(over, String(ground.files.get(over)).replace("2026-01-01", "2026-02-02"));
      return handedBack();
    };
    expect(await reclaim()).toBe(0);
    expect(ground.files.has(over)).toBe(true);
  });
});

describe("refused:", () => {
  test("another operator's project, claimed or not", async () => {
    ground.calledBy(ground.ursula);
    expect(await refused()).toContain("not yours");
    ground.claimed(atHome);
    expect(await refused()).toContain("claimed by olga");
  });

  test("systems, homes and the control plane, for root as well", async () => {
    ground.calledByRoot();
    for (const path of ["/", "/etc", "/var/lib/ai-tools/home", "/home/olga", "/run/ai-tools"]) {
      ground.existing(path, { uid: 1001 });
      await refused(path);
    }
  });

  test("a claimed directory that is not the same any more", async () => {
    ground.claimed(atHome, { inode: 5 });
    expect(await refused()).toContain(`--unclaim ${atHome}`);
  });

  test("a link in the place of the claimed directory", async () => {
    ground.claimed(atHome);
    ground.existing(atHome, { kind: "link", inode: 71 });
    await refused();
  });

  test("a directory around somebody's project", async () => {
    ground.existing("/srv/data/site/inner", { uid: 1002 });
    ground.claimed("/srv/data/site/inner", { operator: ground.ursula });
    expect(await refused(onDisk)).toContain("/srv/data/site/inner");
  });

  test("what is not known to be unclaimed", async () => {
    ground.files.set(`${claimDirectory}/00ff.json`, "{");
    await refused(onDisk);
  });
});

test("a directory that cannot be given back is no success", async () => {
  ground.claimed(atHome);
  ground.handBackAnswer = () => EIO;
  expect(await reclaim()).toBe(1);
  expect(ground.printed.err).toContain("errno 5");
});
