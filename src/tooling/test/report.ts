// SPDX-License-Identifier: Apache-2.0
// What was tried and how it came out, over all stages of a test run: one list, from which the closing lines and the
// exit code are computed. Nothing here runs anything.

export interface Outcome {
  /** Where it belongs: `check`, `unit`, `boundary`, `worst-day`. */
  stage: string;
  /** The test's file and its whole name, or what was checked. */
  name: string;
  result: "passed" | "failed" | "skipped";
  /** Why it failed. */
  message?: string;
  durationMs?: number;
  /** The name of the kind of host that it ran on, where it ran on one. */
  host?: string;
}

/** One entry of `tests/allowed-skips.json`. */
export interface AllowedSkip {
  /** The name as the skip line prints it. */
  name: string;
  reason: string;
}

/** The part of vitest's JSON report that is read here. */
export interface VitestReport {
  testResults: {
    name: string;
    status: string;
    message?: string;
    assertionResults: {
      ancestorTitles: string[];
      title: string;
      status: string;
      duration?: number | null;
      failureMessages?: string[] | null;
    }[];
  }[];
}

/** What is said of a run in which every test was left out. */
export const noTestRan = "no test ran";

/**
 * The outcomes in one report of vitest. A file that did not load, a run without a test and an error outside every test
 * each count as a failure: none of them may look like success.
 * @param exitCode vitest's own
 * @param root the checkout, which is left out of the names
 */
export function outcomesOf(stage: string, report: VitestReport | undefined, exitCode: number, root: string): Outcome[] {
  if (report === undefined) return [failed(stage, "vitest", `vitest ended with ${exitCode} and wrote no report`)];
  const outcomes = report.testResults.flatMap((file) => {
    const path = file.name.startsWith(`${root}/`) ? file.name.slice(root.length + 1) : file.name;
    const tests = file.assertionResults.map((test) => outcomeOf(stage, path, test));
    const unexplained = file.status === "failed" && !tests.some((test) => test.result === "failed");
    return unexplained ? [...tests, failed(stage, path, file.message || "the file failed outside its tests")] : tests;
  });
  if (!outcomes.some((outcome) => outcome.result !== "skipped")) outcomes.push(failed(stage, "vitest", noTestRan));
  if (exitCode !== 0 && !outcomes.some((outcome) => outcome.result === "failed")) {
    outcomes.push(failed(stage, "vitest", `vitest ended with ${exitCode} although no test failed (see its output)`));
  }
  return outcomes;
}

function outcomeOf(
  stage: string,
  path: string,
  test: VitestReport["testResults"][number]["assertionResults"][number],
): Outcome {
  const name = [path, ...test.ancestorTitles, test.title].join(" > ");
  const durationMs = test.duration ?? 0;
  if (test.status === "passed") return { stage, name, result: "passed", durationMs };
  if (test.status === "failed") {
    return { stage, name, result: "failed", durationMs, message: (test.failureMessages ?? []).join("\n") };
  }
  // pending, skipped, todo, disabled: it did not run.
  return { stage, name, result: "skipped" };
}

export function failed(stage: string, name: string, message: string): Outcome {
  return { stage, name, result: "failed", message };
}

/**
 * The outcomes, and a failure for each skip that is not on the committed list, and for each entry of the list that
 * names no test of a stage that ran.
 */
export function judgeSkips(outcomes: Outcome[], allowed: AllowedSkip[]): Outcome[] {
  const names = new Set(allowed.map((skip) => skip.name));
  const unexplained = outcomes
    .filter((outcome) => outcome.result === "skipped" && !names.has(outcome.name))
    .map((outcome) =>
      failed(
        "skips",
        outcome.name,
        "was skipped and is not in tests/allowed-skips.json: run it, or say why it may not",
      ),
    );
  const files = new Set(outcomes.map((outcome) => fileOf(outcome.name)));
  const known = new Set(outcomes.map((outcome) => outcome.name));
  const stale = allowed
    .filter((skip) => files.has(fileOf(skip.name)) && !known.has(skip.name))
    .map((skip) => failed("skips", skip.name, "is in tests/allowed-skips.json and no such test exists: take it out"));
  return [...outcomes, ...unexplained, ...stale];
}

function fileOf(name: string): string {
  return name.split(" > ")[0] ?? name;
}

export interface Tally {
  passed: number;
  failed: number;
  skipped: number;
}

export function tallyOf(outcomes: Outcome[]): Tally {
  const count = (result: Outcome["result"]) => outcomes.filter((outcome) => outcome.result === result).length;
  return { passed: count("passed"), failed: count("failed"), skipped: count("skipped") };
}

/** What is printed at the end: each failure, the line of the skips, and the last line with the two numbers. */
export function closingLines(outcomes: Outcome[], allowed: AllowedSkip[]): string[] {
  const failures = outcomes
    .filter((outcome) => outcome.result === "failed")
    .map((outcome) => `FAILED ${outcome.stage}: ${outcome.name}: ${firstLine(outcome.message)}`);
  const reasons = new Map(allowed.map((skip) => [skip.name, skip.reason]));
  const skips = outcomes
    .filter((outcome) => outcome.result === "skipped")
    .map((outcome) => `${outcome.name} (${reasons.get(outcome.name) ?? "no reason on the list"})`);
  const { passed, failed } = tallyOf(outcomes);
  return [
    ...failures,
    skips.length === 0 ? "skipped: none" : `skipped: ${skips.length}: ${skips.join("; ")}`,
    `${passed} passed, ${failed} failed`,
  ];
}

function firstLine(message: string | undefined): string {
  return (message ?? "").trim().split("\n")[0] ?? "";
}

/** Whether the run as a whole was a success: something ran, and nothing failed. */
export function allPassed(outcomes: Outcome[]): boolean {
  const { passed, failed } = tallyOf(outcomes);
  return passed > 0 && failed === 0;
}
