// SPDX-License-Identifier: Apache-2.0
// The parts of the tests on real hosts, and which of them belong to each change.

import { readdirSync } from "node:fs";

import { inProject } from "../machine.ts";
import type { Project } from "../test/vitest.ts";

/** Files of one project of vitest.config.ts. */
export interface Part {
  project: Exclude<Project, "unit">;
  /** Parts of file names; all files when absent. */
  files?: string[];
}

/** Everything, which `npm run boundary` and `npm run ci-full` run. */
export const allParts: readonly Part[] = [{ project: "boundary" }, { project: "worst-day" }, { project: "crowds" }];

/** Files of `tests/boundary/worst-day/` that are short enough and worth enough for `npm test`. */
const worstDayOfEachChange: string[] = [
  "census-order",
  "clock",
  "final-look",
  "grace-window",
  "mounts",
  "names",
  "operators-terminal",
  "runtime-directory",
  "traced",
  "zombie-leader",
].map((name) => `tests/boundary/worst-day/${name}.test.ts`);

/** What `npm test` runs: it has to fit in a quarter of an hour, with everything else. */
export function partsOfEachChange(): Part[] {
  const worst: Part = { project: "worst-day", files: worstDayOfEachChange };
  return [{ project: "boundary" }, ...(worstDayOfEachChange.length === 0 ? [] : [worst])];
}

/** The parts without the files that hold none of these words; a part without any would be a run without a test. */
export function partsWith(words: string[]): readonly Part[] {
  if (words.length === 0) return allParts;
  return allParts
    .map(({ project }) => ({
      project,
      files: filesOf(project).filter((path) => words.some((word) => path.includes(word))),
    }))
    .filter(({ files }) => files.length > 0);
}

/** The project to which a file below `tests/boundary/` belongs, as vitest.config.ts has them. */
export function projectOf(file: string): Part["project"] {
  if (file.startsWith("worst-day/crowds/")) return "crowds";
  return file.startsWith("worst-day/") ? "worst-day" : "boundary";
}

/** Paths in the checkout. */
function filesOf(project: Part["project"]): string[] {
  return readdirSync(inProject("tests", "boundary"), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".test.ts") && projectOf(path) === project)
    .map((path) => `tests/boundary/${path}`);
}
