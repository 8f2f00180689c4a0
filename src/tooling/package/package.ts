// SPDX-License-Identifier: Apache-2.0
// Builds the package with rpmbuild. Two builds of one checkout give the same bytes, so one that was built before is
// taken from the cache.

import { createHash } from "node:crypto";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from "node:fs";
import { basename, join } from "node:path";
import { programs } from "../build/build.ts";
import { quickjsToolchain } from "../build/quickjs.ts";
import { Refusal } from "../cleanup.ts";
import { cacheDirectory, inProject } from "../machine.ts";
import { logged, step } from "../progress.ts";
import { ensurePackages } from "../setup/apt.ts";
import { packagesFor } from "../setup/packages.ts";
import { SPEC, writeSources } from "./source-tree.ts";

export interface PackageOptions {
  /** Another entry file for the helper, relative to the checkout: a package to see that the tests notice. */
  stopEntry?: string;
  /** Texts in place of files of the checkout, by their path in it: an earlier or later package than this one. */
  replaced?: Record<string, string>;
  /** Release of the package, 1 where not given; a higher one upgrades a lower one. */
  release?: number;
  /** Build QuickJS inside rpmbuild too, as on EL and Fedora, instead of taking the one in the cache. */
  fromSource?: boolean;
}

export interface Package {
  /** Path of the binary package in `build/rpm/`. */
  rpm: string;
  /** Path of the source package beside it, from which EL and Fedora build their own. */
  sourceRpm: string;
  /** Folder with the spec and its sources as they were given to rpmbuild. */
  sources: string;
}

/** Builds the package, or takes it from the cache where the same sources were packaged with the same tools before. */
export async function buildPackage(options: PackageOptions = {}): Promise<Package> {
  await ensurePackages([...packagesFor.build, ...packagesFor.package, "sudo"]);
  const scratch = mkdtempSync(join(cacheDirectory("packages"), "building-"));
  try {
    const sources = await writeSourcesInto(scratch, options);
    const kept = join(cacheDirectory("packages"), await keyOf(sources, options));
    if (!existsSync(kept)) {
      await step("building the package", () => rpmbuild(scratch, options));
      // Another process of this machine can have finished the same build first: its result is the same.
      if (!existsSync(kept)) renameSync(scratch, kept);
    }
    return delivered(kept, options);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/**
 * Builds the package twice, in two folders and under two time zones, without the cache of packages.
 * @returns the sha256 of the binary and of the source package
 * @throws Refusal where the two builds differ
 */
export async function buildTwice(options: PackageOptions = {}): Promise<{ rpm: string; sourceRpm: string }> {
  const first = await hashesOfOneBuild("Pacific/Kiritimati", options);
  const second = await hashesOfOneBuild("America/Los_Angeles", options);
  if (first.rpm === second.rpm && first.sourceRpm === second.sourceRpm) return first;
  throw new Refusal(`Two builds of the same sources differ:\n${JSON.stringify([first, second], undefined, 2)}`);
}

async function hashesOfOneBuild(
  timeZone: string,
  options: PackageOptions,
): Promise<{ rpm: string; sourceRpm: string }> {
  await ensurePackages([...packagesFor.build, ...packagesFor.package, "sudo"]);
  const scratch = mkdtempSync(join(cacheDirectory("packages"), "building-"));
  try {
    await writeSourcesInto(scratch, options);
    await step(`building the package in ${timeZone}`, () => rpmbuild(scratch, options, { TZ: timeZone }));
    return { rpm: sha256(oneIn(join(scratch, "RPMS"))), sourceRpm: sha256(oneIn(join(scratch, "SRPMS"))) };
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

async function writeSourcesInto(scratch: string, options: PackageOptions): Promise<string> {
  const sources = join(scratch, "SOURCES");
  mkdirSync(sources);
  const variant = options.stopEntry === undefined ? {} : { "ai-tools-stop": options.stopEntry };
  await writeSources(sources, { ...programs, ...variant }, options.replaced);
  return sources;
}

async function rpmbuild(topdir: string, options: PackageOptions, env: Record<string, string> = {}): Promise<void> {
  const spec = join("SOURCES", basename(SPEC));
  const quickjs = options.fromSource ? "" : (await quickjsToolchain()).directory;
  // With a home of its own rpmbuild reads no macros of the person who runs it.
  const logOptions = { cwd: topdir, env: { ...env, HOME: topdir, AI_TOOLS_PREBUILT_QUICKJS: quickjs } };
  await logged("rpmbuild", ["rpmbuild", ...macrosOf(topdir, options), "-bb", spec], logOptions);
  // Separately, because a source package records the folder it was made in, and a binary package its source package.
  await logged("rpmbuild-source", ["rpmbuild", ...macrosOf(".", options), "-bs", spec], logOptions);
  for (const name of ["BUILD", "BUILDROOT"]) rmSync(join(topdir, name), { recursive: true, force: true });
}

function macrosOf(topdir: string, options: PackageOptions): string[] {
  const macros = { _topdir: topdir, _build_name_fmt: "%{name}-%{version}-%{release}.%{arch}.rpm" };
  const release = options.release === undefined ? {} : { package_release: String(options.release) };
  return Object.entries({ ...macros, ...release }).flatMap(([name, value]) => ["--define", `${name} ${value}`]);
}

/** Copies a package from the cache to `build/rpm/`; a variant of it, which has the same name, to a folder of its own. */
function delivered(kept: string, options: PackageOptions): Package {
  const folder =
    options.stopEntry === undefined && options.replaced === undefined
      ? inProject("build", "rpm")
      : inProject("build", "variants", basename(kept));
  mkdirSync(folder, { recursive: true });
  const [rpm, sourceRpm] = [oneIn(join(kept, "RPMS")), oneIn(join(kept, "SRPMS"))].map((path) => {
    const copy = join(folder, basename(path));
    const beside = `${copy}.${process.pid}.new`;
    copyFileSync(path, beside);
    renameSync(beside, copy);
    return copy;
  }) as [string, string];
  return { rpm, sourceRpm, sources: join(kept, "SOURCES") };
}

/** Changes when the sources, the tools or the options of a package change. */
async function keyOf(sources: string, options: PackageOptions): Promise<string> {
  const rpm = await logged("rpm-version", ["rpm", "--version"]);
  const hash = createHash("sha256")
    .update((await quickjsToolchain()).key)
    .update(rpm.output);
  hash.update(readFileSync(import.meta.filename));
  for (const name of readdirSync(sources).sort()) hash.update(name).update(readFileSync(join(sources, name)));
  hash.update(JSON.stringify([options.release ?? 1, options.fromSource ?? false]));
  return hash.digest("hex").slice(0, 32);
}

function oneIn(folder: string): string {
  const [name, ...more] = readdirSync(folder).filter((entry) => entry.endsWith(".rpm"));
  if (name === undefined || more.length > 0) throw new Error(`expected one package in ${folder}`);
  return join(folder, name);
}

function sha256(path: string): string {
  return createHash("sha256").update(readFileSync(path)).digest("hex");
}
