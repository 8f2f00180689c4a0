// SPDX-License-Identifier: Apache-2.0
// Large worlds by the dice of fast-check: up to two dozen processes of every temper, on hosts with everything that can
// come together. The number that shrinks is the number of things that are out of the ordinary.

import fc from "fast-check";
import { type Place, places } from "./account.ts";
import {
  bystanderNames,
  type EventPlan,
  faultNames,
  isPossible,
  type ProcessPlan,
  temperNames,
  type WorldPlan,
} from "./plans.ts";
import type { ProgramOptions } from "./programs.ts";
import type { HostOptions } from "./world.ts";

const processPlan: fc.Arbitrary<ProcessPlan> = fc
  .record({
    // Nothing ends the endless ones: they are rare, so that most worlds can end well.
    temper: fc.oneof(
      {
        weight: 30,
        arbitrary: fc.constantFrom(...temperNames.filter((name) => !/stuck|traced-by-operator|storm/.test(name))),
      },
      { weight: 1, arbitrary: fc.constantFrom(...temperNames) },
    ),
    place: fc.constantFrom(...(Object.keys(places) as Place[])),
  })
  .filter(isPossible);

const host: fc.Arbitrary<Partial<HostOptions>> = fc.record(
  {
    killFile: fc.constantFrom(true, true, false),
    forksRaceTheKill: fc.boolean(),
    readOnlyCgroups: fc.constantFrom(false, false, false, true),
    pidMax: fc.constantFrom(700, 1_500, 32_768),
    collectAfterUs: fc.constantFrom(0, 300, 5_000),
    layout: fc.constantFrom("unified", "hybrid"),
    slowness: fc.constantFrom(1, 1, 2, 8),
  },
  { requiredKeys: [] },
);

const programs: fc.Arbitrary<Partial<ProgramOptions>> = fc.record(
  {
    systemctl: fc.constantFrom("works", "works", "works", "missing", "hangs", "fails", "masked", "busy-twice"),
    recorder: fc.constantFrom("works", "works", "missing", "hangs", "fails", "silent"),
    generation: fc.constantFrom(252, 257),
  },
  { requiredKeys: [] },
);

const event: fc.Arbitrary<EventPlan> = fc.record({
  kind: fc.constantFrom("new-session", "new-stray", "recycled-pid", "slice-removed"),
  atMs: fc.oneof(fc.integer({ min: 0, max: 250 }), fc.integer({ min: 0, max: 12_000 })),
});

/** A few of the items, mostly none. */
function few<T>(items: readonly T[], most: number): fc.Arbitrary<T[]> {
  return fc.oneof(
    { weight: 3, arbitrary: fc.constant<T[]>([]) },
    { weight: 2, arbitrary: fc.uniqueArray(fc.constantFrom(...items), { maxLength: most }) },
  );
}

/**
 * A large world. A helper inside a frozen slice would not even begin, and one that cannot leave the slice is rightly ended
 * by a second stop.
 */
export const largeWorld: fc.Arbitrary<WorldPlan> = fc
  .record(
    {
      seed: fc.integer({ min: 1, max: 2_000_000_000 }),
      processes: fc.array(processPlan, { maxLength: 24, size: "max" }),
      bystanders: few(bystanderNames, 4),
      faults: few(faultNames, 2),
      events: fc.oneof(
        { weight: 2, arbitrary: fc.constant<EventPlan[]>([]) },
        { weight: 1, arbitrary: fc.array(event, { maxLength: 3 }) },
      ),
      host,
      programs,
      account: fc.record(
        { planted: fc.boolean(), homeWritable: fc.boolean(), lingering: fc.boolean() },
        { requiredKeys: [] },
      ),
      slice: fc.constantFrom("ordinary", "ordinary", "frozen", "braked", "frozen-and-braked"),
      helperInside: fc.constantFrom(false, false, false, true),
      manager: fc.boolean(),
      second: fc.constantFrom(false, false, false, false, true),
      request: fc.record({ force: fc.constantFrom(true, true, true, false), json: fc.boolean() }),
    },
    { requiredKeys: ["seed", "processes", "request"] },
  )
  .filter(({ helperInside, slice }) => helperInside !== true || slice?.startsWith("frozen") !== true)
  .filter(
    ({ helperInside, second, host }) => !(helperInside === true && second === true && host?.readOnlyCgroups === true),
  );
