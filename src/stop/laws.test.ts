// SPDX-License-Identifier: Apache-2.0
// The laws of a stop over every small world of the simulation. A failure shows the plan of the world: that plan and its
// seed tell the whole story again.

import { describe, expect, test } from "vitest";
import { judgeKilledAt, judgeRecycledAt, type Story } from "./simulation/laws.ts";
import type { WorldPlan } from "./simulation/plans.ts";
import { breachesIn, inWords, shown } from "./simulation/search.ts";
import { graceWorlds, otherRequests, pairWorlds, singleWorlds, tripleWorlds } from "./simulation/small-worlds.ts";
import { stopSessions } from "./stop-sessions.ts";

const story: Story = stopSessions;

describe("the laws of a stop hold in every small world", () => {
  test.each([
    ["each temper in each place", singleWorlds, 400],
    ["each temper through the grace", graceWorlds, 200],
    ["each pair of tempers", pairWorlds, 600],
    ["the hardest three at a time", tripleWorlds, 100],
    ["questions, refusals and dry runs", otherRequests, 80],
  ] as const)("%s", { timeout: 600_000 }, async (_name, plans, atLeast) => {
    const { worlds, found } = await breachesIn(story, plans());
    expect(found.join("\n\n")).toBe("");
    expect(worlds).toBeGreaterThanOrEqual(atLeast);
  });
});

describe("a helper killed at any step leaves nothing behind, and a second stop is clean", () => {
  const scenes: readonly (readonly [string, number, Omit<WorldPlan, "seed">])[] = [
    [
      "forced, everything at once",
      1,
      {
        processes: [
          { temper: "headless", place: "unit" },
          { temper: "respawning", place: "stray" },
        ],
        manager: true,
        request: { force: true },
      },
    ],
    [
      "forced, from inside the slice",
      1,
      { processes: [{ temper: "respawning", place: "app" }], helperInside: true, request: { force: true } },
    ],
    [
      "with a slice that was found frozen",
      7,
      { processes: [{ temper: "polite", place: "unit" }], slice: "frozen-and-braked", manager: true },
    ],
    [
      "through the whole grace",
      97,
      {
        processes: [
          { temper: "slow-polite", place: "unit" },
          { temper: "stopped", place: "stray" },
        ],
        manager: true,
      },
    ],
  ];
  test.each(scenes)("%s", { timeout: 600_000 }, async (_name, stride, plan) => {
    const found: string[] = [];
    let killed = 0;
    for (let call = 1, reached = true; reached; call += stride) {
      const judged = await judgeKilledAt({ ...plan, seed: 7 }, story, call);
      reached = judged.reached;
      if (reached) killed++;
      found.push(
        ...judged.breaches.map((breach) => `killed before call ${call}: ${inWords(breach, { ...plan, seed: 7 })}`),
      );
      if (found.length >= shown) break;
    }
    expect(found.join("\n\n")).toBe("");
    expect(killed).toBeGreaterThan(40);
  });
});

describe("a number that changes hands at any step brings nobody a signal who was not looked at", () => {
  const scenes: readonly (readonly [string, number, Omit<WorldPlan, "seed">])[] = [
    [
      "forced",
      1,
      {
        processes: [
          { temper: "deaf", place: "unit" },
          { temper: "headless", place: "stray" },
          { temper: "keeping-a-corpse", place: "stray" },
        ],
        request: { force: true },
      },
    ],
    [
      "through the grace",
      2,
      {
        processes: [
          { temper: "polite", place: "unit" },
          { temper: "obedient", place: "stray" },
          { temper: "stopped", place: "stray" },
        ],
      },
    ],
  ];
  test.each(scenes)("%s", { timeout: 600_000 }, async (_name, stride, plan) => {
    const found: string[] = [];
    let changed = 0;
    for (let call = 1, reached = true; reached && found.length < shown; call += stride) {
      const judged = await judgeRecycledAt({ ...plan, seed: 7 }, story, call);
      reached = judged.reached;
      if (judged.recycled) changed++;
      found.push(
        ...judged.breaches.map((breach) => `changed before call ${call}: ${inWords(breach, { ...plan, seed: 7 })}`),
      );
    }
    expect(found.join("\n\n")).toBe("");
    expect(changed).toBeGreaterThan(10);
  });
});
