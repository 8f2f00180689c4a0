// SPDX-License-Identifier: Apache-2.0
// Compiles the SELinux policy for one suite against that suite's own, and links it with the whole of it, so that what can
// be promised is promised of the policy that a host would load.

import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Refusal } from "../cleanup.ts";
import { cacheDirectory, inProject } from "../machine.ts";
import { lastLines, step } from "../progress.ts";
import { ensureTree, inTree, type PolicyTree, type Suite } from "./tree.ts";

export const SOURCES = ["ai_tools.te", "ai_tools.if", "ai_tools.fc"] as const;
const COMPILE = inProject("src", "tooling", "policy", "compile.sh");

export interface Policy {
  tree: PolicyTree;
  /** The compiled module. */
  module: string;
  /** The suite's whole policy with the module in it, as the kernel would load it. */
  linked: string;
}

/** A source of the policy in the checkout. */
export function policySource(name: (typeof SOURCES)[number]): string {
  return inProject("selinux", name);
}

/**
 * Builds the module and the linked policy of a suite, or takes them from the cache.
 * @param replaced paths of other files in place of sources: a policy to see that the checks notice
 * @throws Refusal with the end of the output where it does not compile, or where a neverallow is broken
 */
export async function buildPolicy(suite: Suite, replaced: Partial<Record<string, string>> = {}): Promise<Policy> {
  const tree = await ensureTree(suite);
  const files: Record<string, string> = { "compile.sh": COMPILE };
  for (const name of SOURCES) files[name] = replaced[name] ?? policySource(name);
  const kept = join(cacheDirectory("policy"), `built-${suite}-${keyOf(tree, files)}`);
  if (!existsSync(kept)) {
    await step(`compiling the SELinux policy for ${suite}`, () =>
      inTree(tree, "policy", files, ["sh", "compile.sh", "link"], ({ code, output }, folder) => {
        if (code !== 0) throw new Refusal(`${lastLines(output, 40)}\n${whatToDo(output)}`);
        keep(folder, kept);
      }),
    );
  }
  return { tree, module: join(kept, "ai_tools.pp"), linked: join(kept, "linked.policy") };
}

function whatToDo(output: string): string {
  return output.includes("neverallow check failed")
    ? "selinux/ai_tools.te grants what one of its neverallow lines forbids: take the grant away."
    : "The SELinux policy does not compile (log: build/logs/).";
}

function keep(folder: string, kept: string): void {
  const unfinished = mkdtempSync(join(cacheDirectory("policy"), "unfinished-"));
  for (const name of ["ai_tools.pp", "linked.policy"]) copyFileSync(join(folder, name), join(unfinished, name));
  // Another process of this machine can have finished the same build first: its result is the same.
  if (existsSync(kept)) rmSync(unfinished, { recursive: true });
  else renameSync(unfinished, kept);
}

function keyOf(tree: PolicyTree, files: Record<string, string>): string {
  const hash = createHash("sha256").update(tree.hash);
  for (const [name, path] of Object.entries(files)) hash.update(name).update(readFileSync(path));
  return hash.digest("hex").slice(0, 20);
}
