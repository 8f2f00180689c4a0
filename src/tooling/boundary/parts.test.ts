// SPDX-License-Identifier: Apache-2.0
// Which files belong to which run.

import { existsSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { hostNames } from "../lab/host-names.ts";
import { inProject } from "../machine.ts";
import { hostsOfEachChange, leftOutOn, partsOn, partsWith, projectOf } from "./parts.ts";

describe("the part of each change", () => {
  const parts = hostsOfEachChange().flatMap(({ parts }) => parts);

  test("names files that are there, each in the project that holds it", () => {
    const named = parts.flatMap(({ project, files = [] }) => files.map((file) => ({ project, file })));
    expect(named.length).toBeGreaterThan(5);
    for (const { project, file } of named) {
      expect(existsSync(inProject(file)), file).toBe(true);
      expect(projectOf(file.replace("tests/boundary/", ""))).toBe(project);
    }
  });

  test("has containers of both releases and a machine with SELinux, and out of reach on each", () => {
    const withIt = hostsOfEachChange().filter(({ parts }) => parts.some(({ project }) => project === "out-of-reach"));
    expect(withIt.map(({ host }) => host)).toEqual(["bookworm", "trixie", "bookworm-selinux"]);
  });
});

test("what a host leaves out is a project or a file that there is, is not run there, and has a reason", () => {
  for (const { host, what, why } of hostNames.flatMap(leftOutOn)) {
    const parts = partsOn(host);
    expect(what === "crowds" || existsSync(inProject(what)), what).toBe(true);
    expect(parts.map(({ project }) => project as string)).not.toContain(what);
    expect(parts.flatMap(({ files = [] }) => files)).not.toContain(what);
    expect(why).toMatch(/^\w.+\w$/);
  }
  expect(leftOutOn("bookworm")).toEqual([]);
  expect(partsOn("bookworm")).toHaveLength(4);
  expect(leftOutOn("bookworm-5.10").map(({ what }) => what)).toContain("crowds");
  expect(partsOn("bookworm-5.10").flatMap(({ files = [] }) => files)).toContain("tests/boundary/kill-path.test.ts");
});

test("a word chooses files of every project, and one that no file has chooses nothing", () => {
  expect(partsWith("sid", [])).toEqual(partsOn("sid"));
  const chosen = partsWith("bookworm", ["storms", "mounts", "survivor"]);
  expect(chosen.map(({ project, files }) => [project, files?.length])).toEqual([
    ["boundary", 1],
    ["worst-day", 1],
    ["crowds", 1],
  ]);
  expect(partsWith("bookworm", ["no such file"])).toEqual([]);
});
