// SPDX-License-Identifier: Apache-2.0
// The stages of a test run in their order, and how a run ends: one report in build/test-report.json, the closing lines,
// the exit code.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { inProject } from "../machine.ts";
import { say, step } from "../progress.ts";
import { runChecks } from "./check.ts";
import { type AllowedSkip, allPassed, closingLines, failed, judgeSkips, type Outcome, tallyOf } from "./report.ts";
import { runProject } from "./vitest.ts";

/** All tests, the fast ones first; a stage that fails does not keep the next from being tried. */
export async function everyTest(): Promise<Outcome[]> {
  return [
    ...(await runChecks()),
    ...(await step("unit tests", () => runProject("unit"))),
    ...(await step("boundary tests", () => boundaryTests([]))),
  ];
}

/** The boundary tests, with the package built and the hosts' image made before. */
export async function boundaryTests(files: string[]): Promise<Outcome[]> {
  try {
    const { withBoundaryLab } = await import("../boundary/boundary-lab.ts");
    return await withBoundaryLab((environment) => runProject("boundary", { environment, files }));
  } catch (error) {
    // The tests could not be started: that is a failure with a name, and the other stages keep their numbers.
    const message = error instanceof Error ? error.message : String(error);
    say(message);
    return [failed("boundary", "the lab", message)];
  }
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
