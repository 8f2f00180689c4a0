// SPDX-License-Identifier: Apache-2.0
// Which files belong to which run.

import { existsSync } from "node:fs";
import { describe, expect, test } from "vitest";

import { inProject } from "../machine.ts";
import { allParts, partsOfEachChange, partsWith, projectOf } from "./parts.ts";

describe("the part of each change", () => {
  test("names files that are there, each in the project that holds it", () => {
    const named = partsOfEachChange().flatMap(({ project, files = [] }) => files.map((file) => ({ project, file })));
    expect(named.length).toBeGreaterThan(5);
    for (const { project, file } of named) {
      expect(existsSync(inProject(file)), file).toBe(true);
      expect(projectOf(file.replace("tests/boundary/", ""))).toBe(project);
    }
  });
});

test("a word chooses files of every project, and one that no file has chooses nothing", () => {
  expect(partsWith([])).toBe(allParts);
  const chosen = partsWith(["storms", "mounts", "survivor"]);
  expect(chosen.map(({ project, files }) => [project, files?.length])).toEqual([
    ["boundary", 1],
    ["worst-day", 1],
    ["crowds", 1],
  ]);
  expect(partsWith(["no such file"])).toEqual([]);
});
