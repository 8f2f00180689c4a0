// SPDX-License-Identifier: Apache-2.0
// Runs the tests on real hosts, one kind of host after the other, and keeps what came out as a table of host × case.

import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";

import { type HostName, kindOf } from "../lab/host-names.ts";
import { machinesThatFit } from "../lab/machine.ts";
import { inProject } from "../machine.ts";
import { say, step } from "../progress.ts";
import { failed, type Outcome } from "../test/report.ts";
import { patternOf, runProject } from "../test/vitest.ts";
import { withBoundaryLab } from "./boundary-lab.ts";
import { leftOutOn, type Part } from "./parts.ts";
import { resultsPage } from "./results-page.ts";
import { type Figure, type Results, resultsOf, tableLines } from "./table.ts";
import { FULL_VARIABLE, HOSTS_VARIABLE, POLICY_VARIABLE, WORKERS_VARIABLE } from "./variables.ts";

export interface BoundaryRequest {
  /** Which hosts, and on each of them which parts. */
  hosts: readonly { host: HostName; parts: readonly Part[] }[];
  /** Whether these are all parts, so that what a host leaves out is to be said. */
  everything?: boolean;
  /** Only cases whose name matches, see `patternOf`. */
  pattern?: string;
  /** Races twenty times instead of three. */
  full?: boolean;
}

/** Where the kit notes what it measured (tests/boundary/kit/aftermath.ts). */
const figuresFile = inProject("build", "test", "measured.jsonl");

/** Two machines at a time on four processors and more, where the memory is there; an emulated processor takes a whole one. */
const MACHINES_AT_ONCE = availableParallelism() >= 4 ? 2 : 1;

/** Runs them with the package built and the hosts' images made before. A lab that cannot be had is a failure by name. */
export async function testsOnHosts(request: BoundaryRequest): Promise<Outcome[]> {
  const { hosts, full = false } = request;
  const names = hosts.map(({ host }) => host);
  const outcomes = leftOutOutcomes(request);
  const figures: Figure[] = [];
  try {
    await withBoundaryLab(names, async ({ environment, lab, policies, missing }) => {
      for (const { host, parts } of hosts) {
        if (missing[host] !== undefined) {
          outcomes.push(notTried(host, missing[host]));
          continue;
        }
        rmSync(figuresFile, { force: true });
        const variables = {
          ...environment,
          ...workersFor(host),
          ...(policies[host] === undefined ? {} : { [POLICY_VARIABLE]: policies[host] }),
          [HOSTS_VARIABLE]: host,
          [FULL_VARIABLE]: full ? "1" : "0",
        };
        for (const part of parts) {
          outcomes.push(...(await step(`${part.project} on ${host}`, () => runPart(request, part, host, variables))));
          // A part's workers are gone, and what their hosts still do would only be in the way of the next.
          await lab.sweep();
        }
        figures.push(...figuresOn(host));
      }
    });
    if (!outcomes.some(({ result }) => result !== "skipped"))
      outcomes.push(failed("boundary", "vitest", "no case has such a name"));
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    say(message);
    outcomes.push(failed("boundary", "the lab", message));
  }
  keep(resultsOf(outcomes, figures, { hosts: names, full }));
  return outcomes;
}

/** What is left out on purpose is named in each run that would have had it. */
function leftOutOutcomes({ hosts, everything }: BoundaryRequest): Outcome[] {
  return (everything ? hosts : [])
    .flatMap(({ host }) => leftOutOn(host))
    .map(({ host, what, why }) => {
      say(`NOT TRIED: ${what} on ${host}: ${why}`);
      return { stage: "boundary", name: `${what} [${host}]`, result: "skipped", host };
    });
}

/** A host that cannot be made is no failure of the product, and no success either: it is named, and counted as skipped. */
function notTried(host: HostName, why: string): Outcome {
  say(`NOT TRIED: ${host}: ${why}`);
  return { stage: "boundary", name: `the host ${host}`, result: "skipped", host };
}

/** How many hosts of this kind there are at a time, where nobody has said it. */
function workersFor(host: HostName): Record<string, string> {
  if (kindOf(host).kind === "container" || process.env[WORKERS_VARIABLE] !== undefined) return {};
  return { [WORKERS_VARIABLE]: String(Math.max(1, Math.min(MACHINES_AT_ONCE, machinesThatFit()))) };
}

function runPart({ pattern }: BoundaryRequest, part: Part, host: HostName, environment: Record<string, string>) {
  const { project, files, words } = part;
  const asked = pattern ?? (words === undefined ? undefined : patternOf(words));
  return runProject(project, {
    environment,
    host,
    ...(files === undefined ? {} : { files }),
    ...(asked === undefined ? {} : { pattern: asked }),
  });
}

function figuresOn(host: HostName): Figure[] {
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
