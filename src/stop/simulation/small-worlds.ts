// SPDX-License-Identifier: Apache-2.0
// Every small world: each temper in each place, each with each condition of a host, each pair of tempers, and the
// hardest three at a time. Plans only; who runs them decides what they prove.

import { type Place, places } from "./account.ts";
import {
  bystanderNames,
  faultNames,
  isPossible,
  type ProcessPlan,
  type TemperName,
  temperNames,
  type WorldPlan,
} from "./plans.ts";

/** A condition of the host, with the name that a failing test shows. */
export type Condition = Omit<WorldPlan, "seed" | "processes">;

const forced = { force: true } as const;

/** Conditions that a forced stop is tried under. */
export const conditions: readonly Condition[] = [
  { host: { killFile: false } },
  { host: { forksRaceTheKill: true } },
  { host: { readOnlyCgroups: true } },
  { host: { layout: "hybrid" } },
  { host: { collectAfterUs: 400 } },
  { host: { collectAfterUs: 9_000, pidMax: 420 } },
  { host: { slowness: 8 } },
  { host: { pidfds: false } },
  { slice: "frozen" },
  { slice: "braked" },
  { slice: "frozen-and-braked" },
  { helperInside: true },
  { helperInside: true, slice: "braked" },
  { helperInside: true, host: { readOnlyCgroups: true } },
  { manager: true, programs: { generation: 252 } },
  { manager: true, account: { planted: true }, programs: { generation: 252 } },
  { manager: true, account: { planted: true, homeWritable: true } },
  { manager: true, account: { lingering: false } },
  { manager: true, programs: { systemctl: "missing" } },
  { manager: true, programs: { systemctl: "hangs" } },
  { manager: true, programs: { systemctl: "fails" } },
  { manager: true, programs: { systemctl: "masked" } },
  { manager: true, programs: { systemctl: "busy-twice" } },
  { programs: { recorder: "missing", logger: "missing" } },
  { programs: { recorder: "hangs", logger: "hangs" } },
  { programs: { recorder: "fails", logger: "fails" } },
  { helper: { stuckOutput: true } },
  { second: true },
  { second: true, manager: true },
  { account: { subordinateRange: "none" } },
  ...bystanderNames.map((name): Condition => ({ bystanders: [name] })),
  { bystanders: ["busy-user", "container", "root-acting"] },
  ...faultNames.map((name): Condition => ({ faults: [name] })),
  { faults: ["cgroup-path-unreadable"], host: { killFile: false } },
  { faults: ["namespace-unreadable"], bystanders: ["container"] },
  { events: [{ kind: "new-session", atMs: 110 }] },
  { events: [{ kind: "new-stray", atMs: 111 }] },
  { events: [{ kind: "new-session", atMs: 2 }], host: { collectAfterUs: 300 } },
  {
    events: [
      { kind: "slice-removed", atMs: 1 },
      { kind: "new-session", atMs: 112 },
    ],
  },
  { events: [{ kind: "recycled-pid", atMs: 1 }] },
  { events: [{ kind: "recycled-pid", atMs: 11 }] },
];

/** Each temper in each place, with grace and without. */
export function* singleWorlds(): Generator<WorldPlan> {
  let seed = 1_000;
  for (const force of [true, false]) {
    for (const temper of temperNames) {
      for (const place of Object.keys(places) as Place[]) {
        if (endless.has(temper) && place !== "unit" && place !== "stray") continue;
        if (!force && temper === "storm" && place === "stray") continue;
        if (isPossible({ temper, place })) yield { seed: seed++, processes: [{ temper, place }], request: { force } };
      }
    }
  }
}

/** Tempers that keep a run going to its limit, which is tried where it can make a difference and not everywhere. */
const endless = new Set<TemperName>([
  "stuck",
  "stuck-a-while",
  "stuck-in-fuse",
  "headless-stuck",
  "headless-stuck-a-while",
  "traced-by-operator",
]);

/** A storm out of the write's reach outruns one kill after the other until the limit. */
function isEndless({ temper, place }: ProcessPlan): boolean {
  return endless.has(temper) || (temper === "storm" && place === "stray");
}

/** Conditions under which nothing can be proved, so that every run goes to its limit: tried with the tempers that differ. */
const blinding = new Set<string>([
  "signals-refused",
  "status-unreadable-while-alive",
  "status-unreadable",
  "bystander-unreadable",
  "status-flickers",
  "events-unreadable",
  "last-pid-unreadable",
  "list-unreadable",
  "list-slow",
  "status-slow",
]);
const differing: readonly TemperName[] = ["deaf", "other-user", "own-namespace"];

function tempersUnder(condition: Condition): readonly TemperName[] {
  const faults = condition.faults ?? [];
  const trapped = condition.helperInside === true && condition.host?.readOnlyCgroups === true;
  const held = faults.includes("namespace-unreadable") && condition.bystanders !== undefined;
  if (trapped || held || faults.some((fault) => blinding.has(fault))) return differing;
  // Without the write a storm outruns the kills until the limit: once is enough.
  const writeless = faults.length > 0 || condition.host?.readOnlyCgroups === true;
  return writeless ? temperNames.filter((temper) => temper !== "storm") : temperNames;
}

/** Each condition with nobody, and with each temper inside and outside the slice. */
export function* conditionWorlds(): Generator<WorldPlan> {
  let seed = 20_000;
  for (const condition of conditions) {
    yield { ...condition, seed: seed++, processes: [], request: forced };
    for (const temper of tempersUnder(condition)) {
      for (const place of ["unit", "stray"] as const) {
        const process = { temper, place };
        if (isPossible(process) && !isEndless(process))
          yield { ...condition, seed: seed++, processes: [process], request: forced };
      }
    }
  }
}

/** A few conditions that matter for the grace. */
export function* graceWorlds(): Generator<WorldPlan> {
  let seed = 40_000;
  const ofTheGrace: readonly Condition[] = [
    { slice: "frozen" },
    { slice: "frozen-and-braked", manager: true },
    { events: [{ kind: "recycled-pid", atMs: 4 }] },
    { events: [{ kind: "recycled-pid", atMs: 8 }] },
    { events: [{ kind: "recycled-pid", atMs: 100 }] },
    { events: [{ kind: "recycled-pid", atMs: 6_000 }] },
    { events: [{ kind: "new-session", atMs: 5_000 }] },
    { second: true, manager: true },
    { faults: ["stat-unreadable"] },
    { host: { pidfds: false } },
    { helper: { interruptions: [{ atMs: 3_000, signal: 2 }] } },
    { helper: { interruptions: [{ atMs: 40, signal: 15 }] } },
    { host: { collectAfterUs: 300 }, manager: true },
  ];
  for (const condition of ofTheGrace) {
    for (const temper of temperNames) {
      if (!endless.has(temper)) yield { ...condition, seed: seed++, processes: [{ temper, place: "unit" }] };
    }
  }
}

/** Each pair of tempers, both in the slice, and one in and one out. */
export function* pairWorlds(): Generator<WorldPlan> {
  let seed = 60_000;
  const names = temperNames.filter((temper) => !endless.has(temper));
  for (const [index, one] of names.entries()) {
    for (const other of names.slice(index)) {
      const pairs: ProcessPlan[][] = [
        [
          { temper: one, place: "unit" },
          { temper: other, place: "app" },
        ],
        [
          { temper: one, place: "unit" },
          { temper: other, place: "stray" },
        ],
      ];
      for (const processes of pairs)
        if (processes.every((one) => isPossible(one) && !isEndless(one)))
          yield { seed: seed++, processes, request: forced };
    }
  }
}

const hardest: readonly TemperName[] = ["headless-chain", "chain", "slow-chain", "storm", "respawning"];

/** The hardest tempers, three at a time, on a busy host with numbers that wrap and cgroups that vanish. */
export function* tripleWorlds(): Generator<WorldPlan> {
  let seed = 80_000;
  for (const one of hardest) {
    for (const two of hardest) {
      if (two === "storm") continue;
      for (const three of hardest) {
        const processes: ProcessPlan[] = [
          { temper: one, place: "unit" },
          { temper: two, place: "stray" },
          { temper: three, place: "app" },
        ];
        yield {
          seed: seed++,
          processes,
          request: forced,
          host: { collectAfterUs: 2_000, pidMax: 900 },
          bystanders: ["busy-user"],
        };
      }
    }
  }
}

/** Questions, refusals, and runs that only look. */
export function* otherRequests(): Generator<WorldPlan> {
  let seed = 90_000;
  const requests: readonly Condition[] = [
    { request: { dryRun: true } },
    { request: { dryRun: true, json: true }, slice: "frozen-and-braked" },
    { request: { json: true, force: true } },
    { request: { json: true }, helper: { terminals: [0, 2], typed: [{ afterMs: 400, text: "\n" }] } },
    { request: { yes: false }, helper: { terminals: [0, 1, 2], typed: [{ afterMs: 900, text: "no\n" }] } },
    {
      request: { yes: false },
      helper: {
        terminals: [0, 1, 2],
        typed: [
          { afterMs: 900, text: "n" },
          { afterMs: 1_900, text: "\n" },
        ],
      },
    },
    { request: { yes: false, force: true }, helper: { terminals: [0, 1, 2], typed: [{ afterMs: 900, text: "\n" }] } },
    { request: { yes: false, force: true }, helper: { terminals: [0, 1, 2], typed: [] } },
    {
      request: { yes: false, force: true },
      helper: { terminals: [0, 1, 2], typed: [{ afterMs: 5, text: undefined }] },
    },
    { request: { yes: false, force: true }, helper: { terminals: [0, 1, 2], typed: [], stuckOutput: true } },
    { request: { yes: false }, helper: { terminals: [0, 1, 2], interruptions: [{ atMs: 700, signal: 2 }] } },
    { helper: { root: false } },
    { account: { passwd: "absent" } },
    { account: { passwd: "uid-0" } },
    { account: { passwd: "shared-uid" } },
    { host: { layout: "no-cgroup2" } },
    { host: { layout: "cgroup-namespace" } },
    { host: { layout: "subset-pid" } },
  ];
  for (const condition of requests) {
    for (const temper of ["deaf", "headless", "chain", "respawning", "polite"] as const) {
      yield {
        ...condition,
        seed: seed++,
        processes: [
          { temper, place: "unit" },
          { temper, place: "stray" },
        ],
      };
    }
  }
}
