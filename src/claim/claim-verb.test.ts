// SPDX-License-Identifier: Apache-2.0
// `claim PATH`: who may, what is refused, what is recorded when, and what a claim leaves where it is interrupted.

import { beforeEach, describe, expect, test } from "vitest";
import { claimDirectory } from "../ground/places.ts";
import { EROFS, SIGINT } from "../stop/kernel.ts";
import { claimRecordPath } from "./claims.ts";
import { account, atHome, HandMadeProjects, onDisk } from "./hand-made-projects.fixture.ts";
import { claimVerbs } from "./verbs.ts";

let ground: HandMadeProjects;

beforeEach(() => {
  ground = new HandMadeProjects();
});

function claim(path: string): Promise<number> {
  ground.called("claim", path);
  return claimVerbs(ground);
}

async function refused(path: string): Promise<string> {
  expect(await claim(path)).toBe(3);
  expect(ground.acts.filter((act) => /^(replace|remove \/var|handBack|run .*setfacl)/.test(act))).toEqual([]);
  return ground.printed.err;
}

describe("a claim", () => {
  test("is recorded as unfinished first, then the lists are set, then it is finished", async () => {
    expect(await claim(atHome)).toBe(0);
    const file = claimRecordPath(atHome);
    expect(ground.acts.filter((act) => /^(run|handBack)|\/var\/lib\/ai-tools\/claims\//.test(act))).toEqual([
      expect.stringContaining("getfacl -R -P -s -n -p /project"),
      `replace ${file}`,
      expect.stringMatching(/setfacl -m u:990:rwX,d:u:990:rwX,d:u:1001:rwX \/project$/),
      expect.stringMatching(/setfacl -R -P -m u:990:rwX,d:u:990:rwX,d:u:1001:rwX \/project$/),
      `replace ${file}`,
    ]);
    expect(ground.recorded(atHome)).toMatchObject({ path: atHome, device: 1, inode: 71, operator: ground.olga });
    expect(ground.recorded(atHome)).toMatchObject({ hadLists: false });
    expect(ground.recorded(atHome)?.unfinished).toBeUndefined();
    expect(ground.modes.get(file)).toBe(0o644);
    expect(ground.printed.out).toContain(`claimed: ${atHome}`);
  });

  test("sets lists as the operator, in a tree of the project alone that is the directory that was looked at", async () => {
    await claim(atHome);
    for (const argv of ground.executed) {
      expect(argv.slice(0, 4)).toEqual(["/usr/bin/unshare", "--mount", "/usr/bin/sh", "-c"]);
      expect(argv[4]).toContain('chroot --userspec="$owner" --groups= /run/ai-tools "$@"');
      expect(argv.slice(5, 9)).toEqual(["sh", atHome, "1:71", "1001:1001"]);
    }
  });

  test("remembers whether there were lists before it", async () => {
    ground.listsBefore = "# file: /project\nuser:5:rwx\n";
    await claim(atHome);
    expect(ground.recorded(atHome)?.hadLists).toBe(true);
  });

  test("of what is claimed already opens it again, and remembers what was before the first", async () => {
    const before = ground.claimed(atHome);
    ground.listsBefore = "# file: /project\nuser:990:rwx\n";
    expect(await claim(atHome)).toBe(0);
    expect(ground.recorded(atHome)).toEqual(before);
    expect(ground.printed.out).toContain("already claimed");
    expect(ground.listPrograms.join()).not.toContain("getfacl");
  });

  test("finishes one that was interrupted", async () => {
    ground.claimed(atHome, { unfinished: "claim" });
    expect(await claim(atHome)).toBe(0);
    expect(ground.recorded(atHome)?.unfinished).toBeUndefined();
  });

  test("takes the place of one of the same operator's whose directory is another now", async () => {
    ground.claimed(atHome, { inode: 5, hadLists: true });
    expect(await claim(atHome)).toBe(0);
    expect(ground.recorded(atHome)).toMatchObject({ inode: 71, hadLists: false });
    expect(ground.printed.out).not.toContain("already");
  });

  test("beside other claims is no matter", async () => {
    ground.claimed(atHome);
    ground.claimed("/srv/data/site2", { operator: ground.ursula });
    expect(await claim(onDisk)).toBe(0);
  });

  test("of a path with every kind of byte is recorded as it is, and printed as none", async () => {
    const path = "/srv/data/ä b\n\x1b[2J";
    ground.existing(path, { uid: ground.olga.uid });
    expect(await claim(path)).toBe(0);
    expect(ground.recorded(path)?.path).toBe(path);
    expect(ground.printed.out).toMatch(/^[\x20-\x7e]+\n$/);
  });
});

describe("refused, with nothing changed:", () => {
  test("root, and whoever cannot be believed or is not known", async () => {
    ground.calledByRoot();
    expect(await refused(atHome)).toContain("not by root");
    ground.calledBy(ground.ursula);
    expect(await refused(atHome)).toContain("not yours");
    ground.files.set("/proc/self/loginuid", "1001");
    expect(await refused(atHome)).toContain("cannot be told who asks");
    ground.calledBy({ name: "mallory", uid: 4711 });
    await refused(atHome);
    ground.calledBy({ name: "ai-tools", uid: account });
    await refused(atHome);
  });

  test("a helper that is not root", async () => {
    ground.root = false;
    expect(await refused(atHome)).toContain("only root");
  });

  test("a host without the account", async () => {
    ground.files.set("/etc/passwd", "root:x:0:0::/root:/x\nolga:x:1001:1001::/home/olga:/x\n");
    expect(await refused(atHome)).toContain("no account ai-tools");
  });

  test("the control plane, systems and homes", async () => {
    for (const path of ["/", "/etc", "/usr/lib", "/var/lib/ai-tools", "/home/olga", "/home/olga/.ssh"]) {
      ground.existing(path, { uid: ground.olga.uid });
      await refused(path);
    }
  });

  test("a project that the account could not reach", async () => {
    ground.existing("/srv/data", { mode: 0o750 });
    expect(await refused(onDisk)).toContain("chmod o+x /srv/data");
  });

  test.each(["/home/olga/work/sub", "/home/olga/work", "/home/olga"])(
    "what is around or in the claim %s",
    async (path) => {
      ground.claimed(path, { operator: ground.ursula, inode: 5 });
      expect(await refused(atHome)).toContain("claimed");
    },
  );

  test("a directory that is claimed under another name", async () => {
    ground.claimed("/srv/data/twin", { device: 1, inode: 71 });
    expect(await refused(atHome)).toContain("the same directory");
  });

  test("everything while a record cannot be read", async () => {
    ground.files.set(`${claimDirectory}/00ff.json`, "{");
    expect(await refused(atHome)).toContain("cannot be told");
  });

  test("where links to others' files can be made", async () => {
    ground.files.set("/proc/sys/fs/protected_hardlinks", "0\n");
    expect(await refused(atHome)).toContain("protected_hardlinks");
    ground.files.delete("/proc/sys/fs/protected_hardlinks");
    await refused(atHome);
  });

  test("where the directory is another one when the lists are looked at", async () => {
    ground.program = () => ({ code: 71 });
    expect(await refused(atHome)).toContain("another directory now");
  });
});

describe("not wholly done:", () => {
  const opening = (line: string) => line.includes("setfacl -R");

  test("files that are not the operator's stay closed, and are counted and named", async () => {
    const output = Array.from(
      { length: 12 },
      (_n, at) => `setfacl: /project/f${at}\x1b: Operation not permitted\n`,
    ).join("");
    ground.program = (line) => (opening(line) ? { code: 1, output } : { code: 0 });
    expect(await claim(atHome)).toBe(1);
    expect(ground.recorded(atHome)?.unfinished).toBeUndefined();
    expect(ground.printed.err).toContain("12 could not be opened");
    expect(ground.printed.err).toContain("./f0\\x1b: Operation not permitted");
    expect(ground.printed.err).toContain("and 2 more");
    expect(ground.printed.err).toMatch(/^[\x20-\x7e\n]+$/);
  });

  test("what belongs to the account already is none of those: it is counted, and the way back is named", async () => {
    const path = "/srv/data/site/\u00e4: x\ny";
    ground.existing(path, { kind: "file", uid: account });
    const output = "setfacl: /project/\xc3\xa4: x\ny: Operation not permitted\n";
    ground.program = (line) => (opening(line) ? { code: 1, output } : { code: 0 });
    expect(await claim(onDisk)).toBe(0);
    expect(ground.printed.out).toContain("1 of what is in it belongs to ai-tools itself");
    expect(ground.printed.out).toContain(`ai-tools --reclaim ${onDisk}`);
    expect(ground.printed.err).toBe("");
    ground.existing(path, { kind: "file", uid: 0 });
    expect(await claim(onDisk)).toBe(1);
    expect(ground.printed.err).toContain("1 could not be opened");
    expect(ground.printed.err).toContain("./\\xc3\\xa4: x\\x0ay: Operation not permitted\n");
  });

  test("a setfacl that fails without a word is no success", async () => {
    ground.program = (line) => ({ code: opening(line) ? 1 : 0 });
    expect(await claim(atHome)).toBe(1);
  });

  test.each([
    [
      "a filesystem without lists",
      { code: 1, output: "setfacl: /project: Operation not supported\n" },
      "not supported",
    ],
    ["no setfacl", { code: 127, output: "chroot: failed to run\n" }, "install the package acl"],
    ["no namespace", { code: 72, output: "mount: permission denied\n" }, "permission denied"],
    ["no process", { errno: 11 }, "errno 11"],
  ])("%s leaves no record, and no claim is told", async (_what, program, why) => {
    ground.program = (line) => (line.includes("setfacl") ? program : { code: 0 });
    expect(await claim(atHome)).toBe(1);
    expect(ground.recorded(atHome)).toBeUndefined();
    expect(ground.printed.err).toContain(why);
    expect(ground.printed.err).toContain("NOT claimed");
    expect(ground.printed.out).toBe("");
  });

  test("an interruption while the lists are set leaves it unfinished and says what to do", async () => {
    ground.program = (line) => (opening(line) ? "hangs" : { code: 0 });
    ground.signalArrived = { signal: SIGINT, arrivesMs: ground.clockMs + 5_000 };
    expect(await claim(atHome)).toBe(1);
    expect(ground.recorded(atHome)?.unfinished).toBe("claim");
    expect(ground.printed.err).toContain("interrupted");
    expect(ground.printed.err).toContain(`ai-tools --unclaim ${atHome}`);
    expect(ground.children.at(-1)?.abandoned).toBe(true);
  });

  test("a program that never ends is given up", async () => {
    ground.program = (line) => (opening(line) ? "hangs" : { code: 0 });
    expect(await claim(atHome)).toBe(1);
    expect(ground.children.at(-1)?.abandoned).toBe(true);
  });

  test("a record that cannot be written opens nothing", async () => {
    ground.writeAnswers.set(claimRecordPath(atHome), EROFS);
    expect(await claim(atHome)).toBe(1);
    expect(ground.listPrograms.filter((line) => line.includes("setfacl"))).toEqual([]);
    expect(ground.printed.err).toContain("NOT claimed");
  });
});

describe("usage", () => {
  test.each([[[]], [["claim"]], [["claim", "/a", "/b"]], [["steal", "/a"]], [["--claim", "/a"]], [["claim", ""]]])(
    "%j",
    async (words) => {
      ground.words = words;
      expect(await claimVerbs(ground)).toBe(2);
      expect(ground.acts).toEqual([]);
    },
  );

  test("a path that is no UTF-8", async () => {
    ground.wordsAreWhole = false;
    expect(await claim(atHome)).toBe(2);
    expect(ground.acts).toEqual([]);
  });

  test("an error of our own is no success", async () => {
    ground.lock = () => {
      throw new TypeError("\x1b");
    };
    expect(await claim(atHome)).toBe(1);
    expect(ground.printed.err).toContain("an error of its own (TypeError: \\x1b)");
  });
});
