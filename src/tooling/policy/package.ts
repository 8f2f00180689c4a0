// SPDX-License-Identifier: Apache-2.0
// The package ai-tools-selinux of one suite: the module that was compiled against that suite's policy, and what loads it.
// A spec of its own, because nothing in it comes from a program: it is built in 0.2 s, the base package in a minute.

import {
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
} from "node:fs";
import { basename, join } from "node:path";
import { Refusal } from "../cleanup.ts";
import { cacheDirectory, inProject, productVersion } from "../machine.ts";
import { changelogTime } from "../package/source-tree.ts";
import { logged, step } from "../progress.ts";
import { ensurePackages } from "../setup/apt.ts";
import { packagesFor } from "../setup/packages.ts";
import { buildPolicy, policySource, SOURCES } from "./build.ts";
import type { Suite } from "./tree.ts";

export const POLICY_SPEC = "rpm/ai-tools-selinux.spec";

/**
 * Builds the package of the policy for hosts of a suite.
 * @returns the path of the package in `build/rpm/`
 */
export async function buildPolicyPackage(suite: Suite, release: number = 1): Promise<{ rpm: string }> {
  await ensurePackages([...packagesFor.package]);
  const { module } = await buildPolicy(suite);
  const topdir = mkdtempSync(join(cacheDirectory("packages"), "building-"));
  try {
    writePolicySources(join(topdir, "SOURCES"), module);
    await step(`packaging the SELinux policy for ${suite}`, () => rpmbuild(topdir, suite, release));
    return { rpm: delivered(join(topdir, "RPMS")) };
  } finally {
    rmSync(topdir, { recursive: true, force: true });
  }
}

/** Fills an empty folder with the spec and every source that it names. */
export function writePolicySources(folder: string, module: string): void {
  const spec = readFileSync(inProject(POLICY_SPEC), "utf8");
  const said = /^Version:\s*(\S+)$/m.exec(spec)?.[1];
  if (said !== productVersion())
    throw new Refusal(`${POLICY_SPEC} says Version ${said} and package.json says ${productVersion()}: set it there.`);
  mkdirSync(folder);
  for (const name of SOURCES) cpSync(policySource(name), join(folder, name));
  cpSync(module, join(folder, "ai_tools.pp"));
  cpSync(inProject(POLICY_SPEC), join(folder, basename(POLICY_SPEC)));
  const time = changelogTime(spec);
  for (const file of readdirSync(folder)) utimesSync(join(folder, file), time, time);
}

async function rpmbuild(topdir: string, suite: Suite, release: number): Promise<void> {
  const macros = {
    _topdir: topdir,
    _build_name_fmt: "%{name}-%{version}-%{release}.%{arch}.rpm",
    policy_suite: suite,
    package_release: String(release),
  };
  const defined = Object.entries(macros).flatMap(([name, value]) => ["--define", `${name} ${value}`]);
  const spec = join("SOURCES", basename(POLICY_SPEC));
  // With a home of its own rpmbuild reads no macros of the person who runs it.
  await logged(`rpmbuild-policy-${suite}`, ["rpmbuild", ...defined, "-bb", spec], {
    cwd: topdir,
    env: { HOME: topdir },
  });
}

function delivered(folder: string): string {
  const [name, ...more] = readdirSync(folder).filter((entry) => entry.endsWith(".rpm"));
  if (name === undefined || more.length > 0) throw new Error(`expected one package in ${folder}`);
  mkdirSync(inProject("build", "rpm"), { recursive: true });
  const copy = inProject("build", "rpm", name);
  const beside = `${copy}.${process.pid}.new`;
  copyFileSync(join(folder, name), beside);
  renameSync(beside, copy);
  return copy;
}
