// SPDX-License-Identifier: Apache-2.0
// Runs one project of vitest.config.ts and reads its outcomes from vitest's own report.

import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { inProject, projectRoot } from "../machine.ts";
import { attached } from "../progress.ts";
import { type Outcome, outcomesOf, type VitestReport } from "./report.ts";

export interface ProjectOptions {
  /** Added to the environment of the tests. */
  environment?: Record<string, string>;
  /** Parts of file names: only these files. */
  files?: string[];
}

/** Runs the project with its progress on this terminal. */
export async function runProject(project: "unit" | "boundary", options: ProjectOptions = {}): Promise<Outcome[]> {
  const reportPath = inProject("build", "test", `${project}-${process.pid}.json`);
  mkdirSync(inProject("build", "test"), { recursive: true });
  const argv = [
    "run",
    "--project",
    project,
    "--reporter=default",
    "--reporter=json",
    `--outputFile.json=${reportPath}`,
  ];
  const vitest = inProject("node_modules", "vitest", "vitest.mjs");
  const exitCode = await attached([process.execPath, vitest, ...argv, ...(options.files ?? [])], options.environment);
  const report = existsSync(reportPath) ? (JSON.parse(readFileSync(reportPath, "utf8")) as VitestReport) : undefined;
  rmSync(reportPath, { force: true });
  return outcomesOf(project, report, exitCode, projectRoot);
}
