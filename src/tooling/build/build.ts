// SPDX-License-Identifier: Apache-2.0
// Builds the static executables of the base package. A program is compiled again only when its bundled source or the
// toolchain has changed.

import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, renameSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { cacheDirectory, inProject } from "../machine.ts";
import { step } from "../progress.ts";
import { bundle, compileStatic } from "./compile.ts";
import { quickjsToolchain, type Toolchain } from "./quickjs.ts";

export interface BuildOptions {
  /** Another entry file for the helper, relative to the checkout: a variant of it, to see that the tests notice. */
  stopEntry?: string;
}

export interface Binaries {
  /** Path of the helper, `ai-tools-stop`. */
  stop: string;
  /** Path of the front door, `ai-tools`. */
  frontDoor: string;
  /** Paths of all programs, the two included. */
  all: string[];
}

/** The programs of the package: name and entry file. The spec says where each of them is installed. */
export const programs: Readonly<Record<string, string>> = {
  "ai-tools-stop": "src/stop/main.ts",
  "ai-tools": "src/cli/main.ts",
  "ai-tools-claim": "src/claim/main.ts",
  "ai-tools-run": "src/run/main.ts",
  "ai-tools-ended": "src/run/ended-main.ts",
  "ai-tools-hold": "src/hold/main.ts",
};

/** Builds all programs into `build/bin/`; a variant of the helper goes to `build/variants/` and leaves the real one alone. */
export async function buildBinaries(options: BuildOptions = {}): Promise<Binaries> {
  const toolchain = await quickjsToolchain();
  const all: string[] = [];
  for (const [name, entry] of Object.entries(programs)) {
    const isVariant = name === "ai-tools-stop" && options.stopEntry !== undefined;
    all.push(
      isVariant
        ? await variant(options.stopEntry as string, toolchain)
        : await executable(entry, inProject("build", "bin", name), toolchain),
    );
  }
  const [stop, frontDoor] = all as [string, string];
  return { stop, frontDoor, all };
}

async function variant(entry: string, toolchain: Toolchain): Promise<string> {
  const folder = createHash("sha256").update(entry).digest("hex").slice(0, 12);
  return executable(entry, inProject("build", "variants", folder, "ai-tools-stop"), toolchain);
}

/** One program, from the cache where it was built from the same bytes before. */
export async function executable(entry: string, output: string, toolchain: Toolchain): Promise<string> {
  const name = basename(output);
  const source = await bundle(entry);
  const key = createHash("sha256").update(toolchain.key).update(name).update(source).digest("hex").slice(0, 32);
  const cached = join(cacheDirectory("executables"), `${name}-${key}`);
  if (existsSync(cached)) {
    replaceByCopy(cached, output);
  } else {
    await step(`compiling ${name}`, () => compileStatic(source, output, toolchain));
    replaceByCopy(output, cached);
  }
  return output;
}

/** A copy that is whole or not there, also for whoever executes the old one or copies at the same time. */
function replaceByCopy(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true });
  const beside = `${to}.${process.pid}`;
  copyFileSync(from, beside);
  renameSync(beside, to);
}
