// SPDX-License-Identifier: Apache-2.0
// Every way in which a mutant could pass for noticed although no test noticed it.

import { expect, test } from "vitest";

import type { Outcome } from "../test/report.ts";
import type { Mutant } from "./list.ts";
import { judge, trialLines } from "./trial.ts";

const trap = { file: "a.test.ts", test: "it is dead" };
const mutant: Mutant = { name: "m", sentence: "kills nothing", edits: [], traps: [trap] };
const one = (result: Outcome["result"], title = "it is dead", file = "a.test.ts"): Outcome => ({
  stage: "boundary",
  name: `tests/boundary/${file} > group > ${title} [bookworm]`,
  result,
  message: "AssertionError: expected 1 to be 0\n  at line 1",
});
const late: Outcome = { ...one("failed"), message: "Error: it counts: not within 10000 ms" };
const problemsOf = (red: Outcome[], green: Outcome[], drill?: string) =>
  judge({ mutant, red, green, drill, seconds: 1 }).problems;

test("noticed is red with the mutant and green without", () => {
  expect(problemsOf([one("failed")], [one("passed")])).toEqual([]);
});

test.each<[string, Outcome[], Outcome[], string | undefined]>([
  ["the trap stayed green", [one("passed")], [one("passed")], undefined],
  ["the trap went red before anything was tried", [late], [one("passed")], undefined],
  ["the trap was skipped", [one("skipped")], [one("passed")], undefined],
  ["another test went red", [one("failed", "other"), one("passed")], [one("passed")], undefined],
  [
    "one of two that it names stayed green",
    [one("failed"), one("passed", "it is dead too")],
    [one("passed")],
    undefined,
  ],
  [
    "a test of the same name in another file went red",
    [one("failed", "it is dead", "b.test.ts")],
    [one("passed")],
    undefined,
  ],
  ["no test ran", [], [one("passed")], undefined],
  ["the trap is red anyway", [one("failed")], [one("failed")], undefined],
  ["the trap was not tried without the mutant", [one("failed")], [], undefined],
  ["the drill saw nothing", [one("failed")], [one("passed")], ""],
])("not noticed: %s", (_, red, green, drill) => {
  expect(problemsOf(red, green, drill)).toHaveLength(1);
});

test("the table names each mutant and the tests that went red, and ends with the count", () => {
  const good = judge({ mutant, red: [one("failed")], green: [one("passed")], drill: undefined, seconds: 2 });
  const bad = judge({ mutant, red: [one("passed")], green: [one("passed")], drill: undefined, seconds: 2 });
  expect(trialLines([good])).toEqual([
    "noticed     m (kills nothing), 2 s",
    "              red: tests/boundary/a.test.ts > group > it is dead [bookworm]: AssertionError: expected 1 to be 0",
    "mutants: 1 of 1 noticed",
  ]);
  expect(trialLines([good, bad]).at(-1)).toBe("mutants: 1 of 2 noticed: FAILED");
});
