// SPDX-License-Identifier: Apache-2.0
// A mutant is never the real helper by mistake.

import { expect, test } from "vitest";

import { applyEdit } from "./mutants.ts";

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
