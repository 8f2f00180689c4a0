// SPDX-License-Identifier: Apache-2.0
// `unclaim PATH`: who may, in which order, and that a record goes only when what it stands for is gone.

import { beforeEach, describe, expect, test } from "vitest";
import { handedBack } from "../ground/hand-made-ground.fixture.ts";
import { claimDirectory, sessionDirectory } from "../ground/places.ts";
import { EIO } from "../stop/kernel.ts";
import { claimOf, claimRecordPath } from "./claims.ts";
import { account, atHome, HandMadeProjects } from "./hand-made-projects.fixture.ts";
import { claimVerbs } from "./verbs.ts";

let ground: HandMadeProjects;

beforeEach(() => {
  ground = new HandMadeProjects();
});

function unclaim(path = atHome): Promise<number> {
  ground.called("unclaim", path);
  return claimVerbs(ground);
}

async function refused(path = atHome): Promise<string> {
  const records = [...ground.files.entries()].filter(([file]) => file.startsWith("/var/lib/ai-tools/"));
  expect(await unclaim(path)).toBe(3);
  expect([...ground.files.entries()].filter(([file]) => file.startsWith("/var/lib/ai-tools/"))).toEqual(records);
  expect(ground.handBacks).toEqual([]);
  expect(ground.executed).toEqual([]);
  return ground.printed.err;
}

describe("the end of a claim", () => {
  test("marks the record, gives back, takes the lists, looks once more, and removes the record last", async () => {
    ground.claimed(atHome);
    const seen: unknown[] = [];
    ground.handBackAnswer = () => {
      seen.push(claimOf(ground, atHome));
      return handedBack({ changed: seen.length === 1 ? 3 : 0 });
    };
    expect(await unclaim()).toBe(0);
    const file = claimRecordPath(atHome);
    expect(ground.acts.filter((act) => /^(run|handBack)|\/var\/lib\/ai-tools\/claims\//.test(act))).toEqual([
      `replace ${file}`,
      `handBack ${atHome}`,
      expect.stringMatching(/setfacl -R -P -b \/project$/),
      `handBack ${atHome}`,
      `remove ${file}`,
    ]);
    // Whoever wants to start a session meanwhile is told.
    for (const word of seen) expect(word).toContain("--unclaim");
    const whom = { from: account, uid: 1001, gid: 1001, withGit: true, device: 1, inode: 71, path: atHome };
    expect(ground.handBacks).toEqual([whom, whom]);
    expect(ground.printed.out).toContain("3 files and directories");
  });

  test("leaves lists of others where there were some before the claim", async () => {
    ground.claimed(atHome, { hadLists: true });
    expect(await unclaim()).toBe(0);
    expect(ground.listPrograms).toEqual(["/usr/bin/setfacl -R -P -x u:990,d:u:990,d:u:1001 /project"]);
  });

  test("takes the lists once more where something was made meanwhile", async () => {
    ground.claimed(atHome);
    ground.handBackAnswer = () => handedBack({ changed: 1 });
    expect(await unclaim()).toBe(0);
    expect(ground.listPrograms).toHaveLength(2);
    expect(ground.printed.out).toContain("2 files");
  });

  test("finishes one that was interrupted, and a claim that was never finished", async () => {
    for (const unfinished of ["claim", "unclaim"] as const) {
      ground.claimed(atHome, { unfinished });
      expect(await unclaim()).toBe(0);
      expect(ground.recorded(atHome)).toBeUndefined();
    }
  });

  test("of what is not claimed is there already; of what is not there it is a mistake", async () => {
    expect(await unclaim()).toBe(0);
    expect(ground.printed.out).toContain("nothing to do");
    expect(await refused("/home/olga/wrok")).toContain("not there");
  });

  test("is root's too, and gives to the claim's operator", async () => {
    ground.claimed(atHome);
    ground.calledByRoot();
    expect(await unclaim()).toBe(0);
    expect(ground.handBacks[0]).toMatchObject({ uid: 1001 });
    expect(ground.executed[0]).toContain("1001:1001");
  });

  test("finds a claim by its own path where that is a link or gone now", async () => {
    ground.claimed(atHome);
    ground.pathStats.delete(atHome);
    expect(await unclaim()).toBe(0);
    expect(ground.printed.out).toContain("is gone");
    expect(ground.recorded(atHome)).toBeUndefined();
    expect(ground.handBacks).toEqual([]);
  });

  test("forgets what sessions left that are over", async () => {
    ground.claimed(atHome);
    const file = ground.session(atHome, "an earlier boot");
    const other = ground.session("/srv/data/site", "an earlier boot");
    expect(await unclaim()).toBe(0);
    expect(ground.files.has(file)).toBe(false);
    expect(ground.files.has(other)).toBe(true);
  });
});

describe("where another directory is in the place of the claimed one", () => {
  test("what the account has in it is taken back, and only that, if it could be the operator's project", async () => {
    ground.claimed(atHome, { inode: 5 });
    expect(await unclaim()).toBe(0);
    expect(ground.handBacks[0]).toMatchObject({ inode: 71 });
    expect(ground.listPrograms.join()).toContain("-x u:990");
  });

  test("it is left alone where it is no project of theirs: a link, somebody else's", async () => {
    for (const changes of [{ kind: "link" as const }, { uid: 1002 }]) {
      ground.claimed(atHome, { inode: 5 });
      ground.existing(atHome, { uid: 1001, inode: 71, ...changes });
      expect(await unclaim()).toBe(0);
      expect(ground.handBacks).toEqual([]);
      expect(ground.executed).toEqual([]);
      expect(ground.recorded(atHome)).toBeUndefined();
    }
  });

  test("the same directory with another owner is for root, and goes to that owner", async () => {
    ground.claimed(atHome);
    ground.existing(atHome, { uid: 1002, gid: 1002, inode: 71 });
    expect(await refused()).toContain("root ends this claim");
    ground.calledByRoot();
    expect(await unclaim()).toBe(0);
    expect(ground.handBacks[0]).toMatchObject({ uid: 1002, gid: 1002 });
    expect(ground.executed[0]).toContain("1002:1002");
  });
});

describe("refused, with nothing changed:", () => {
  test("another operator, and whoever cannot be believed", async () => {
    ground.claimed(atHome);
    ground.calledBy(ground.ursula);
    expect(await refused()).toContain("claimed by olga");
    ground.files.set("/proc/self/loginuid", "1001");
    await refused();
  });

  test("a directory in a project", async () => {
    ground.claimed(atHome);
    ground.existing(`${atHome}/sub`, { uid: 1001 });
    expect(await refused(`${atHome}/sub`)).toContain(`--unclaim ${atHome}`);
  });

  test("while a session of the project runs, or may", async () => {
    ground.claimed(atHome);
    ground.session("/srv/data/site", "this boot");
    ground.session(atHome, "this boot");
    expect(await refused()).toContain("runs in");
    ground.files.set(`${sessionDirectory}/torn.json`, "{");
    expect(await refused()).toContain("cannot be told");
  });

  test("where a record of a claim cannot be read that could be this one", async () => {
    ground.files.set(`${claimDirectory}/00ff.json`, "{");
    expect(await refused()).toContain("cannot be told");
  });

  test("where the directory cannot be looked at", async () => {
    ground.claimed(atHome);
    ground.pathStats.set(atHome, EIO);
    expect(await refused()).toContain("errno 5");
  });
});

describe("not wholly done:", () => {
  test("a session that was started in the last moment has the record put back", async () => {
    const claim = ground.claimed(atHome);
    const writeAsEver = ground.replaceFile.bind(ground);
    let first = true;
    ground.replaceFile = (path, text, mode) => {
      if (first) ground.session(atHome, "this boot");
      first = false;
      return writeAsEver(path, text, mode);
    };
    expect(await unclaim()).toBe(3);
    expect(ground.recorded(atHome)).toEqual(claim);
    expect(ground.handBacks).toEqual([]);
  });

  test("where nothing can be given back or closed, the claim stays unfinished", async () => {
    ground.claimed(atHome);
    ground.handBackAnswer = () => EIO;
    expect(await unclaim()).toBe(1);
    expect(ground.recorded(atHome)?.unfinished).toBe("unclaim");
    ground.handBackAnswer = () => handedBack();
    ground.program = () => ({ code: 72, output: "no namespace" });
    expect(await unclaim()).toBe(1);
    expect(ground.recorded(atHome)?.unfinished).toBe("unclaim");
    expect(ground.printed.err).toContain("no namespace");
  });

  test("single files that could not be given or closed are named, and the claim is ended", async () => {
    ground.claimed(atHome);
    const session = ground.session(atHome, "an earlier boot");
    ground.handBackAnswer = () => handedBack({ failed: 1, failures: ["a: EPERM"] });
    ground.program = () => ({ code: 1, output: "setfacl: /project/b: Operation not permitted\n" });
    expect(await unclaim()).toBe(1);
    expect(ground.printed.err).toContain("1 could not be given back:\n  a: EPERM");
    expect(ground.printed.err).toContain("./b: Operation not permitted");
    expect(ground.recorded(atHome)).toBeUndefined();
    expect(ground.files.has(session)).toBe(true);
  });
});
