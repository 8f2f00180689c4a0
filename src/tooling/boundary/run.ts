// SPDX-License-Identifier: Apache-2.0
// Runs the tests on real hosts, one kind of host after the other, and keeps what came out as a table of host × case.

import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";

import type { Suite } from "../lab/image.ts";
import { sweepHosts } from "../lab/lab.ts";
import { inProject } from "../machine.ts";
import { say, step } from "../progress.ts";
import { failed, type Outcome } from "../test/report.ts";
import { runProject } from "../test/vitest.ts";
import { withBoundaryLab } from "./boundary-lab.ts";
import { allParts, type Part } from "./parts.ts";
import { resultsPage } from "./results-page.ts";
import { type Figure, type Results, resultsOf, tableLines } from "./table.ts";
import { FULL_VARIABLE, HOSTS_VARIABLE } from "./variables.ts";

export interface BoundaryRequest {
  /** Suites of the hosts, default bookworm. */
  hosts?: Suite[];
  /** Default: all. */
  parts?: readonly Part[];
  /** Only cases whose name matches, see `patternOf`. */
  pattern?: string;
  /** Races twenty times instead of three. */
  full?: boolean;
}

/** Where the kit notes what it measured (tests/boundary/kit/aftermath.ts). */
const figuresFile = inProject("build", "test", "measured.jsonl");

/** Runs them with the package built and the hosts' images made before. A lab that cannot be had is a failure by name. */
export async function testsOnHosts(request: BoundaryRequest): Promise<Outcome[]> {
  const { hosts = ["bookworm"], full = false } = request;
  const outcomes: Outcome[] = [];
  const figures: Figure[] = [];
  try {
    await withBoundaryLab(hosts, async ({ environment, lab }) => {
      for (const host of hosts) {
        rmSync(figuresFile, { force: true });
        const variables = { ...environment, [HOSTS_VARIABLE]: host, [FULL_VARIABLE]: full ? "1" : "0" };
        for (const part of request.parts ?? allParts) {
          outcomes.push(...(await step(`${part.project} on ${host}`, () => runPart(request, part, host, variables))));
          // A part's workers are gone, and what their hosts still do would only be in the way of the next.
          await sweepHosts(lab.engine);
        }
        figures.push(...figuresOn(host));
      }
    });
    if (outcomes.length === 0) outcomes.push(failed("boundary", "vitest", "no case has such a name"));
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    say(message);
    outcomes.push(failed("boundary", "the lab", message));
  }
  keep(resultsOf(outcomes, figures, { hosts, full }));
  return outcomes;
}

function runPart({ pattern }: BoundaryRequest, part: Part, host: Suite, environment: Record<string, string>) {
  const { project, files } = part;
  return runProject(project, {
    environment,
    host,
    ...(files === undefined ? {} : { files }),
    ...(pattern === undefined ? {} : { pattern }),
  });
}

function figuresOn(host: Suite): Figure[] {
  if (!existsSync(figuresFile)) return [];
  const lines = readFileSync(figuresFile, "utf8").split("\n");
  return lines.filter((line) => line !== "").map((line) => ({ host, ...JSON.parse(line) }) as Figure);
}

/** Prints the table and writes it to `build/boundary/`. */
function keep(results: Results): void {
  const folder = inProject("build", "boundary");
  mkdirSync(folder, { recursive: true });
  writeFileSync(`${folder}/results.json`, `${JSON.stringify(results, undefined, 2)}\n`);
  writeFileSync(`${folder}/results.html`, resultsPage(results));
  for (const line of tableLines(results)) say(line);
  say("the same to look at: build/boundary/results.html");
}
