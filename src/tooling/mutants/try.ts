// SPDX-License-Identifier: Apache-2.0
// Tries the mutants: each takes the place of the installed helper on a lab host, and its traps, the tests that it must
// not get through, are run on that host. They are run with the real helper before and after all mutants, so that neither
// a trap that is red anyway nor what a mutant left behind passes for a success.

import { mkdirSync, writeFileSync } from "node:fs";

import { type BoundaryLab, withBoundaryLab } from "../boundary/boundary-lab.ts";
import { partsOn, projectOf } from "../boundary/parts.ts";
import { devices, HOSTS_VARIABLE, READY_HOST_VARIABLE, WORKERS_VARIABLE } from "../boundary/variables.ts";
import { buildBinaries } from "../build/build.ts";
import { Refusal } from "../cleanup.ts";
import type { LabHost } from "../lab/host.ts";
import { inProject } from "../machine.ts";
import { say, step } from "../progress.ts";
import { installTempers } from "../tempers/build-tempers.ts";
import type { Outcome } from "../test/report.ts";
import { runProject } from "../test/vitest.ts";
import { noticedByDrill } from "./by-drill.ts";
import { buildVariant } from "./edit.ts";
import { type Mutant, mutants, type Trap } from "./list.ts";
import { judge, type Trial, trialLines } from "./trial.ts";

const installedHelper = "/usr/libexec/ai-tools/ai-tools-stop";
const suite = "bookworm";
/** Mutants are tried side by side on so many hosts. */
const hostsAtOnce = Number(process.env[WORKERS_VARIABLE] ?? 2);

/** Tries every mutant, or those of these names. True when every trap of each went red, and green without it. */
export async function tryMutants(only: readonly string[] = mutants.map(({ name }) => name)): Promise<boolean> {
  const unknown = only.filter((asked) => !mutants.some(({ name }) => name === asked));
  if (unknown.length > 0)
    throw new Refusal(`no mutant ${unknown}: one of ${mutants.map(({ name }) => name).join(", ")}`);
  const chosen = mutants.filter(({ name }) => only.includes(name));
  const helpers = new Map<string, string>();
  for (const { name, edits } of chosen)
    helpers.set(name, await step(`building the mutant ${name}`, () => buildVariant(name, edits)));
  const trials = await withBoundaryLab([suite], (boundary) => tryOnHosts(boundary, chosen, helpers));
  for (const line of trialLines(trials)) say(line);
  mkdirSync(inProject("build", "mutants"), { recursive: true });
  writeFileSync(inProject("build", "mutants", "results.json"), `${JSON.stringify(trials, undefined, 2)}\n`);
  return trials.every(({ problems }) => problems.length === 0);
}

async function tryOnHosts(boundary: BoundaryLab, chosen: Mutant[], helpers: Map<string, string>): Promise<Trial[]> {
  const { stop: realHelper } = await buildBinaries();
  const queue = [...chosen];
  const work = async () => {
    const host = await boundary.lab.boot(suite, { devices });
    await host.installPackage(boundary.rpm);
    await installTempers(host);
    const own: Mutant[] = [];
    const trials: { mutant: Mutant; red: Outcome[]; seconds: number; drill: string | undefined }[] = [];
    for (let mutant = queue.shift(); mutant !== undefined; mutant = queue.shift()) {
      own.push(mutant);
      trials.push(await tryOne(boundary, host, mutant, helpers.get(mutant.name) ?? ""));
    }
    await host.copyIn(realHelper, installedHelper, "0700");
    const green =
      own.length === 0
        ? []
        : await runTraps(
            boundary,
            host,
            own.flatMap(({ traps }) => traps),
            `real-helper-${host.name}`,
          );
    return trials.map((trial) => judge({ ...trial, green }));
  };
  const all = await Promise.all(Array.from({ length: Math.min(hostsAtOnce, chosen.length) }, work));
  const order = new Map(chosen.map(({ name }, index) => [name, index]));
  return all.flat().sort((a, b) => (order.get(a.name) ?? 0) - (order.get(b.name) ?? 0));
}

async function tryOne(boundary: BoundaryLab, host: LabHost, mutant: Mutant, helper: string) {
  const startedMs = performance.now();
  await host.copyIn(helper, installedHelper, "0700");
  // One that does nothing at all would turn every test red.
  await host.sh(`${installedHelper} --dry-run`);
  const red = await step(`mutant ${mutant.name}`, () => runTraps(boundary, host, mutant.traps, mutant.name));
  const seconds = (performance.now() - startedMs) / 1000;
  return { mutant, red, seconds, drill: mutant.drill ? await noticedByDrill(boundary, mutant, helper) : undefined };
}

/** Runs these tests, and no others, on this host; their output goes to a log of this name. */
async function runTraps(
  boundary: BoundaryLab,
  host: LabHost,
  traps: readonly Trap[],
  name: string,
): Promise<Outcome[]> {
  const environment = {
    ...boundary.environment,
    [HOSTS_VARIABLE]: suite,
    [READY_HOST_VARIABLE]: host.name,
    [WORKERS_VARIABLE]: "1",
  };
  const outcomes: Outcome[] = [];
  for (const { project } of partsOn(suite)) {
    const own = traps.filter(({ file }) => projectOf(file) === project);
    if (own.length === 0) continue;
    const files = [...new Set(own.map(({ file }) => `tests/boundary/${file}`))];
    const pattern = [...new Set(own.map(({ test }) => literally(test)))].join("|");
    outcomes.push(
      ...(await runProject(project, { environment, files, pattern, host: suite, log: `mutant-${name}-${project}` })),
    );
  }
  return outcomes;
}

function literally(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
