// SPDX-License-Identifier: Apache-2.0
// The QuickJS toolchain: one pinned source archive, fetched through the machine's own apt configuration (or given by
// hand), checked, and built once into the cache.

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { Refusal } from "../cleanup.ts";
import { cacheDirectory, inProject } from "../machine.ts";
import { lastLines, logged, step } from "../progress.ts";
import { ensurePackages } from "../setup/apt.ts";
import { packagesFor } from "../setup/packages.ts";
import { sourceList } from "./apt-sources.ts";

/** The one pinned version. The archive is the one that Debian's source package of this version consists of. */
export const quickjs = {
  version: "2025.04.26",
  /** The folder in the archive. */
  folder: "quickjs-2025.04.26",
  debianSource: "quickjs=2025.04.26-1",
  debianSuite: "trixie",
  archive: "quickjs_2025.04.26.orig.tar.xz",
  sha256: "ec81da5b3249ed648dbc7df4a1654988910e66a118d9b71cb63534216efcfbbe",
} as const;

export interface Toolchain {
  /** The built source folder: `qjsc`, `libquickjs.a` and the headers are in it. */
  directory: string;
  /** Changes when anything that makes the executables changes, the programs' own source aside. */
  key: string;
}

/** The toolchain, built when it is not in the cache yet. */
export async function quickjsToolchain(): Promise<Toolchain> {
  await ensurePackages(packagesFor.build);
  const engine = engineKey();
  const directory = join(cacheDirectory("quickjs"), engine);
  if (!existsSync(directory)) {
    const archive = await quickjsArchive();
    await step(`building QuickJS ${quickjs.version}`, () => buildInto(directory, archive));
  }
  return { directory, key: keyOf(engine, partsOfPrograms) };
}

/** What is compiled or linked into the executables beside QuickJS, and how. */
export const partsOfPrograms = [
  "src/tooling/build/compile-static.sh",
  "src/tooling/build/no-dynamic-loading.c",
  "src/tooling/build/own-limits.c",
  "src/tooling/build/unfiltered.h",
  "src/tooling/build/urgent.c",
  "src/stop/pidfd.c",
  "src/ground/native.c",
  "src/ground/project-walk.c",
  "src/ground/project-walk.h",
  "src/ground/hand-back.c",
  "src/ground/hand-back.h",
  "src/ground/relabel.c",
  "src/ground/relabel.h",
];

/** The engine alone, so that a change of a program's own parts does not build it again. */
function engineKey(): string {
  const compiler = execFileSync("gcc", ["--version"]).toString();
  return keyOf(`${quickjs.sha256}${compiler}`, ["src/tooling/build/compile-quickjs.sh"]);
}

function keyOf(before: string, files: string[]): string {
  const hash = createHash("sha256").update(before);
  for (const file of files) hash.update(readFileSync(inProject(file)));
  return hash.digest("hex").slice(0, 16);
}

/** Builds beside the final place and moves there when it is whole, so that an interrupted build leaves nothing half. */
async function buildInto(directory: string, archive: string): Promise<void> {
  const scratch = mkdtempSync(join(cacheDirectory("quickjs"), "building-"));
  try {
    await logged("quickjs-unpack", ["tar", "-xJf", archive, "-C", scratch, "--no-same-owner"]);
    const source = join(scratch, quickjs.folder);
    await logged("quickjs-build", [inProject("src", "tooling", "build", "compile-quickjs.sh"), source]);
    if (!existsSync(directory)) renameSync(source, directory);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** Path of the source archive in the cache, its checksum verified on every call (the RPM has it as a Source). */
export async function quickjsArchive(): Promise<string> {
  const cached = join(cacheDirectory("quickjs-archive"), quickjs.archive);
  if (existsSync(cached) && sha256(cached) === quickjs.sha256) return cached;
  const given = process.env.AI_TOOLS_QUICKJS_ARCHIVE;
  if (given) {
    verify(given, "AI_TOOLS_QUICKJS_ARCHIVE names this file");
    copyFileSync(given, cached);
  } else {
    await step(`fetching QuickJS ${quickjs.version}`, () => fetchArchive(cached));
  }
  return cached;
}

function sha256(path: string): string {
  return createHash("sha256").update(readFileSync(path)).digest("hex");
}

function verify(path: string, where: string): void {
  if (!existsSync(path)) throw new Refusal(`${path} does not exist (${where}).`);
  const found = sha256(path);
  if (found === quickjs.sha256) return;
  throw new Refusal(
    `${path} is not the pinned archive (${where}).\n  wanted sha256 ${quickjs.sha256}\n  found  sha256 ${found}`,
  );
}

/** Fetches with apt in private folders, so that neither root nor a change of the machine's own lists is needed. */
async function fetchArchive(cached: string): Promise<void> {
  const list = sourceList(quickjs.debianSuite);
  if (list === undefined) throw new Refusal(howToGive("no Debian archive is configured for this machine's apt"));
  const scratch = mkdtempSync(join(cacheDirectory("quickjs-archive"), "fetching-"));
  try {
    mkdirSync(join(scratch, "lists", "partial"), { recursive: true });
    mkdirSync(join(scratch, "cache", "archives", "partial"), { recursive: true });
    const sources = join(scratch, "quickjs.sources");
    writeFileSync(sources, list);
    const privately = [
      ...["-o", `Dir::Etc::sourcelist=${sources}`, "-o", "Dir::Etc::sourceparts=-"],
      ...["-o", `Dir::State::lists=${join(scratch, "lists")}`, "-o", `Dir::Cache=${join(scratch, "cache")}`],
      ...["-o", "APT::Sandbox::User=root"],
    ];
    const options = { cwd: scratch, anyCode: true };
    const update = await logged("quickjs-apt-update", ["apt-get", ...privately, "update"], options);
    const source = ["source", "--download-only", quickjs.debianSource];
    const fetched = await logged("quickjs-apt-source", ["apt-get", ...privately, ...source], options);
    const archive = join(scratch, quickjs.archive);
    if (!existsSync(archive)) {
      throw new Refusal(howToGive(`apt did not deliver it:\n${lastLines(update.output + fetched.output)}`));
    }
    verify(archive, "delivered by apt");
    renameSync(archive, cached);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

function howToGive(problem: string): string {
  return (
    `The source archive of QuickJS ${quickjs.version} is missing: ${problem}\n` +
    `Get ${quickjs.archive} (sha256 ${quickjs.sha256}), part of Debian's source package quickjs in ` +
    `${quickjs.debianSuite}, on a machine that has it, and run this command again with ` +
    `AI_TOOLS_QUICKJS_ARCHIVE=/path/to/${quickjs.archive}`
  );
}
