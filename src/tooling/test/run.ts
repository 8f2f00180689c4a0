// SPDX-License-Identifier: Apache-2.0
// The stages of a test run in their order, and how a run ends: one report in build/test-report.json, the closing lines,
// the exit code.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { hostsOfEachChange, leftOutOn, partsOn } from "../boundary/parts.ts";
import { testsOnHosts } from "../boundary/run.ts";
import { hostNames, kindOf } from "../lab/host-names.ts";
import { inProject } from "../machine.ts";
import { say, step } from "../progress.ts";
import { ensurePackages } from "../setup/apt.ts";
import { packagesFor } from "../setup/packages.ts";
import { runChecks } from "./check.ts";
import { type AllowedSkip, allPassed, closingLines, judgeSkips, type Outcome, tallyOf } from "./report.ts";
import { runProject } from "./vitest.ts";

/**
 * All tests, the fast ones first; a stage that fails does not keep the next from being tried.
 * @param full every boundary and worst-day test on every kind of host, with all repetitions; otherwise the part that is
 *   short enough for each change
 */
export async function everyTest(full = false): Promise<Outcome[]> {
  const onEveryHost = hostNames.map((host) => ({ host, parts: partsOn(host) }));
  const onHosts = () =>
    testsOnHosts(full ? { hosts: onEveryHost, full, everything: true } : { hosts: hostsOfEachChange() });
  return [
    ...(await runChecks()),
    ...(await step("unit tests", () => runProject("unit"))),
    ...(await step("page tests", pageTests)),
    ...(await step("boundary tests", onHosts)),
  ];
}

/** The archive may no longer have the release that a host's kernel is from. */
const gone: AllowedSkip[] = hostNames
  .filter((name) => kindOf(name).kernelOf !== undefined)
  .map((name) => ({ name: `the host ${name}`, reason: "its packages are not in this machine's archive, see above" }));

/** The pages that people look at, in a browser. */
export async function pageTests(): Promise<Outcome[]> {
  await ensurePackages(packagesFor.pages);
  return runProject("pages");
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

/** Those of the committed list, what hosts leave out with its reason, and a host that cannot be made any more. */
function allowedSkips(): AllowedSkip[] {
  const path = inProject("tests", "allowed-skips.json");
  const listed = existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as AllowedSkip[]) : [];
  const leftOut = hostNames
    .flatMap(leftOutOn)
    .map(({ what, host, why }) => ({ name: `${what} [${host}]`, reason: why }));
  return [...listed, ...leftOut, ...gone];
}
