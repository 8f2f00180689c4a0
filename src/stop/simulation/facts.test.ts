// SPDX-License-Identifier: Apache-2.0
// The simulator has every fact of the list; the same list is run against a real kernel in tests/boundary.

import { expect, test } from "vitest";
import { Bench } from "./fact.ts";
import { kernelFacts } from "./facts.ts";

test.each(kernelFacts.map((fact) => [fact.name, fact] as const))("%s", (_name, fact) => {
  fact.check(new Bench());
});

test("every fact has a name of its own, a sentence and a source", () => {
  expect(new Set(kernelFacts.map((fact) => fact.name)).size).toBe(kernelFacts.length);
  for (const fact of kernelFacts) {
    expect(fact.name).toMatch(/^[a-z0-9]+(-[a-z0-9]+)+$/);
    expect(fact.statement).toMatch(/\.$/);
    expect(fact.source).not.toBe("");
  }
});
