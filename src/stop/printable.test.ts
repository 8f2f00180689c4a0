// SPDX-License-Identifier: Apache-2.0
// Foreign text on the way to a person, a log or a shell line: nothing but printable ASCII, short, and still the same word.

import { spawnSync } from "node:child_process";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { limits } from "./limits.ts";
import { printable, shellWord } from "./printable.ts";

/** One character per byte, as the door gives text, and everything else that a string can hold. */
const anyText = fc.oneof(
  fc.uint8Array({ maxLength: 300 }).map((bytes) => String.fromCharCode(...bytes)),
  fc.string({ unit: "binary", maxLength: 300 }),
);

describe("printable", () => {
  test("lets nothing but printable ASCII through, and no more than it may, whatever it gets", () => {
    fc.assert(
      fc.property(anyText, fc.integer({ min: 4, max: 200 }), (text, characters) => {
        const shown = printable(text, characters);
        expect(shown).toMatch(/^[\x20-\x7e]*$/);
        expect(shown.length).toBeLessThanOrEqual(characters + "...".length);
      }),
    );
  });

  test("marks what was cut", () => {
    expect(printable("a".repeat(limits.nameCharacters))).toBe("a".repeat(limits.nameCharacters));
    expect(printable("a".repeat(limits.nameCharacters + 1))).toBe(`${"a".repeat(limits.nameCharacters)}...`);
  });

  test("never cuts through the middle of an escaped byte", () => {
    expect(printable("ab\x1b", 5)).toBe("ab...");
    expect(printable("ab\x1b", 6)).toBe("ab\\x1b");
  });

  test("never shows two different byte strings as the same text", () => {
    const bytes = fc.uint8Array({ maxLength: 30 }).map((array) => String.fromCharCode(...array));
    fc.assert(
      fc.property(bytes, bytes, (one, other) => {
        expect(printable(one, 1_000) === printable(other, 1_000)).toBe(one === other);
      }),
    );
  });

  test("shows a terminal's escape sequence, a line break and a look-alike as what they are", () => {
    expect(printable("\x1b[2K\x1b]0;title\x07")).toBe("\\x1b[2K\\x1b]0;title\\x07");
    expect(printable("one\r\ntwo")).toBe("one\\x0d\\x0atwo");
    expect(printable("us\xc3\xa9r")).toBe("us\\xc3\\xa9r");
    expect(printable("\\x1b")).toBe("\\\\x1b");
  });
});

describe("shellWord", () => {
  test("what it gives is one word of a shell, and the same text again", () => {
    const texts = fc.sample(fc.string({ unit: "grapheme-ascii", minLength: 1, maxLength: 40 }), {
      numRuns: 200,
      seed: 3,
    });
    const hard = [
      "it's",
      "'",
      "''",
      "$(id)",
      "`id`",
      "a b",
      "*",
      "~",
      "~root",
      "-n",
      "\\",
      '"',
      "#x",
      "!!",
      "a;b",
      "a&&b",
    ];
    const words = [...texts, ...hard];
    const script = words.map((text) => `printf '%s\\0' ${shellWord(text)}\n`).join("");
    const ran = spawnSync("/bin/sh", ["-c", script], { encoding: "latin1", cwd: "/" });
    expect(ran.stderr).toBe("");
    expect(ran.stdout.split("\0").slice(0, -1)).toEqual(words);
  });

  test("bytes that no keyboard types are the same again in bash", () => {
    const words = ["a\nb", "\x1b[2J", "a\tb c'd\\", "\x7f", "caf\xc3\xa9", "\xff\x011"];
    const script = words.map((text) => `printf '%s\\0' ${shellWord(text)}\n`).join("");
    expect(script).toMatch(/^[\n\x20-\x7e]*$/);
    const ran = spawnSync("/bin/bash", ["-c", script], { encoding: "latin1", cwd: "/" });
    expect(ran.stderr).toBe("");
    expect(ran.stdout.split("\0").slice(0, -1)).toEqual(words);
  });

  test("leaves a plain path as it is", () => {
    expect(shellWord("/srv/projects/web-shop_2.0")).toBe("/srv/projects/web-shop_2.0");
  });

  test("gives nothing for what cannot be pasted safely", () => {
    for (const text of ["", "a\0b", "\u{1f600}"]) {
      expect(shellWord(text)).toBeUndefined();
    }
  });

  test("whatever it gives is printable ASCII on one line", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        expect(shellWord(text) ?? "").toMatch(/^[\x20-\x7e]*$/);
      }),
    );
  });
});
