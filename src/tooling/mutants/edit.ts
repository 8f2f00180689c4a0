// SPDX-License-Identifier: Apache-2.0
// A helper that is broken on purpose: the real source with a few places changed, compiled like the real one.

import { cp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { buildBinaries } from "../build/build.ts";
import { inProject } from "../machine.ts";

/** One change of the helper's source text. */
export interface Edit {
  /** File in `src/stop/`. */
  file: string;
  /** Text that stands there exactly once. */
  original: string;
  replacement: string;
}

/** Builds a helper from a copy of its source with the edits applied. Returns the executable's path. */
export async function buildVariant(name: string, edits: readonly Edit[]): Promise<string> {
  const room = inProject("build", "mutants", name);
  await rm(room, { recursive: true, force: true });
  await cp(inProject("src", "stop"), join(room, "stop"), { recursive: true });
  for (const edit of edits) {
    const path = join(room, "stop", edit.file);
    await writeFile(path, applyEdit(await readFile(path, "utf8"), edit));
  }
  return (await buildBinaries({ stopEntry: `build/mutants/${name}/stop/main.ts` })).stop;
}

/**
 * The text with the one occurrence of the original replaced.
 * @throws when it stands there not exactly once: the mutant would be the real helper, and the trial would prove nothing
 */
export function applyEdit(text: string, edit: Edit): string {
  const parts = text.split(edit.original);
  if (parts.length === 2) return parts.join(edit.replacement);
  throw new Error(
    `src/stop/${edit.file} holds ${parts.length - 1} times, not once: ${edit.original}\nAdapt the mutant in src/tooling/mutants/list.ts to the source.`,
  );
}
