// SPDX-License-Identifier: Apache-2.0
// Where things are on the machine that builds and tests: the checkout, the caches, and who runs this.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The checkout, without a slash at its end. */
export const projectRoot: string = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");

/** A path inside the checkout. */
export function inProject(...parts: string[]): string {
  return join(projectRoot, ...parts);
}

/** Whether this process may install packages and start hosts. */
export function isRoot(): boolean {
  return process.geteuid?.() === 0;
}

/** The folder that holds all caches: `AI_TOOLS_CACHE`, or a system folder for root, or the user's cache folder. */
export function cacheRoot(): string {
  const asked = process.env.AI_TOOLS_CACHE;
  if (asked) return asked;
  if (isRoot()) return "/var/cache/ai-tools-build";
  return join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "ai-tools-build");
}

/** The mark of a folder that may be deleted at any time (Cache Directory Tagging Specification). */
export const cacheTag = { file: "CACHEDIR.TAG", text: "Signature: 8a477f597d28d172789f06886806bc55\n" } as const;

/** One room's folder in the cache, made and marked when absent. `npm run clean` deletes what has the mark, nothing else. */
export function cacheDirectory(name: string): string {
  const path = join(cacheRoot(), name);
  mkdirSync(path, { recursive: true });
  const tag = join(path, cacheTag.file);
  if (!existsSync(tag)) writeFileSync(tag, cacheTag.text);
  return path;
}

/** The version of the product: `package.json` is its one home. */
export function productVersion(): string {
  const text = readFileSync(inProject("package.json"), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}
