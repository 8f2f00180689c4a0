// SPDX-License-Identifier: Apache-2.0
// Goes through worlds and gathers the breaches of the laws in words. A breach shows the plan of its world: that plan and
// its seed tell the whole story again.

import { type Breach, judgePlan, type Story } from "./laws.ts";
import type { WorldPlan } from "./plans.ts";

/** Worlds shown of a law that is broken; the first ones are the smallest. */
export const shown = 5;

/** How many worlds there were, and the first breaches found in them. */
export async function breachesIn(
  story: Story,
  plans: Iterable<WorldPlan>,
): Promise<{ worlds: number; found: string[] }> {
  let worlds = 0;
  const found: string[] = [];
  for (const plan of plans) {
    worlds++;
    const { breaches } = await judgePlan(plan, story);
    if (found.length < shown) found.push(...breaches.map((breach) => inWords(breach, plan)));
  }
  return { worlds, found };
}

/** One breach, with the world that shows it. */
export function inWords(breach: Breach, plan: WorldPlan): string {
  return `${breach.law}\n  in ${JSON.stringify(plan)}\n  seen: ${breach.seen}`;
}
