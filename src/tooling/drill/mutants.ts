// SPDX-License-Identifier: Apache-2.0
// Helpers that are broken on purpose. A drill or a test that stays green with one of them proves nothing about the real
// helper (agent-governance-toolkit 754, cloudflare sandbox-sdk 338: kill switches that reported success and killed nothing).

import { cp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { HELPER_VARIABLE, withBoundaryLab } from "../boundary/boundary-lab.ts";
import { buildBinaries } from "../build/build.ts";
import { withLab } from "../lab/lab.ts";
import { inProject } from "../machine.ts";
import { buildPackage } from "../package/package.ts";
import { say, step } from "../progress.ts";
import { runProject } from "../test/vitest.ts";
import { keepEvidence, runDrill, verdictLine } from "./drill.ts";

/** One change of the helper's source text. */
export interface Edit {
  /** File in `src/stop/`. */
  file: string;
  /** Text that stands there exactly once. */
  original: string;
  replacement: string;
}

interface Mutant {
  name: string;
  /** What is wrong with it. */
  sentence: string;
  edits: Edit[];
}

const noWrite: Edit = {
  file: "slice.ts",
  original: 'return writeToSlice(kernel, slice, "cgroup.kill", "1");',
  replacement: 'return "written";',
};
const noSignal: Edit = {
  file: "end-session.ts",
  original: 'if (kernel.signal(found.pid, SIGKILL) === 0) use(kill, "per-pid");',
  replacement: 'use(kill, "per-pid");',
};

/** Every mutant; `mutants.test.ts` keeps their texts in step with the source. */
export const mutants: Mutant[] = [
  { name: "kills-nothing", sentence: "the kill is replaced by nothing", edits: [noWrite, noSignal] },
  {
    name: "claims-success",
    sentence: "the kill is replaced by nothing, and success is reported",
    edits: [
      noWrite,
      noSignal,
      {
        file: "end-session.ts",
        original: "kill.proved = proof.add(isEmpty(census) && !kill.slicePopulated, before, lastPid(kernel));",
        replacement: "kill.proved = proof !== undefined && before !== undefined;",
      },
      {
        file: "stop-sessions.ts",
        original: "if (look.quiet) return;",
        replacement: "if (look !== undefined) return;",
      },
    ],
  },
  {
    name: "leaves-strays",
    sentence: "units are ended, but not strays",
    edits: [
      {
        file: "census.ts",
        original: 'if (matches && !impersonated && !namespaced) return { kind: "alive", cgroup: undefined };',
        replacement: `if (matches && !impersonated && !namespaced) {
    const place = readCgroup(view, pid);
    return place !== undefined && isInSlice(scope.slice, place) ? { kind: "alive", cgroup: place } : { kind: "stranger" };
  }`,
      },
    ],
  },
  { name: "trusts-cgroup-kill", sentence: "only the slice is killed, not each process", edits: [noSignal] },
];

/** The boundary tests that each mutant has to fail: those of the core promise. */
const coreTests = ["every-session-ends"];

/** Tries every mutant with the drill and with the boundary tests. True when all of them were noticed by both. */
export async function tryMutants(): Promise<boolean> {
  const { rpm } = await buildPackage();
  const helpers = new Map<string, string>();
  for (const mutant of mutants)
    helpers.set(mutant.name, await step(`building the mutant ${mutant.name}`, () => buildMutant(mutant)));
  const unnoticed = [...(await unnoticedByDrill(rpm, helpers)), ...(await unnoticedByTests(helpers))];
  for (const sentence of unnoticed) say(`NOT NOTICED: ${sentence}`);
  say(
    unnoticed.length === 0
      ? `mutants: all ${mutants.length} were noticed by the drill and by the tests`
      : "mutants: FAILED",
  );
  return unnoticed.length === 0;
}

async function unnoticedByDrill(rpm: string, helpers: Map<string, string>): Promise<string[]> {
  const unnoticed: string[] = [];
  await withLab({}, async (lab) => {
    let [host] = lab.hosts;
    for (const { name, sentence } of mutants) {
      await host.installPackage(rpm);
      await host.copyIn(helpers.get(name) ?? "", "/usr/libexec/ai-tools/ai-tools-stop", "0700");
      const result = await step(`drill with the mutant ${name}`, () => runDrill(host));
      await keepEvidence(result, `mutant-${name}`);
      say(`mutant ${name} (${sentence}): ${verdictLine(result.problems)}`);
      if (result.problems.length === 0) unnoticed.push(`${name} by the drill: ${sentence}`);
      await host.end();
      if (name !== mutants.at(-1)?.name) host = await lab.boot();
    }
  });
  return unnoticed;
}

async function unnoticedByTests(helpers: Map<string, string>): Promise<string[]> {
  const unnoticed: string[] = [];
  await withBoundaryLab(async (environment) => {
    for (const [name, helper] of helpers) {
      const outcomes = await runProject("boundary", {
        environment: { ...environment, [HELPER_VARIABLE]: helper },
        files: coreTests,
      });
      const failed = outcomes.filter(({ result }) => result === "failed");
      const passed = outcomes.filter(({ result }) => result === "passed");
      say(`mutant ${name}: ${failed.length} of ${outcomes.length} tests failed`);
      // A run in which no test at all came through did not get as far as trying the mutant.
      if (failed.length === 0 || passed.length === 0) unnoticed.push(`${name} by the tests (${passed.length} passed)`);
    }
  });
  return unnoticed;
}

/** Builds a helper from a copy of its source with the edits applied. */
async function buildMutant({ name, edits }: Mutant): Promise<string> {
  const room = inProject("build", "mutants", name);
  await rm(room, { recursive: true, force: true });
  await cp(inProject("src", "stop"), join(room, "stop"), { recursive: true });
  for (const edit of edits) {
    const path = join(room, "stop", edit.file);
    await writeFile(path, applyEdit(await readFile(path, "utf8"), edit));
  }
  return (await buildBinaries({ stopEntry: `build/mutants/${name}/stop/main.ts` })).stop;
}

/**
 * The text with the one occurrence of the original replaced.
 * @throws when it stands there not exactly once: the mutant would be the real helper, and the trial would prove nothing
 */
export function applyEdit(text: string, edit: Edit): string {
  const parts = text.split(edit.original);
  if (parts.length === 2) return parts.join(edit.replacement);
  throw new Error(
    `src/stop/${edit.file} holds ${parts.length - 1} times, not once: ${edit.original}\nAdapt the mutant in src/tooling/drill/mutants.ts to the source.`,
  );
}
