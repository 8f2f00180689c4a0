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
}

const STOP_ENTRY = "src/stop/main.ts";
const FRONT_DOOR_ENTRY = "src/cli/main.ts";

/** Builds both programs into `build/bin/`; a variant of the helper goes to `build/variants/` and leaves the real one alone. */
export async function buildBinaries(options: BuildOptions = {}): Promise<Binaries> {
  const toolchain = await quickjsToolchain();
  const frontDoor = await executable(FRONT_DOOR_ENTRY, inProject("build", "bin", "ai-tools"), toolchain);
  const stop =
    options.stopEntry === undefined
      ? await executable(STOP_ENTRY, inProject("build", "bin", "ai-tools-stop"), toolchain)
      : await variant(options.stopEntry, toolchain);
  return { stop, frontDoor };
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
