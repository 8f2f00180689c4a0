// SPDX-License-Identifier: Apache-2.0
// `npm start`: the product's main job from source to verdict on a fresh host.

import type { CommandModule } from "yargs";

import { withLab } from "../lab/lab.ts";
import { buildPackage } from "../package/package.ts";
import { say, step } from "../progress.ts";
import { type DrillResult, runDrill, verdictLine } from "./drill.ts";
import { forgetEvidence, keepEvidence } from "./keep.ts";

export const command: CommandModule = {
  command: "start",
  describe: "build all, boot a host, start sessions and stop them all as an operator does; proved from the kernel",
  handler: async () => {
    // Told at the very end, also when this is interrupted, and together with the exit code.
    const end = { problems: ["it did not come to its end"], kept: "" };
    process.once("exit", (code) => {
      if (code !== 0 && end.problems.length === 0) end.problems = [`exit code ${code}, see above`];
      if (end.kept !== "") say(end.kept);
      say(verdictLine(end.problems));
    });
    process.exitCode = 1;
    await forgetEvidence();
    try {
      const result = await drillOnFreshHost((kept) => {
        end.kept = kept;
      });
      end.problems = result.problems;
    } catch (error) {
      end.problems = [error instanceof Error ? error.message.replaceAll("\n", " ") : String(error)];
      throw error;
    }
    process.exitCode = end.problems.length === 0 ? 0 : 1;
  },
};

async function drillOnFreshHost(tell: (kept: string) => void): Promise<DrillResult> {
  const { rpm } = await buildPackage();
  return withLab({}, async ({ hosts: [host] }) => {
    await step("installing the package", () => host.installPackage(rpm));
    const result = await runDrill(host);
    const { json, page } = await keepEvidence(result);
    tell(`evidence: ${json}\nto look at, in any browser: ${page}`);
    return result;
  });
}
