// SPDX-License-Identifier: Apache-2.0
// Paths as text: one form for each place, and nothing of a name that reaches a terminal as it is.

import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isAtOrBelow, isPlainPath, parentsOf, pastedPath, plainPath, shownPath } from "./paths.ts";

describe("a plain path", () => {
  test.each([
    [".", "/home/olga/work", "/home/olga/work"],
    ["work", "/home/olga", "/home/olga/work"],
    ["./work//sub/", "/home/olga", "/home/olga/work/sub"],
    ["../other", "/home/olga/work", "/home/olga/other"],
    ["/srv/../../..", "/x", "/"],
    ["//srv///a/./b/", "/x", "/srv/a/b"],
    ["..", "/", "/"],
    ["a b\nc", "/srv", "/srv/a b\nc"],
    ["-R", "/srv", "/srv/-R"],
    ["...", "/srv", "/srv/..."],
  ])("of %j in %j is %j", (word, directory, path) => {
    expect(plainPath(word, directory)).toBe(path);
    expect(isPlainPath(path)).toBe(true);
  });

  const word = fc.string({ unit: fc.constantFrom("/", ".", "a", "\n", "é"), maxLength: 20 });

  test("is its own plain path, absolute, and without a dot name or an empty one", () => {
    fc.assert(
      fc.property(word, (text) => {
        const path = plainPath(text, "/srv/x");
        expect(plainPath(path, "/elsewhere")).toBe(path);
        expect(isPlainPath(path)).toBe(true);
        if (path !== "/") for (const name of path.slice(1).split("/")) expect(["", ".", ".."]).not.toContain(name);
      }),
    );
  });

  test.each(["", "srv", "/srv/", "/a//b", "/a/./b", "/a/../b", "/a\0b", "/half \ud800 of a pair"])(
    "is not %j",
    (text) => {
      expect(isPlainPath(text)).toBe(false);
    },
  );
});

describe("below", () => {
  test.each([
    ["/srv/a", "/srv/a", true],
    ["/srv/a/b", "/srv/a", true],
    ["/srv/ab", "/srv/a", false],
    ["/srv", "/srv/a", false],
    ["/srv", "/", true],
  ])("%j is at or below %j: %j", (path, directory, is) => {
    expect(isAtOrBelow(path, directory)).toBe(is);
  });

  test("every parent is named once, from the root", () => {
    expect(parentsOf("/home/olga/work")).toEqual(["/", "/home", "/home/olga"]);
    expect(parentsOf("/srv")).toEqual(["/"]);
  });
});

describe("a path before a person", () => {
  const name = fc.string({ unit: "binary", maxLength: 30 }).filter((text) => isPlainPath(`/${text}`));

  test("is printable ASCII, whole, and says each byte", () => {
    expect(shownPath("/a\x1b[2J\n\té\u{1f600}\u202e")).toBe(
      "/a\\x1b[2J\\x0a\\x09\\xc3\\xa9\\xf0\\x9f\\x98\\x80\\xe2\\x80\\xae",
    );
    expect(shownPath(`/${"é".repeat(2_000)}`)).not.toMatch(/\.\.\.$/);
    fc.assert(fc.property(name, (text) => /^[\x20-\x7e]+$/.test(shownPath(`/${text}`))));
  });

  test("comes out of a shell as it went in when it is pasted", () => {
    const paths = fc.sample(name, { numRuns: 60, seed: 5 }).map((text) => `/${text}`);
    paths.push("/it's", "/a b", "/a\nb'c\\d", "/$(id)`id`", "/é'\\x41", "/~/*?[x]{a,b}!h");
    const script = paths.map((path) => `printf '%s\\0' ${pastedPath(path)}`).join("\n");
    const said = execFileSync("/bin/bash", ["-c", script], { encoding: "utf8" });
    expect(said.split("\0").slice(0, -1)).toEqual(paths);
    for (const path of paths) expect(pastedPath(path)).toMatch(/^[\x20-\x7e]+$/);
  });
});
