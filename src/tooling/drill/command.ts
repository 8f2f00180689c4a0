// SPDX-License-Identifier: Apache-2.0
// `npm start`: the product's main job from source to verdict on a fresh host.

import type { CommandModule } from "yargs";

import { withLab } from "../lab/lab.ts";
import { buildPackage } from "../package/package.ts";
import { say, step } from "../progress.ts";
import { forgetEvidence, keepEvidence, runDrill, verdictLine } from "./drill.ts";

export const command: CommandModule = {
  command: "start",
  describe: "build all, boot a host, start sessions and stop them all as an operator does; proved from the kernel",
  handler: async () => {
    // Told at the very end, also when this is interrupted, and together with the exit code.
    let problems = ["it did not come to its end"];
    process.once("exit", (code) => {
      if (code !== 0 && problems.length === 0) problems = [`exit code ${code}, see above`];
      say(verdictLine(problems));
    });
    process.exitCode = 1;
    await forgetEvidence();
    try {
      problems = await drillOnFreshHost();
    } catch (error) {
      problems = [error instanceof Error ? error.message.replaceAll("\n", " ") : String(error)];
      throw error;
    }
    process.exitCode = problems.length === 0 ? 0 : 1;
  },
};

async function drillOnFreshHost(): Promise<string[]> {
  const { rpm } = await buildPackage();
  return withLab({}, async ({ hosts: [host] }) => {
    await step("installing the package", () => host.installPackage(rpm));
    const result = await runDrill(host);
    say(`evidence: ${await keepEvidence(result)}`);
    return result.problems;
  });
}
