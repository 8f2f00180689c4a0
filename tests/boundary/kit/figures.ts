// SPDX-License-Identifier: Apache-2.0
// Figures that a test tells of itself: they are told and shown in the table, not asserted.

import { appendFileSync, mkdirSync } from "node:fs";
import { dirname, relative } from "node:path";
import { expect } from "vitest";

import { inProject } from "../../../src/tooling/machine.ts";

const measuredFile = inProject("build", "test", "measured.jsonl");

/** Notes a figure of the present test in build/test/measured.jsonl. */
export function measured(what: string, figures: Record<string, unknown>): void {
  mkdirSync(dirname(measuredFile), { recursive: true });
  const { currentTestName: test, testPath = "" } = expect.getState();
  const file = relative(inProject(), testPath);
  appendFileSync(measuredFile, `${JSON.stringify({ file, test, what, ...figures })}\n`);
}
