// SPDX-License-Identifier: Apache-2.0
// A mutant is never the real helper by mistake.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

import { applyEdit, mutants } from "./mutants.ts";

const edit = { file: "a.ts", original: "kill();", replacement: "spare();" };

test("an edit replaces the one place that it names, literally", () => {
  expect(applyEdit("if (x) kill();", { ...edit, replacement: "$&" })).toBe("if (x) $&");
});

test.each(["nothing", "kill(); kill();"])(
  "an edit fails loudly where its text does not stand exactly once: %j",
  (text) => {
    expect(() => applyEdit(text, edit)).toThrow(/src\/stop\/a\.ts holds \d times, not once/);
  },
);

test.each(mutants)("the mutant $name fits the helper's source as it is", ({ edits }) => {
  for (const edit of edits) {
    const source = readFileSync(join(import.meta.dirname, "../../stop", edit.file), "utf8");
    expect(applyEdit(source, edit)).not.toBe(source);
  }
});
