// SPDX-License-Identifier: Apache-2.0
// The plan of a simulated world: plain data that says who lives there, where, on what kind of host, with which faults, and
// what is asked of the stop. A plan and its seed tell the whole story again.

import type { AccountOptions, Place } from "./account.ts";
import type { ProgramOptions } from "./programs.ts";
import type { HelperOptions } from "./simulated-host.ts";
import type { HostOptions } from "./world.ts";

export const temperNames = [
  "obedient",
  "deaf",
  "polite",
  "slow-polite",
  "defiant",
  "stopped",
  "stuck",
  "stuck-a-while",
  "stuck-in-fuse",
  "vforking",
  "traced-by-operator",
  "traced-by-account",
  "headless",
  "headless-stuck",
  "headless-stuck-a-while",
  "headless-chain",
  "chain",
  "slow-chain",
  "hopping",
  "respawning",
  "storm",
  "keeping-a-corpse",
  "corpse-of-another",
  "setuid",
  "other-user",
  "subordinate",
  "recorded-number",
  "own-namespace",
  "own-namespace-of-root",
  "setuid-sandbox",
  "sandbox-made-root",
  "hostile-name",
] as const;

export type TemperName = (typeof temperNames)[number];

export const bystanderNames = [
  "root-acting",
  "container",
  "busy-user",
  "overlapping-range",
  "crowd",
  "unreaping-user",
] as const;

export type BystanderName = (typeof bystanderNames)[number];

export const faultNames = [
  "status-unreadable",
  "status-unreadable-while-alive",
  "bystander-unreadable",
  "status-flickers",
  "cgroup-path-unreadable",
  "stat-unreadable",
  "wchan-unreadable",
  "namespace-unreadable",
  "events-unreadable",
  "kill-file-denied",
  "kill-write-fails",
  "signals-refused",
  "nobody-held",
  "hold-flickers",
  "last-pid-unreadable",
  "list-unreadable",
  "list-slow",
  "status-slow",
  "records-unwritable",
  "uptime-unreadable",
  "identity-files-unreadable",
] as const;

export type FaultName = (typeof faultNames)[number];

export interface ProcessPlan {
  temper: TemperName;
  place: Place;
}

/** Something that happens during the stop, at a time after its beginning. */
export interface EventPlan {
  kind: "new-session" | "new-stray" | "recycled-pid" | "slice-removed";
  atMs: number;
}

export interface RequestPlan {
  dryRun: boolean;
  yes: boolean;
  force: boolean;
  json: boolean;
}

export interface WorldPlan {
  seed: number;
  processes: readonly ProcessPlan[];
  bystanders?: readonly BystanderName[];
  faults?: readonly FaultName[];
  events?: readonly EventPlan[];
  host?: Partial<HostOptions>;
  account?: Partial<AccountOptions>;
  programs?: Partial<ProgramOptions>;
  helper?: Partial<HelperOptions>;
  /** How the slice is found. */
  slice?: "ordinary" | "frozen" | "braked" | "frozen-and-braked";
  helperInside?: boolean;
  /** The account's own manager runs. */
  manager?: boolean;
  /** A second stop runs at the same time. */
  second?: boolean;
  request?: Partial<RequestPlan>;
}

export const plainRequest: RequestPlan = { dryRun: false, yes: true, force: false, json: false };

/** Places where a temper makes sense: another user's process outside the slice is a bystander, and so on. */
export function isPossible({ temper, place }: ProcessPlan): boolean {
  if (temper === "other-user") return place !== "stray";
  return true;
}

/** Whether a stop can end and prove everything in this world, so that anything but exit 0 is a fault of the stop. */
export function permitsSuccess(plan: WorldPlan): boolean {
  const host = { killFile: true, readOnlyCgroups: false, layout: "unified", ...plan.host };
  if (host.layout !== "unified" && host.layout !== "hybrid") return false;
  if (plan.account?.passwd !== undefined && plan.account.passwd !== "ordinary") return false;
  if (plan.helper?.root === false || (plan.helper?.interruptions ?? []).length > 0) return false;
  if ((plan.faults ?? []).some((fault) => !harmlessFaults.has(fault))) return false;
  if ((plan.events ?? []).some((event) => event.kind === "new-session" || event.kind === "new-stray")) return false;
  const written =
    host.killFile && !host.readOnlyCgroups && !(plan.faults ?? []).some((fault) => fault.startsWith("kill-"));
  if (plan.helperInside === true && host.readOnlyCgroups) return false;
  return plan.processes.every((process) => canBeEnded(process, plan, written));
}

const harmlessFaults = new Set<FaultName>([
  "status-unreadable-while-alive",
  "cgroup-path-unreadable",
  "stat-unreadable",
  "wchan-unreadable",
  "kill-file-denied",
  "kill-write-fails",
  "nobody-held",
  "hold-flickers",
  "records-unwritable",
  "uptime-unreadable",
]);

function canBeEnded({ temper, place }: ProcessPlan, plan: WorldPlan, written: boolean): boolean {
  const inside = place !== "stray";
  const faults = plan.faults ?? [];
  if (faults.includes("status-unreadable-while-alive")) return inside && written && endsByWriteAlone.has(temper);
  if (faults.includes("cgroup-path-unreadable") && needsItsPath.has(temper)) return false;
  if (temper === "stuck" || temper === "headless-stuck" || temper === "traced-by-operator") return false;
  if (temper === "stuck-in-fuse") return !(plan.bystanders ?? []).includes("container");
  // A storm outside the write's reach may outrun one kill after the other: alive and named is a right answer then.
  if (temper === "storm") return inside && written;
  return true;
}

const endsByWriteAlone = new Set<TemperName>([
  "obedient",
  "deaf",
  "polite",
  "stopped",
  "vforking",
  "hopping",
  "setuid",
]);
const needsItsPath = new Set<TemperName>([
  "other-user",
  "own-namespace",
  "own-namespace-of-root",
  "setuid-sandbox",
  "sandbox-made-root",
]);
