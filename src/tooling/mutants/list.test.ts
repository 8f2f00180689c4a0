// SPDX-License-Identifier: Apache-2.0
// A mutant is never the real helper by mistake, and names tests that exist.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

import { applyEdit } from "./edit.ts";
import { mutants } from "./list.ts";

const edit = { file: "a.ts", original: "kill();", replacement: "spare();" };
const root = join(import.meta.dirname, "../../..");

test("an edit replaces the one place that it names, literally", () => {
  expect(applyEdit("if (x) kill();", { ...edit, replacement: "$&" })).toBe("if (x) $&");
});

test.each(["nothing", "kill(); kill();"])(
  "an edit fails loudly where its text does not stand exactly once: %j",
  (text) => {
    expect(() => applyEdit(text, edit)).toThrow(/src\/stop\/a\.ts holds \d times, not once/);
  },
);

test("each has a name of its own", () => {
  expect(new Set(mutants.map(({ name }) => name)).size).toBe(mutants.length);
});

test.each(mutants)("the mutant $name fits the helper's source as it is", ({ edits }) => {
  for (const one of edits) {
    const source = readFileSync(join(root, "src/stop", one.file), "utf8");
    expect(applyEdit(source, one)).not.toBe(source);
  }
});

// What a table of a test fills in comes after a colon; a run of the mutants looks for the whole name.
test.each(mutants)("the tests that the mutant $name must turn red exist", ({ traps }) => {
  for (const trap of traps) {
    expect(readFileSync(join(root, "tests/boundary", trap.file), "utf8")).toContain(trap.test.split(": ")[0]);
  }
});
