// SPDX-License-Identifier: Apache-2.0
// What rpmbuild is given: the archive of the sources with each program's bundle, QuickJS's archive, and the spec. The
// same checkout gives the same bytes, wherever it lies and whenever this runs.

import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { bundle } from "../build/compile.ts";
import { partsOfPrograms, quickjs, quickjsArchive } from "../build/quickjs.ts";
import { Refusal } from "../cleanup.ts";
import { inProject, productVersion } from "../machine.ts";
import { logged } from "../progress.ts";

/** The spec, the one place that says what is in the package. */
export const SPEC = "rpm/ai-tools.spec";

/** What of the checkout is in the archive; tests and the simulation are not needed to build or to read the product. */
const IN_THE_ARCHIVE = [
  "LICENSE",
  "README.md",
  "SECURITY.md",
  "docs",
  "etc",
  "package.json",
  "man",
  "rpm/ai-tools.logrotate",
  ...["src/stop", "src/cli", "src/ground", "src/claim", "src/run", "src/hold", "src/status"],
  "src/tooling/build/compile-quickjs.sh",
  ...partsOfPrograms,
  "share",
  "sudoers.d",
  "systemd",
  "tests/manual",
];
const NOT_IN_THE_ARCHIVE = /\.(test|fixture)\.ts$|\/simulation$/;

/** Entry file of each program, relative to the checkout, by the program's name. */
export type Programs = Readonly<Record<string, string>>;

/**
 * Fills an empty folder with the spec and every source that it names.
 * @param replaced texts in place of files of the archive, by their path in the checkout
 * @throws Refusal where the spec does not fit package.json or the pinned archive
 */
export async function writeSources(
  folder: string,
  programs: Programs,
  replaced: Record<string, string> = {},
): Promise<void> {
  const spec = readFileSync(inProject(SPEC), "utf8");
  const disagreement = disagreementOf(spec, productVersion());
  if (disagreement !== undefined) throw new Refusal(disagreement);
  const name = `ai-tools-${productVersion()}`;
  await writeTree(join(folder, name), programs);
  for (const [path, text] of Object.entries(replaced)) writeFileSync(join(folder, name, path), text);
  const time = changelogTime(spec);
  await archive(folder, name, time);
  rmSync(join(folder, name), { recursive: true });
  cpSync(await quickjsArchive(), join(folder, quickjs.archive));
  cpSync(inProject("systemd", "ai-tools.sysusers"), join(folder, "ai-tools.sysusers"));
  cpSync(inProject(SPEC), join(folder, basename(SPEC)));
  // The source package records the time of each of its files.
  for (const file of readdirSync(folder)) utimesSync(join(folder, file), time, time);
}

async function writeTree(tree: string, programs: Programs): Promise<void> {
  for (const path of IN_THE_ARCHIVE) {
    cpSync(inProject(path), join(tree, path), { recursive: true, filter: (from) => !NOT_IN_THE_ARCHIVE.test(from) });
  }
  mkdirSync(join(tree, "bundle"));
  for (const [name, entry] of Object.entries(programs)) {
    writeFileSync(join(tree, "bundle", `${name}.js`), await bundle(entry));
  }
}

async function archive(folder: string, name: string, time: Date): Promise<void> {
  const sameEverywhere = [
    "--sort=name",
    `--mtime=@${time.getTime() / 1000}`,
    "--owner=0",
    "--group=0",
    "--numeric-owner",
  ];
  const options = [...sameEverywhere, "--mode=u=rwX,go=rX", "--format=ustar", "--use-compress-program=gzip -n"];
  await logged("package-archive", ["tar", ...options, "-cf", join(folder, `${name}.tar.gz`), "-C", folder, name]);
}

/** What the spec says otherwise than the files that are the home of a fact, with what to do; undefined: nothing. */
export function disagreementOf(spec: string, version: string): string | undefined {
  const said = /^Version:\s*(\S+)$/m.exec(spec)?.[1];
  if (said !== version) {
    return `${SPEC} says Version ${said} and package.json says ${version}: set it there, with an entry in its changelog.`;
  }
  const pinned = `%global quickjs_version ${quickjs.version}\n%global quickjs_sha256 ${quickjs.sha256}\n`;
  if (!spec.includes(pinned)) return `${SPEC} does not pin the QuickJS of src/tooling/build/quickjs.ts:\n${pinned}`;
  return undefined;
}

/** Midnight UTC of the newest changelog entry, which rpm takes as the time of the build. */
export function changelogTime(spec: string): Date {
  const date = /^%changelog\n\* \w{3} (\w{3} +\d{1,2} \d{4})/m.exec(spec)?.[1];
  const time = new Date(`${date} UTC`);
  if (Number.isNaN(time.getTime()))
    throw new Refusal(`${SPEC} has no changelog entry of the form "* Mon Nov 30 2026 ..."`);
  return time;
}
