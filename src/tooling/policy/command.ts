// SPDX-License-Identifier: Apache-2.0
// `npm run policy`: the SELinux policy is compiled and linked with the checks on, asked what it allows, and packaged.

import { readFileSync } from "node:fs";
import { relative } from "node:path";
import type { CommandModule } from "yargs";
import { Refusal } from "../cleanup.ts";
import { projectRoot } from "../machine.ts";
import { say } from "../progress.ts";
import { buildPolicy, policySource } from "./build.ts";
import { checkRules, EXPECTED } from "./expected.ts";
import { lintPolicy } from "./lint.ts";
import { buildPolicyPackage } from "./package.ts";
import { type Suite, suites } from "./tree.ts";
import { tryWrongPolicies, wrongPolicies } from "./wrong-policies.ts";

interface Arguments {
  suite: readonly Suite[];
  prove: boolean;
}

export const command: CommandModule<object, Arguments> = {
  command: "policy",
  describe: "compile the SELinux policy, check what it allows, and build its package into build/rpm/",
  builder: {
    suite: { type: "array", choices: suites, default: suites, describe: "whose policy it is compiled against" },
    prove: { type: "boolean", default: false, describe: "see that the checks refuse policies with one thing wrong" },
  },
  handler: async ({ suite, prove }) => {
    for (const name of suite) {
      await checkPolicy(name);
      say(relative(projectRoot, (await buildPolicyPackage(name)).rpm));
      if (!prove) continue;
      const missed = await tryWrongPolicies(name);
      if (missed.length > 0) throw new Refusal(missed.join("\n"));
      say(`${name}: each of ${wrongPolicies.length} wrong policies was refused`);
    }
  },
};

/**
 * What `npm run check` asks of the policy of one suite: no forbidden interface, a sentence above each grant, no
 * neverallow broken, and the rules that are expected.
 * @throws Refusal with every finding
 */
export async function checkPolicy(suite: Suite): Promise<void> {
  const findings = lintPolicy(readFileSync(policySource("ai_tools.te"), "utf8"));
  if (findings.length > 0) throw new Refusal(findings.join("\n"));
  const different = await checkRules(await buildPolicy(suite));
  if (different.length > 0)
    throw new Refusal(
      `${different.join("\n")}\nMend selinux/ai_tools.te, or say in ${EXPECTED} why it is meant to be so.`,
    );
}
