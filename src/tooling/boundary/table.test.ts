// SPDX-License-Identifier: Apache-2.0
// The table says what the outcomes say: no failure is lost in it, and rounds of a race are one case.

import { expect, test } from "vitest";

import type { Outcome } from "../test/report.ts";
import { resultsPage } from "./results-page.ts";
import { inWords, resultsOf, tableLines } from "./table.ts";

const file = "tests/boundary/worst-day/a.test.ts";
const both = { hosts: ["bookworm", "trixie"], full: false };
const outcome = (title: string, host: string, result: Outcome["result"], message?: string): Outcome => ({
  stage: "worst-day",
  name: `${file} > ${title} [${host}]`,
  result,
  durationMs: 1_000,
  host,
  ...(message === undefined ? {} : { message }),
});

test("rounds are one case, each host a column, and every result is counted", () => {
  const outcomes = ["bookworm", "trixie"].flatMap((host) => [
    outcome("a chain, session > round 1", host, "passed"),
    outcome("a chain, session > round 2", host, host === "trixie" ? "failed" : "passed", "lied"),
  ]);
  const results = resultsOf([...outcomes, outcome("stuck, exec", "trixie", "skipped")], [], both);
  expect(results.counts).toEqual({
    cases: 2,
    kinds: 2,
    hosts: 2,
    repetitions: 2,
    passed: 3,
    failed: 1,
    skipped: 1,
    durationMs: 5_000,
    forced: 0,
    forcedLate: 0,
  });
  expect(tableLines(results)).toEqual([
    "bookworm            by force  trixie              by force  case",
    `${" ".repeat(60)}# ${file}`,
    "ok 2/2 2.0 s                  FAILED 1/2 2.0 s              a chain, session",
    "-                             skipped                       stuck, exec",
    "2 cases × 2 kinds of place × 2 kinds of host × up to 2 repetitions: 3 passed, 1 failed, 1 skipped, 0.1 min of tests",
  ]);
});

test("one failed round of twenty is a failed case", () => {
  expect(inWords({ passed: 19, failed: 1, skipped: 0, durationMs: 100, messages: ["lied"] })).toMatch(/^FAILED 19\/20/);
});

test("a failure outside every test has a row as well", () => {
  const results = resultsOf([{ stage: "boundary", name: "the lab", result: "failed", message: "no engine" }], [], both);
  expect(results.counts).toMatchObject({ cases: 1, failed: 1 });
  expect(tableLines(results).join("\n")).toContain("the lab");
  expect(resultsPage(results)).toContain("no engine");
});

test.each([
  ["deaf in own-manager", "account's manager"],
  ["a unit of own manager that shall not be killed", "account's manager"],
  ["hopping, session-moved", "account's manager"],
  ["in the account's own manager", "account's manager"],
  ["1,000 processes of system-unit", "stray"],
  ["chains outside the slice", "stray"],
  ["a storm, session", "unit of PID 1"],
  ["a unit of PID 1 that shall not be killed", "unit of PID 1"],
  ["the log is a device", ""],
])("%s: the kind is what the name says", (title, kind) => {
  const { cases } = resultsOf([outcome(title, "trixie", "passed")], [], both);
  expect(cases[0]?.kind).toBe(kind);
});

test("the longest stop by force stands beside its case, and is marked where it took too long", () => {
  const told = { host: "trixie", file, test: "a chain > round 2", what: "stop", code: 0, force: true };
  const figures = [
    { ...told, toVerdictMs: 300 },
    { ...told, toVerdictMs: 2_400 },
    // Neither a grace nor one that ran to its limits because of a survivor counts, nor another file's case of that name.
    { ...told, toVerdictMs: 9_000, force: false },
    { ...told, toVerdictMs: 9_500, code: 1 },
    { ...told, toVerdictMs: 9_700, file: "tests/boundary/b.test.ts" },
    { ...told, what: "PID 1 answers", longestMs: 9_900 },
    { ...told, host: "bookworm", toVerdictMs: 200 },
  ];
  const outcomes = ["bookworm", "trixie"].map((host) => outcome("a chain > round 1", host, "passed"));
  const results = resultsOf(outcomes, figures, both);
  expect(results.counts).toMatchObject({ forced: 2, forcedLate: 1 });
  expect(tableLines(results)).toContain("ok 1.0 s            0.2 s     ok 1.0 s            2.4 s !   a chain");
  expect(resultsPage(results)).toContain("2.4 s !");
});

test("the page fetches nothing, and what a hostile session named itself stays text", () => {
  const results = resultsOf([outcome("<script>x</script>", "bookworm", "failed", '"><img src=x>')], [], both);
  const page = resultsPage(results);
  expect(page).not.toMatch(/<script>x|<img|https?:|<link|@import|url\(/);
  expect(page).toContain("&lt;script&gt;x");
});
