// SPDX-License-Identifier: Apache-2.0
// Everything that a machine can check without running the product. Each check says what to do when it fails.

import { Refusal } from "../cleanup.ts";
import { inProject } from "../machine.ts";
import { lastLines, logged, say, step } from "../progress.ts";
import { failed, type Outcome } from "./report.ts";

interface Check {
  name: string;
  /** Throws a Refusal with the findings. */
  run(): Promise<unknown>;
}

/** One line a finding; the formatter's differences are long, and `npm run fix` makes them all. */
const CONCISE = ["--colors=off", "--reporter=concise", "--max-diagnostics=200"];

const checks: Check[] = [
  { name: "format and lint", run: () => tool("biome", "Run: npm run fix", "biome", "ci", ...CONCISE) },
  { name: "types of tooling and tests", run: () => types("tsconfig.json") },
  ...["stop", "ground", "claim", "run", "hold", "status", "cli"].map((room) => ({
    name: `types of src/${room}`,
    run: () => types(`src/${room}/tsconfig.json`),
  })),
  {
    name: "package, man pages and sudoers drop-in",
    run: async () => (await import("../package/lint.ts")).checkPackage(),
  },
  {
    name: "SELinux policy (bookworm)",
    run: async () => (await import("../policy/command.ts")).checkPolicy("bookworm"),
  },
];

/** Runs every check, also after one has failed. */
export async function runChecks(): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const check of checks) {
    try {
      await step(`check: ${check.name}`, check.run);
      outcomes.push({ stage: "check", name: check.name, result: "passed" });
    } catch (error) {
      const message =
        error instanceof Refusal ? error.message : error instanceof Error ? (error.stack ?? "") : `${error}`;
      say(message);
      outcomes.push(failed("check", check.name, message));
    }
  }
  return outcomes;
}

function types(project: string): Promise<void> {
  return tool("tsc", "Mend the types named above.", "tsc", "-p", project);
}

async function tool(name: string, whatToDo: string, program: string, ...args: string[]): Promise<void> {
  const path = inProject("node_modules", ".bin", program);
  const { code, output } = await logged(`check-${name}`, [path, ...args], { anyCode: true });
  if (code !== 0) throw new Refusal(`${lastLines(output, 60)}\n${whatToDo}`);
}
