// SPDX-License-Identifier: Apache-2.0
// Which directory a word means: links, owners and what is above it, as somebody careless and somebody hostile would have it.

import { beforeEach, describe, expect, test } from "vitest";
import type { PathStat } from "../ground/ground.ts";
import { EACCES, ENOENT } from "../stop/kernel.ts";
import { atHome, HandMadeProjects, onDisk } from "./hand-made-projects.fixture.ts";
import { findProject, whyOutOfReach } from "./project.ts";

let ground: HandMadeProjects;

beforeEach(() => {
  ground = new HandMadeProjects();
});

const found = (word: string) => findProject(ground, word, ground.olga);

describe("a project", () => {
  test("is a directory of the operator's, named by its path or from where they are", () => {
    const project = { path: atHome, device: 1, inode: 71, owner: ground.olga };
    expect(found(atHome)).toEqual(project);
    ground.directory = "/home/olga";
    ground.realPaths.set("/home/olga/work", atHome);
    expect(found("work")).toEqual(project);
    ground.directory = atHome;
    ground.realPaths.set(`${atHome}/.`, atHome);
    expect(found(".")).toEqual(project);
  });

  test("can be named with double and trailing slashes and with dots, where no link is in it", () => {
    const written = "//home/olga//x/../work/";
    ground.realPaths.set(written, atHome);
    expect(found(written)).toMatchObject({ path: atHome });
  });

  test("has any name that is UTF-8", () => {
    for (const name of ["a b", "a\nb", "ä€\u{1f600}", "-R", "$(id)", "it's", "\x1b[2J", '%s:"\\']) {
      ground.existing(`/srv/data/${name}`, { uid: ground.olga.uid });
      expect(found(`/srv/data/${name}`)).toMatchObject({ path: `/srv/data/${name}` });
    }
  });

  test("may lie in a directory that everybody writes to, where nobody takes another's name away", () => {
    ground.existing("/tmp", { mode: 0o1777 });
    ground.existing("/tmp/x", { uid: ground.olga.uid });
    expect(found("/tmp/x")).toMatchObject({ path: "/tmp/x" });
  });
});

describe("no project", () => {
  test("is reached through a link, and the way without it is named", () => {
    ground.realPaths.set("/home/olga/link", atHome);
    expect(found("/home/olga/link")).toContain(`name ${atHome}`);
    ground.realPaths.set("/home/olga/link/../work", "/srv/data/work");
    expect(found("/home/olga/link/../work")).toContain("link");
  });

  test.each([
    ["is not there", ENOENT, "there is no"],
    ["cannot be reached", EACCES, "errno 13"],
    ["has names that are no UTF-8", 84, "not UTF-8"],
  ])("%s", (_what, errno, why) => {
    ground.realPaths.set(atHome, errno);
    expect(found(atHome)).toContain(why);
  });

  test("is named from a directory that cannot be told, or by an empty word", () => {
    ground.directory = ENOENT;
    expect(found("work")).toContain("the directory that you are in");
    expect(found("")).toContain("empty");
    expect(found("/half \ud800")).toContain("not UTF-8");
  });

  test.each<[string, Partial<PathStat>, string]>([
    ["a file", { kind: "file" }, "no directory"],
    ["a link put there meanwhile", { kind: "link" }, "no directory"],
    ["somebody else's", { uid: 1002 }, "not yours"],
    ["root's", { uid: 0 }, "not yours"],
    ["the account's", { uid: 990 }, "not yours"],
    ["not to be told from another one", { inode: 2 ** 60 }, "2^53"],
  ])("is %s", (_what, changes, why) => {
    ground.existing(atHome, { uid: ground.olga.uid, ...changes });
    ground.realPaths.set(atHome, atHome);
    expect(found(atHome)).toContain(why);
  });

  test("is in a closed tree or a whole home, also where a home is reached through a link", () => {
    expect(found("/home/olga")).toContain("is the home of olga");
    ground.person("carol", 1003, "/people/carol");
    ground.realPaths.set("/people/carol", "/srv/data/carol");
    ground.existing("/srv/data/carol", { uid: ground.olga.uid });
    ground.existing("/srv/data/carol/.ssh", { uid: ground.olga.uid });
    expect(found("/srv/data/carol")).toContain("home of carol");
    expect(found("/srv/data/carol/.ssh")).toContain("below .ssh");
  });

  test.each<[string, Partial<PathStat>]>([
    ["belongs to somebody else", { uid: 1002 }],
    ["belongs to the account", { uid: 990 }],
    ["is writable for everybody", { mode: 0o777 }],
    ["is writable for the account's group", { mode: 0o775, gid: 990 }],
    ["is a link by now", { kind: "link" }],
  ])("is where a directory above it %s", (_what, changes) => {
    ground.existing("/srv/data", changes);
    expect(found(onDisk)).toContain("/srv/data");
    expect(typeof found(onDisk)).toBe("string");
  });

  test("is where a directory above it cannot be looked at", () => {
    ground.pathStats.set("/srv/data", EACCES);
    expect(found(onDisk)).toContain("errno 13");
  });

  test("answers in printable text alone", () => {
    for (const word of ["/srv/data/\x1b[2J\u202e", "/home/olga/.\x07\n"]) expect(found(word)).toMatch(/^[\x20-\x7e]+$/);
  });
});

describe("for root", () => {
  test("it is whose it is", () => {
    ground.existing(onDisk, { uid: ground.ursula.uid });
    ground.existing("/srv/data", { uid: ground.ursula.uid });
    expect(findProject(ground, onDisk, undefined)).toMatchObject({ owner: ground.ursula });
  });

  test.each([
    [0, "belongs to root"],
    [990, "belongs to ai-tools"],
    [4711, "not in /etc/passwd"],
  ])("but not of uid %d", (uid, why) => {
    ground.existing(onDisk, { uid });
    expect(findProject(ground, onDisk, undefined)).toContain(why);
  });
});

describe("the account finds its way", () => {
  test("where everybody passes through every directory above", () => {
    expect(whyOutOfReach(ground, onDisk)).toBeUndefined();
    ground.existing("/srv", { mode: 0o711 });
    expect(whyOutOfReach(ground, onDisk)).toBeUndefined();
  });

  test("or its group does", () => {
    ground.existing("/srv/data", { mode: 0o750, gid: 990 });
    expect(whyOutOfReach(ground, onDisk)).toBeUndefined();
  });

  test("not elsewhere: the first directory in the way is named, with what opens it", () => {
    ground.existing("/srv/data", { mode: 0o750 });
    expect(whyOutOfReach(ground, onDisk)).toContain("chmod o+x /srv/data");
  });

  test("to a project in a home without anything being opened: it is brought in", () => {
    expect(whyOutOfReach(ground, atHome)).toBeUndefined();
  });
});
