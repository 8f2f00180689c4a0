// SPDX-License-Identifier: Apache-2.0
// The records of claims: what is read from them, and that what cannot be read is never taken for "not claimed".

import fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import { claimDirectory } from "../ground/places.ts";
import { EACCES } from "../stop/kernel.ts";
import { claimOf, claimRecordPath, isSameDirectory, readClaims, whatBecameOf } from "./claims.ts";
import { atHome, HandMadeProjects, onDisk } from "./hand-made-projects.fixture.ts";

let ground: HandMadeProjects;

beforeEach(() => {
  ground = new HandMadeProjects();
});

describe("the claim of a directory", () => {
  test("is the one at it or above it", () => {
    const claim = ground.claimed(atHome);
    ground.claimed(onDisk);
    expect(claimOf(ground, atHome)).toEqual(claim);
    expect(claimOf(ground, `${atHome}/a/b`)).toEqual(claim);
    expect(claimOf(ground, `${atHome}-other`)).toBeUndefined();
    expect(claimOf(ground, "/home/olga")).toBeUndefined();
  });

  test("is none where nothing was ever claimed", () => {
    expect(readClaims(ground)).toEqual({ claims: [], problems: [] });
    expect(claimOf(ground, atHome)).toBeUndefined();
  });

  test.each(["claim", "unclaim"] as const)(
    "cannot be used while its %s is under way, and what finishes it is named",
    (unfinished) => {
      ground.claimed(atHome, { unfinished });
      expect(claimOf(ground, atHome)).toContain(`ai-tools --${unfinished} ${atHome}`);
      expect(readClaims(ground).claims).toHaveLength(1);
    },
  );

  test("is found by the path in the record, whatever the record's file is called", () => {
    const claim = ground.claimed(atHome);
    const text = ground.files.get(claimRecordPath(atHome));
    ground.files.delete(claimRecordPath(atHome));
    ground.files.set(`${claimDirectory}/00ff.json`, text ?? "");
    expect(claimOf(ground, atHome)).toEqual(claim);
  });

  test("keeps every byte of its path", () => {
    const path = "/srv/data/ä b\n\u{1f600}'\\";
    ground.existing(path);
    ground.claimed(path);
    expect(claimOf(ground, path)).toMatchObject({ path });
  });

  test("is not told where two claims hold it", () => {
    ground.claimed(atHome);
    ground.claimed("/home/olga/work/sub");
    expect(claimOf(ground, "/home/olga/work/sub")).toContain("more than one");
  });
});

describe("a record that cannot be used", () => {
  const good = {
    path: atHome,
    device: 1,
    inode: 71,
    operator: { name: "olga", uid: 1001, gid: 1001 },
    since: "x",
    hadLists: false,
  };

  test.each([
    ["an empty file", ""],
    ["a torn one", JSON.stringify(good).slice(0, 40)],
    ["no object", "[]"],
    ["null", "null"],
    ["a path with a dot name", JSON.stringify({ ...good, path: "/home/olga/../x" })],
    ["a relative path", JSON.stringify({ ...good, path: "work" })],
    ["half a character in the path", JSON.stringify({ ...good, path: "/\ud800" })],
    ["an inode that is no number", JSON.stringify({ ...good, inode: "71" })],
    ["an inode beyond 2^53", JSON.stringify({ ...good, inode: 2 ** 60 })],
    ["nobody", JSON.stringify({ ...good, operator: undefined })],
    ["root as operator", JSON.stringify({ ...good, operator: { name: "root", uid: 0, gid: 0 } })],
    [
      "a uid that no chown gives to anybody",
      JSON.stringify({ ...good, operator: { name: "x", uid: 4294967295, gid: 1 } }),
    ],
    ["a name that does not print", JSON.stringify({ ...good, operator: { name: "\x1b[2J", uid: 1001, gid: 1 } })],
    ["an unknown state", JSON.stringify({ ...good, unfinished: "perhaps" })],
    ["no word on lists", JSON.stringify({ ...good, hadLists: undefined })],
  ])("(%s) is a problem, and no directory is told to be unclaimed", (_what, text) => {
    ground.files.set(`${claimDirectory}/00ff.json`, text);
    expect(readClaims(ground)).toEqual({ claims: [], problems: [expect.stringContaining("00ff.json")] });
    expect(claimOf(ground, "/srv/x")).toContain("cannot be told");
  });

  test("does not hide the claims that can be read", () => {
    const claim = ground.claimed(atHome);
    ground.files.set(`${claimDirectory}/00ff.json`, "{");
    expect(claimOf(ground, atHome)).toEqual(claim);
  });

  test.each([
    ["somebody else's", { uid: 990 }],
    ["writable for a group", { mode: 0o664 }],
    ["a link", { kind: "link" as const }],
  ])("(%s) is no record of root's", (_what, changes) => {
    ground.claimed(atHome);
    ground.existing(claimRecordPath(atHome), { kind: "file", mode: 0o644, ...changes });
    expect(readClaims(ground)).toMatchObject({ claims: [], problems: [expect.stringContaining("not root's alone")] });
  });

  test("of a name of another form is none: an interrupted replacement leaves such a file", () => {
    ground.files.set(`${claimDirectory}/00ff.json.123.new`, "{");
    expect(readClaims(ground)).toEqual({ claims: [], problems: [] });
  });

  test("is every one of them where the directory cannot be read", () => {
    ground.directories.set(claimDirectory, EACCES as never);
    expect(claimOf(ground, atHome)).toContain("cannot be told");
  });
});

describe("what was claimed", () => {
  test.each([
    ["same", {}],
    ["replaced", { inode: 5 }],
    ["replaced", { device: 5 }],
    ["replaced", { kind: "link" as const }],
    ["another owner's", { uid: 1002 }],
    ["another owner's", { uid: 0 }],
  ])("is %s where the directory has %j", (became, changes) => {
    const claim = ground.claimed(atHome);
    ground.existing(atHome, { uid: 1001, inode: 71, ...changes });
    expect(whatBecameOf(ground, claim)).toBe(became);
    expect(isSameDirectory(ground, claim)).toBe(became === "same");
  });

  test("is gone only where it is not there; where nobody can tell it is not the same", () => {
    const claim = ground.claimed(atHome);
    ground.pathStats.delete(atHome);
    expect(whatBecameOf(ground, claim)).toBe("gone");
    ground.pathStats.set(atHome, EACCES);
    expect(whatBecameOf(ground, claim)).toBe(EACCES);
    expect(isSameDirectory(ground, claim)).toBe(false);
  });
});

test("a record's file name says nothing of its path, has one form, and differs from path to path", () => {
  expect(claimRecordPath("/")).not.toBe(claimRecordPath("//"));
  const seen = new Map<string, string>();
  fc.assert(
    fc.property(fc.string({ unit: "grapheme", maxLength: 12 }), (text) => {
      const file = claimRecordPath(`/${text}`);
      const before = seen.get(file) ?? text;
      seen.set(file, text);
      return before === text && /^\/var\/lib\/ai-tools\/claims\/[0-9a-f]{16}\.json$/.test(file);
    }),
  );
});
