// SPDX-License-Identifier: Apache-2.0
// What counts as a finding of rpmlint and mandoc, and that every exception on the list has a reason.

import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { inProject } from "../machine.ts";
import { manFindings, rpmlintFindings } from "./lint.ts";

test("a warning of rpmlint, an error and a filter that matches nothing are findings, its summary is none", () => {
  const findings = [
    "ai-tools.x86_64: W: no-url-tag",
    "ai-tools.spec:7: E: hardcoded-library-path in %{_prefix}/lib",
    'ai-tools.x86_64: E: unused-rpmlintrc-filter "x"',
  ];
  const output = `==== rpmlint session starts ====\nrpmlint: 2.4.0\nchecks: 26, packages: 3\n\n${findings.join("\n")}\n 2 packages`;
  expect(rpmlintFindings(output)).toEqual(findings);
});

test("a complaint of mandoc is a finding, the absence of somebody else's page is none", () => {
  const finding = "mandoc: man/ai-tools.1:225:13: WARNING: blocks badly nested: Po breaks Ql";
  const absent = "mandoc: man/ai-tools.1:146:6: STYLE: referenced manual not found: Xr sudo 8";
  const database = "mandoc: outdated mandoc.db lacks sudo(8) entry, run makewhatis /usr/share/man";
  expect(manFindings([finding, absent, database].join("\n"))).toEqual([finding]);
});

test("every filter of rpmlint has a reason in the line before it", () => {
  const lines = readFileSync(inProject("rpm", "ai-tools.rpmlintrc"), "utf8").split("\n");
  const filters = lines.flatMap((line, index) => (line.startsWith("addFilter") ? [index] : []));
  expect(filters.length).toBeGreaterThan(10);
  for (const index of filters) expect(lines[index - 1]).toMatch(/^# .*\w/);
});
