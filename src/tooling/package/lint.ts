// SPDX-License-Identifier: Apache-2.0
// What `npm run check` asks of the package: rpmlint finds nothing that is not on the committed list, every line of
// the list still matches something, the man pages and shell scripts are clean, and sudo accepts the drop-in.

import { basename, join } from "node:path";
import { Refusal } from "../cleanup.ts";
import { inProject } from "../machine.ts";
import { logged } from "../progress.ts";
import { ensurePackages } from "../setup/apt.ts";
import { packagesFor } from "../setup/packages.ts";
import { buildPackage } from "./package.ts";
import { SPEC } from "./source-tree.ts";

const FILTERS = "rpm/ai-tools.rpmlintrc";
const SHELL_SCRIPTS = ["tests/manual/verify-live-flows.sh", "systemd/ai-tools-generator", "src/run/ai-tools-session"];
const MAN_PAGES = ["man/ai-tools.1", "man/ai-tools-entrypoint.5", "man/ai-tools-stop.8"];

/**
 * Builds the package and checks it and what goes into it.
 * @throws Refusal with every finding and what to do about it
 */
export async function checkPackage(): Promise<void> {
  await ensurePackages([...packagesFor.check, ...packagesFor.package]);
  const findings = [
    ...(await manPageFindings()),
    ...(await shellFindings()),
    ...(await sudoersFindings()),
    ...(await rpmFindings()),
  ];
  if (findings.length > 0) throw new Refusal(findings.join("\n"));
}

async function manPageFindings(): Promise<string[]> {
  const pages = MAN_PAGES.map((page) => inProject(page));
  return manFindings((await logged("mandoc", ["mandoc", "-T", "lint", ...pages], { anyCode: true })).output);
}

/** mandoc's complaints. Which other pages are installed where it runs says nothing about these. */
export function manFindings(output: string): string[] {
  return output
    .split("\n")
    .filter((line) => line.startsWith("mandoc: "))
    .filter((line) => !/referenced manual not found|outdated mandoc\.db/.test(line));
}

/** With the files that each of them reads (`shellcheck source=`), whose paths are from the checkout's top. */
async function shellFindings(): Promise<string[]> {
  const options = ["--external-sources", `--source-path=${inProject()}`, "--format=gcc"];
  const scripts = SHELL_SCRIPTS.map((script) => inProject(script));
  const { output } = await logged("shellcheck", ["shellcheck", ...options, ...scripts], { anyCode: true });
  return output.split("\n").filter(Boolean);
}

async function sudoersFindings(): Promise<string[]> {
  const { code, output } = await logged("visudo", ["/usr/sbin/visudo", "-cf", inProject("sudoers.d", "ai-tools")], {
    anyCode: true,
  });
  return code === 0 ? [] : [output.trimEnd()];
}

async function rpmFindings(): Promise<string[]> {
  const { rpm, sourceRpm, sources } = await buildPackage();
  const argv = ["-r", inProject(FILTERS), join(sources, basename(SPEC)), rpm, sourceRpm] as const;
  const { code, output } = await logged("rpmlint", ["rpmlint", ...argv], { anyCode: true });
  const findings = rpmlintFindings(output);
  if (code !== 0 && findings.length === 0) return [`rpmlint ended with ${code} (log: build/logs/rpmlint.log)`];
  if (findings.length === 0) return [];
  return [...findings, `Mend these, or add them to ${FILTERS} with the reason why they are meant to be so.`];
}

/** rpmlint's lines with a finding, warnings included, and filters that match nothing. */
export function rpmlintFindings(output: string): string[] {
  return output.split("\n").filter((line) => /^\S+ [EWF]: /.test(line));
}
