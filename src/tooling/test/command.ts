// SPDX-License-Identifier: Apache-2.0
// The commands that judge the project (test, test:unit, check, ci-full) and tidy it (fix, clean).

import type { ArgumentsCamelCase, CommandModule } from "yargs";
import { inProject } from "../machine.ts";
import { attached, step } from "../progress.ts";
import { runChecks } from "./check.ts";
import { clean } from "./clean.ts";
import { failed, type Outcome } from "./report.ts";
import { conclude, everyTest, pageTests } from "./run.ts";
import { runProject } from "./vitest.ts";

/** What `ci-full` tries after all tests, each as `npm run` would. */
const FULL = [["package", "--twice"], ["policy", "--prove"], ["start"], ["mutants"]];

const namedFiles = (args: ArgumentsCamelCase) => ((args.files as string[] | undefined) ?? []).map(String);

export const commands: CommandModule[] = [
  {
    command: "test",
    describe: "check, unit tests, pages, package, boundary tests on real hosts",
    handler: async () => conclude(await everyTest()),
  },
  {
    command: "test:unit [files..]",
    describe: "the unit tests alone: no host, no root, under a minute",
    handler: async (args) => conclude(await runProject("unit", { files: namedFiles(args) })),
  },
  {
    command: "test:pages",
    describe: "the pages that people look at, in a real browser; pictures of them in build/pages",
    handler: async () => conclude(await pageTests()),
  },
  {
    command: "check",
    describe: "format, lint, types, man pages, sudoers drop-in, package lint, SELinux policy",
    handler: async () => conclude(await runChecks()),
  },
  {
    command: "fix",
    describe: "let the formatter and linter mend what they can",
    handler: async () => {
      process.exitCode = await attached([inProject("node_modules", ".bin", "biome"), "check", "--write"]);
    },
  },
  {
    command: "clean",
    describe: "delete every cache and build result, end what labs left behind",
    handler: clean,
  },
  {
    command: "ci-full",
    describe:
      "all tests on all kinds of hosts, then the package twice, the SELinux policy on all suites, the drill and the mutants",
    handler: async () => {
      const outcomes = await everyTest(true);
      for (const argv of FULL) outcomes.push(await wholeCommand(argv));
      conclude(outcomes);
    },
  },
];

/** One other command as a single outcome. */
async function wholeCommand(argv: string[]): Promise<Outcome> {
  const name = argv.join(" ");
  const commandLine = inProject("src", "tooling", "cli.ts");
  const code = await step(`npm run ${name}`, () => attached([process.execPath, commandLine, ...argv]));
  return code === 0 ? { stage: "ci-full", name, result: "passed" } : failed("ci-full", name, `ended with ${code}`);
}
