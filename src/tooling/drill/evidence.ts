// SPDX-License-Identifier: Apache-2.0
// What a drill saw, and the verdict on it: a function of the evidence alone, so that every way to fail can be tried
// without a host.

import { movedSince, ticksWhileAlive } from "../tempers/counters.ts";
import type { Bystander, Payload } from "../tempers/payloads.ts";
import type { Look, SeenProcess, TrailEntry } from "./observer.ts";

/** How long no counter of the account may move after the stop, in milliseconds. */
export const stillnessMs = 2_000;

export interface Evidence {
  uid: number;
  payloads: Payload[];
  bystanders: Bystander[];
  /** Two looks before the stop, with everything running. */
  before: [Look, Look];
  dryRun: { code: number; output: string };
  /** One look after the dry run, which must have changed nothing. */
  afterDryRun: Look;
  /** The stop, as the operator saw it on the terminal. */
  stop: { caller: string; code: number; screen: string; seconds: number };
  /** Two looks after the stop, `stillnessMs` apart. */
  after: [Look, Look];
  /** The entries that the stop added to the trail, in each sink. */
  trail: { log: TrailEntry[]; journal: TrailEntry[] };
}

/** Every reason why this drill failed, in the order of its events; none means that it passed. */
export function problemsOf(evidence: Evidence): string[] {
  return [
    ...problemsBefore(evidence),
    ...problemsOfDryRun(evidence),
    ...(evidence.stop.code === 0 ? [] : [`the stop ended with ${evidence.stop.code}`]),
    ...problemsOfAccount(evidence),
    ...problemsOfBystanders(evidence),
    ...problemsOfManager(evidence),
    ...problemsOfTrail(evidence),
  ];
}

/** A drill whose payloads did not run proves nothing. */
function problemsBefore({ payloads, bystanders, before, uid }: Evidence): string[] {
  const moving = new Set(movedSince(before[0].counters, before[1].counters).map((counter) => counter.payload));
  const counted = new Set(before[1].counters.filter((counter) => counter.ticks > 0).map((counter) => counter.payload));
  const idle = payloads
    .filter(({ name, temper }) => !(ticksWhileAlive(temper) ? moving : counted).has(name))
    .map(({ name }) => name);
  const problems = [...idle, ...bystanders.filter((name) => !moving.has(name))].map(
    (name) => `${name} did not run before the stop`,
  );
  if (before[1].processes.length < payloads.length)
    problems.push(`/proc showed fewer processes of uid ${uid} than payloads before the stop`);
  if (before[1].slicePopulated !== true) problems.push("the slice was not populated before the stop");
  return problems;
}

function problemsOfDryRun({ dryRun, before, afterDryRun, payloads }: Evidence): string[] {
  const problems = dryRun.code === 0 ? [] : [`the dry run ended with ${dryRun.code}`];
  const moving = new Set(movedSince(before[1].counters, afterDryRun.counters).map((counter) => counter.payload));
  for (const { name, temper } of payloads) {
    if (ticksWhileAlive(temper) && !moving.has(name)) problems.push(`the dry run ended ${name}`);
  }
  return problems;
}

function problemsOfAccount(evidence: Evidence): string[] {
  const { payloads, after } = evidence;
  const names = new Set(payloads.map(({ name }) => name));
  const moved = movedSince(after[0].counters, after[1].counters).filter((counter) => names.has(counter.payload));
  const problems = moved.map(
    (counter) => `${counter.payload} still runs after the stop (its counter ${counter.slot} moves)`,
  );
  const managers = managerPlace(evidence.uid);
  for (const process of accountProcesses(evidence, after[1])) {
    if (!process.cgroup.startsWith(managers)) problems.push(`/proc shows process ${describe(process)} after the stop`);
  }
  for (const { pid, cgroup } of after[1].sliceMembers) {
    if (!cgroup.startsWith(managers)) problems.push(`cgroup ${cgroup} holds process ${pid} after the stop`);
  }
  return problems;
}

function problemsOfBystanders({ bystanders, after, before }: Evidence): string[] {
  const moving = movedSince(after[0].counters, after[1].counters);
  return bystanders
    .filter((name) => !moving.some((counter) => counter.payload === name && wasThere(before[1], name, counter.pid)))
    .map((name) => `the stop ended a bystander: ${name}`);
}

function problemsOfManager({ uid, after, before }: Evidence): string[] {
  if (after[1].manager !== "active") return [`user@${uid}.service is ${after[1].manager} after the stop`];
  const members = (seen: Look) =>
    seen.sliceMembers.filter(({ cgroup }) => cgroup.startsWith(managerPlace(uid))).map(({ pid }) => pid);
  const old = new Set(members(before[1]));
  return members(after[1])
    .filter((pid) => old.has(pid))
    .map((pid) => `process ${pid} of the account's manager outlived the stop`);
}

function problemsOfTrail({ trail, stop }: Evidence): string[] {
  const problems: string[] = [];
  for (const sink of ["log", "journal"] as const) {
    const entries = trail[sink];
    const results = entries.map((entry) => entry.AI_TOOLS_RESULT ?? "");
    for (const needed of ["requested", "stopped"]) {
      if (!results.includes(needed)) problems.push(`the ${sink} has no entry "${needed}"`);
    }
    if (results.includes("stopped") && results.indexOf("requested") > results.indexOf("stopped"))
      problems.push(`the ${sink} is out of order`);
    const strangers = entries.filter((entry) => entry.AI_TOOLS_CALLER !== stop.caller).length;
    if (strangers > 0) problems.push(`${strangers} entries of the ${sink} do not name ${stop.caller} as the caller`);
  }
  if (eventsOf(trail.log) !== eventsOf(trail.journal)) problems.push("log and journal do not tell the same");
  return problems;
}

/** The results of a run in one line; the sinks may order events of one moment differently. */
function eventsOf(entries: TrailEntry[]): string {
  return entries
    .map((entry) => `${entry.AI_TOOLS_RESULT} ${entry.AI_TOOLS_UNIT ?? ""}`)
    .sort()
    .join("\n");
}

/** What lives with the account's number, without the bystanders, which had it before the stop, and the dead. */
function accountProcesses({ before }: Evidence, seen: Look): SeenProcess[] {
  const lookAlikes = before[1].processes.filter((process) => process.cgroup.startsWith("/system.slice/lab-bystander-"));
  const known = new Set(lookAlikes.map(({ pid }) => pid));
  return seen.processes.filter(({ pid, state, threads }) => !known.has(pid) && !(state === "Z" && threads === 1));
}

function wasThere(seen: Look, payload: string, pid: number): boolean {
  return seen.counters.some((counter) => counter.payload === payload && counter.pid === pid);
}

function managerPlace(uid: number): string {
  return `/user.slice/user-${uid}.slice/user@${uid}.service/`;
}

function describe({ pid, name, state, cgroup }: SeenProcess): string {
  return `${pid} (${name}, state ${state}) in ${cgroup}`;
}
