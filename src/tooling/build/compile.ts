// SPDX-License-Identifier: Apache-2.0
// From TypeScript to one static executable: esbuild makes one module of a program, and compile-static.sh makes an
// executable of that.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { build } from "esbuild";
import { inProject, productVersion, projectRoot } from "../machine.ts";
import { logged } from "../progress.ts";
import type { Toolchain } from "./quickjs.ts";

/**
 * One JavaScript module with everything that an entry file imports, QuickJS's own modules left out. The same bytes for
 * the same source, wherever the checkout is.
 * @param entry path of a TypeScript file, absolute or relative to the checkout
 */
export async function bundle(entry: string): Promise<string> {
  const result = await build({
    absWorkingDir: projectRoot,
    entryPoints: [entry],
    bundle: true,
    write: false,
    format: "esm",
    platform: "neutral",
    target: "es2023",
    external: ["os", "std", "pidfd", "native"],
    charset: "ascii",
    legalComments: "none",
    define: { AI_TOOLS_VERSION: JSON.stringify(productVersion()) },
    logLevel: "silent",
  });
  const [file] = result.outputFiles;
  if (file === undefined) throw new Error(`esbuild gave no output for ${entry}`);
  return file.text;
}

/** Compiles a bundle to a static executable at `output` (mode 0755), beside which nothing else is left. */
export async function compileStatic(source: string, output: string, toolchain: Toolchain): Promise<void> {
  const scratch = mkdtempSync(join(tmpdir(), "ai-tools-bundle-"));
  try {
    const bundlePath = join(scratch, "bundle.js");
    writeFileSync(bundlePath, source);
    const script = inProject("src", "tooling", "build", "compile-static.sh");
    await logged(`compile-${basename(output)}`, [script, toolchain.directory, bundlePath, output]);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}
