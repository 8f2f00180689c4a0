// SPDX-License-Identifier: Apache-2.0
// The stages of a test run in their order, and how a run ends: one report in build/test-report.json, the closing lines,
// the exit code.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { partsOfEachChange } from "../boundary/parts.ts";
import { testsOnHosts } from "../boundary/run.ts";
import { suites } from "../lab/image.ts";
import { inProject } from "../machine.ts";
import { say, step } from "../progress.ts";
import { runChecks } from "./check.ts";
import { type AllowedSkip, allPassed, closingLines, judgeSkips, type Outcome, tallyOf } from "./report.ts";
import { runProject } from "./vitest.ts";

/**
 * All tests, the fast ones first; a stage that fails does not keep the next from being tried.
 * @param full every boundary and worst-day test on every kind of host, with all repetitions; otherwise the part that is
 *   short enough for each change
 */
export async function everyTest(full = false): Promise<Outcome[]> {
  const onHosts = () => testsOnHosts(full ? { hosts: [...suites], full } : { parts: partsOfEachChange() });
  return [
    ...(await runChecks()),
    ...(await step("unit tests", () => runProject("unit"))),
    ...(await step("boundary tests", onHosts)),
  ];
}

/** Ends a run: writes the report, prints the closing lines and sets the exit code from the same outcomes. */
export function conclude(outcomes: Outcome[]): void {
  const allowed = allowedSkips();
  const judged = judgeSkips(outcomes, allowed);
  mkdirSync(inProject("build"), { recursive: true });
  writeFileSync(
    inProject("build", "test-report.json"),
    `${JSON.stringify({ ...tallyOf(judged), outcomes: judged }, undefined, 2)}\n`,
  );
  // The very last thing that is printed, after whatever is still ended on the way out.
  process.once("exit", () => {
    for (const line of closingLines(judged, allowed)) say(line);
  });
  process.exitCode = allPassed(judged) ? 0 : 1;
}

function allowedSkips(): AllowedSkip[] {
  const path = inProject("tests", "allowed-skips.json");
  return existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as AllowedSkip[]) : [];
}
