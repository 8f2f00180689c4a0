// SPDX-License-Identifier: Apache-2.0
// The laws of a stop over many large worlds. A failure prints the seed and the smallest world that fast-check found. More
// or other worlds: AI_TOOLS_WORLDS=20000 AI_TOOLS_SEED=7.

import fc from "fast-check";
import { expect, test } from "vitest";
import { largeWorld } from "./simulation/large-worlds.ts";
import { judgeKilledAt, judgePlan } from "./simulation/laws.ts";
import { stopSessions } from "./stop-sessions.ts";

/** Worlds in all, unless the environment says otherwise; the same ones each time. */
const worlds = Number(process.env.AI_TOOLS_WORLDS ?? 80);
const seed = Number(process.env.AI_TOOLS_SEED ?? 20_261_130);
const limitMs = 300_000 + worlds * 2_000;

test("the laws of a stop hold in large worlds", { timeout: limitMs }, async () => {
  let seen = 0;
  const holds = fc.asyncProperty(largeWorld, async (plan) => {
    seen++;
    const { breaches } = await judgePlan(plan, stopSessions);
    expect(breaches).toEqual([]);
  });
  await fc.assert(holds, { seed, numRuns: worlds });
  expect(seen).toBe(worlds);
});

test("a helper killed anywhere in a large world leaves nothing behind, and a second stop is clean", {
  timeout: limitMs,
}, async () => {
  const holds = fc.asyncProperty(largeWorld, fc.integer({ min: 1, max: 2_500 }), async (plan, call) => {
    const { breaches } = await judgeKilledAt({ ...plan, second: false }, stopSessions, call);
    expect(breaches).toEqual([]);
  });
  await fc.assert(holds, { seed, numRuns: Math.ceil(worlds / 5) });
});
