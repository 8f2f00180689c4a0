// SPDX-License-Identifier: Apache-2.0
// What a drill saw, and the verdict on it: a function of the evidence alone, so that every way to fail can be tried
// without a host.

import { movedSince, ticksWhileAlive } from "../tempers/counters.ts";
import type { Bystander, Payload } from "../tempers/payloads.ts";
import type { Look, SeenProcess, TrailEntry } from "./observer.ts";
import { bystanderPlace, type Watched } from "./watch.ts";

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
  /** Who was alive all through the stop. */
  watched: Watched;
  /** Two looks after the stop, `stillnessMs` apart. */
  after: [Look, Look];
  /** The entries that the stop added to the trail, in each sink. */
  trail: { log: TrailEntry[]; journal: TrailEntry[] };
}

/** One promise of a drill, in a sentence. */
export interface Check {
  says: string;
  /** What was seen, in a few words. */
  seen: string;
  /** Why it does not hold; empty when it does. */
  problems: string[];
}

/** Everything that a drill has to show, in the order of its events. */
export function checksOf(evidence: Evidence): Check[] {
  const { payloads, bystanders, dryRun, stop, watched, after, trail } = evidence;
  const check = (says: string, seen: string, problems: string[]): Check => ({ says, seen, problems });
  return [
    check(
      "Every session and every bystander ran before the stop",
      `${payloads.length} sessions and ${bystanders.length} bystanders: their counters moved`,
      problemsBefore(evidence),
    ),
    check(
      "A dry run touched nothing",
      `exit code ${dryRun.code}, and every counter went on`,
      problemsOfDryRun(evidence),
    ),
    check(
      "The stop ended with code 0",
      `exit code ${stop.code} after ${stop.seconds.toFixed(1)} s`,
      stop.code === 0 ? [] : [`the stop ended with ${stop.code}`],
    ),
    check(
      "Nothing of the account runs after the stop, but for its new manager",
      `no process in /proc, none in the slice's cgroups, no counter moved within ${stillnessMs / 1_000} s`,
      problemsOfAccount(evidence),
    ),
    check(
      "Nobody of the account was alive when the stop said so, or at any time after",
      `${watched.counts.length} looks from before the request to the end`,
      problemsOfWatch(evidence),
    ),
    check(
      "Everybody else went on",
      `${bystanders.length} bystanders: ${bystanders.join(", ")}`,
      problemsOfBystanders(evidence),
    ),
    check("The account's manager is back, and is a new one", after[1].manager, problemsOfManager(evidence)),
    check(
      "The trail tells the whole stop, in the log and in the journal",
      `${trail.log.length} and ${trail.journal.length} entries, each with ${stop.caller} as the caller`,
      problemsOfTrail(evidence),
    ),
  ];
}

/** Every reason why this drill failed, in the order of its events; none means that it passed. */
export function problemsOf(evidence: Evidence): string[] {
  return checksOf(evidence).flatMap(({ problems }) => problems);
}

/** The cgroup in which each payload ran before the stop, by its name. */
export function placesOf({ payloads, before }: Evidence): Map<string, string> {
  const cgroups = new Map(before[1].processes.map(({ pid, cgroup }) => [pid, cgroup]));
  const places = new Map<string, string>();
  for (const { name } of payloads) {
    const own = before[1].counters.filter(({ payload }) => payload === name).map(({ pid }) => cgroups.get(pid));
    const cgroup = own.find((place) => place !== undefined);
    if (cgroup !== undefined) places.set(name, cgroup);
  }
  return places;
}

/** When the trail has an event of this kind, by the host's wall clock. */
export function timeOf({ trail }: Evidence, ...results: string[]): number | undefined {
  const time = trail.log.find((entry) => results.includes(entry.AI_TOOLS_RESULT ?? ""))?.time;
  return time === undefined ? undefined : Date.parse(time);
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

/** The watcher's looks against the moments that the trail names. */
function problemsOfWatch(evidence: Evidence): string[] {
  const { counts, failure } = evidence.watched;
  const requested = timeOf(evidence, "requested") ?? Number.NEGATIVE_INFINITY;
  const verdict = timeOf(evidence, "stopped") ?? Number.POSITIVE_INFINITY;
  const problems = failure === "" ? [] : [`the watcher of the stop ended too early: ${failure}`];
  const last = counts.at(-1);
  if (last === undefined || last.atMs <= verdict) problems.push("nobody watched the stop to its end");
  const places = placesOf(evidence);
  const before = counts.findLast(({ atMs }) => atMs <= requested);
  for (const { name } of evidence.payloads) {
    if (!((before?.alive[places.get(name) ?? ""] ?? 0) > 0))
      problems.push(`${name} was not counted before the request`);
  }
  const manager = managerPlace(evidence.uid).slice(0, -1);
  const excused = (cgroup: string) => cgroup.startsWith(manager) || cgroup.startsWith(bystanderPlace);
  const late = counts.find(
    ({ atMs, alive }) =>
      atMs > verdict && Object.keys(alive).some((place) => !excused(place) && (alive[place] ?? 0) > 0),
  );
  for (const [cgroup, count] of Object.entries(late?.alive ?? {})) {
    if (count > 0 && !excused(cgroup))
      problems.push(`${count} alive in ${cgroup} after the stop said that it was done`);
  }
  const others = Object.keys(counts[0]?.alive ?? {}).filter((cgroup) => cgroup.startsWith(bystanderPlace));
  for (const cgroup of others) {
    if (counts.some(({ alive }) => !((alive[cgroup] ?? 0) > 0)))
      problems.push(`nobody was alive in ${cgroup} at some time`);
  }
  return problems;
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
  const lookAlikes = before[1].processes.filter((process) => process.cgroup.startsWith(bystanderPlace));
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
