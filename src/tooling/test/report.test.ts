// SPDX-License-Identifier: Apache-2.0
// The closing line of a test run must be its real result: every way in which "nothing ran" or "it was skipped" could
// look like success is tried.

import { expect, test } from "vitest";
import { allPassed, closingLines, judgeSkips, type Outcome, outcomesOf, type VitestReport } from "./report.ts";

const one = (status: string, fileStatus = "passed"): VitestReport => ({
  testResults: [
    {
      name: "/co/tests/a.test.ts",
      status: fileStatus,
      message: "",
      assertionResults: [
        { ancestorTitles: ["group"], title: "promise", status, duration: 3, failureMessages: ["boom"] },
      ],
    },
  ],
});

test("a passed test counts once, under its file and whole name", () => {
  expect(outcomesOf("unit", one("passed"), 0, "/co")).toEqual([
    { stage: "unit", name: "tests/a.test.ts > group > promise", result: "passed", durationMs: 3 },
  ]);
});

test("a failed test carries its message to the closing lines", () => {
  const outcomes = outcomesOf("unit", one("failed", "failed"), 1, "/co");
  expect(closingLines(outcomes, [])).toEqual([
    "FAILED unit: tests/a.test.ts > group > promise: boom",
    "skipped: none",
    "0 passed, 1 failed",
  ]);
});

test("a file that does not load is a failure beside the tests of the others, whatever the exit code", () => {
  const unloaded = { name: "/co/b.test.ts", status: "failed", message: "no such module", assertionResults: [] };
  const report = { testResults: [...one("passed").testResults, unloaded] };
  expect(outcomesOf("unit", report, 0, "/co").slice(1)).toEqual([
    { stage: "unit", name: "b.test.ts", result: "failed", message: "no such module" },
  ]);
});

test.each([
  ["no report at all", undefined, 0, /wrote no report/],
  ["a report without a test", { testResults: [] }, 0, /no test ran/],
  ["only skipped tests", one("pending"), 0, /no test ran/],
  ["an exit code that no test explains", one("passed"), 1, /vitest ended with 1/],
] as const)("%s is a failure with its reason", (_what, report, exitCode, reason) => {
  const outcomes = outcomesOf("unit", report as VitestReport | undefined, exitCode, "/co");
  expect(outcomes.filter((outcome) => outcome.result === "failed")).toEqual([
    { stage: "unit", name: "vitest", result: "failed", message: expect.stringMatching(reason) },
  ]);
});

test("a run in which nothing was tried is no success", () => {
  expect(allPassed([])).toBe(false);
});

const passed: Outcome = { stage: "unit", name: "a.test.ts > one", result: "passed" };
const skipped: Outcome = { stage: "unit", name: "a.test.ts > two", result: "skipped" };

test("a skip that is not on the list fails the run", () => {
  const judged = judgeSkips([passed, skipped], []);
  expect(allPassed(judged)).toBe(false);
  expect(closingLines(judged, []).slice(-2)).toEqual([
    "skipped: 1: a.test.ts > two (no reason on the list)",
    "1 passed, 1 failed",
  ]);
});

test("a skip on the list is named with its reason and fails nothing", () => {
  const allowed = [{ name: "a.test.ts > two", reason: "needs a v2 machine" }];
  const judged = judgeSkips([passed, skipped], allowed);
  expect(allPassed(judged)).toBe(true);
  expect(closingLines(judged, allowed)).toEqual([
    "skipped: 1: a.test.ts > two (needs a v2 machine)",
    "1 passed, 0 failed",
  ]);
});

test("an entry of the list whose test is gone fails the run, unless its file was not run at all", () => {
  expect(allPassed(judgeSkips([passed], [{ name: "a.test.ts > gone", reason: "old" }]))).toBe(false);
  expect(allPassed(judgeSkips([passed], [{ name: "other.test.ts > gone", reason: "old" }]))).toBe(true);
});
