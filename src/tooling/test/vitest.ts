// SPDX-License-Identifier: Apache-2.0
// Runs one project of vitest.config.ts and reads its outcomes from vitest's own report.

import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { inProject, projectRoot } from "../machine.ts";
import { attached, logged } from "../progress.ts";
import { noTestRan, type Outcome, outcomesOf, type VitestReport } from "./report.ts";

/** The projects of vitest.config.ts. */
export type Project = "unit" | "pages" | "boundary" | "out-of-reach" | "worst-day" | "crowds";

export interface ProjectOptions {
  /** Added to the environment of the tests. */
  environment?: Record<string, string>;
  /** Parts of file names: only these files. */
  files?: string[];
  /** Only tests whose name (groups and title) matches; see `patternOf`. The others are not counted at all. */
  pattern?: string;
  /** The name of the hosts, which the names then carry. */
  host?: string;
  /** Its output goes to `build/logs/LOG.log` instead of this terminal. */
  log?: string;
}

/** Runs the project with its progress on this terminal. */
export async function runProject(project: Project, options: ProjectOptions = {}): Promise<Outcome[]> {
  const { environment = {}, files = [], pattern, host, log } = options;
  const reportPath = inProject("build", "test", `${project}-${log ?? host ?? "here"}-${process.pid}.json`);
  mkdirSync(inProject("build", "test"), { recursive: true });
  const argv = [
    "run",
    "--project",
    project,
    "--reporter=default",
    "--reporter=json",
    `--outputFile.json=${reportPath}`,
    ...(pattern === undefined ? [] : ["--testNamePattern", pattern]),
    ...files,
  ];
  const vitest = inProject("node_modules", "vitest", "vitest.mjs");
  const command: [string, ...string[]] = [process.execPath, vitest, ...argv];
  const exitCode =
    log === undefined
      ? await attached(command, environment)
      : (await logged(log, command, { env: environment, anyCode: true })).code;
  const report = existsSync(reportPath) ? (JSON.parse(readFileSync(reportPath, "utf8")) as VitestReport) : undefined;
  rmSync(reportPath, { force: true });
  const outcomes = outcomesOf(project, report, exitCode, projectRoot);
  const asked = pattern === undefined ? outcomes : outcomes.filter((outcome) => isAsked(outcome, new RegExp(pattern)));
  return host === undefined ? asked : asked.map((outcome) => ({ ...outcome, host, name: `${outcome.name} [${host}]` }));
}

/** A pattern for names that hold each of these words, in any order and case. */
export function patternOf(words: string): string {
  const each = words.split(/\s+/).filter((word) => word !== "");
  return `^(?i:${each.map((word) => `(?=.*${word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")})`).join("")})`;
}

/** Whatever the pattern leaves out is reported as skipped, and was never to be run; that can be all of a project. */
function isAsked({ result, name, message }: Outcome, pattern: RegExp): boolean {
  if (message === noTestRan) return false;
  return result !== "skipped" || pattern.test(name.split(" > ").slice(1).join(" "));
}
