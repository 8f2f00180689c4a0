// SPDX-License-Identifier: Apache-2.0
// The evidence of a drill in the form that every drill of this project has, on a lab host as on a real one; its fields are
// explained in docs/drill.md. A function of what was seen, but for the sentences about tempers, which stand in
// their sources.

import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { inProject } from "../machine.ts";
import type { Bystander, Place } from "../tempers/payloads.ts";
import { checksOf, type Evidence, placesOf, problemsOf, timeOf } from "./evidence.ts";
import { bystanderPlace, type Count, longestGapMs } from "./watch.ts";

/** See docs/drill.md. */
export interface DrillRecord {
  format: "ai-tools-drill";
  version: 1;
  verdict: "passed" | "failed";
  problems: string[];
  startedAt: string;
  endedAt: string;
  zeroAt: string;
  by: string;
  command: string;
  operator: string;
  account: string;
  uid: number;
  host: Record<string, string>;
  sessions: RecordedSession[];
  looks: { how: string; count: number; longestGapMs: number };
  marks: Mark[];
  stop: { exitCode: number; durationMs: number; output: string; lastStop: unknown };
  checks: { verdict: "PASS" | "FAIL"; says: string; seen: string }[];
  trail: string[];
  samples: Sample[];
}

export interface RecordedSession {
  name: string;
  temper: string;
  says: string;
  place: "session" | "own-manager" | "stray" | "other" | "plumbing" | "bystander";
  unit: string;
  cgroup: string;
  project: string;
  /** The helper's word, from the trail. */
  outcome: string;
}

export interface Mark {
  name: string;
  atMs: number;
  by: string;
}

export interface Sample {
  atMs: number;
  alive: (number | null)[];
}

/** What a record holds besides what the verdict is made of. Moments are wall clocks in milliseconds. */
export interface Circumstances {
  startedMs: number;
  endedMs: number;
  /** Absent where the host's clock is another one. */
  answeredMs?: number;
  command: string;
  host: Record<string, string>;
  lastStop: unknown;
}

/** One line of the picture: a session, and which cgroups are counted in it. */
interface Lane {
  session: RecordedSession;
  holds: (cgroup: string) => boolean;
}

/** The drill's record. */
export async function recordOf(evidence: Evidence, circumstances: Circumstances): Promise<DrillRecord> {
  const { uid, stop, watched, trail } = evidence;
  const { startedMs, endedMs, command, host, lastStop } = circumstances;
  const zeroMs = timeOf(evidence, "requested") ?? startedMs;
  const lanes = await lanesOf(evidence);
  const samples = watched.counts.map((count) => sampleOf(count, lanes, zeroMs));
  const problems = problemsOf(evidence);
  const iso = (ms: number) => new Date(ms).toISOString();
  return {
    format: "ai-tools-drill",
    version: 1,
    verdict: problems.length === 0 ? "passed" : "failed",
    problems,
    startedAt: iso(startedMs),
    endedAt: iso(endedMs),
    zeroAt: iso(zeroMs),
    by: "npm start",
    command,
    operator: stop.caller,
    account: "ai-tools",
    uid,
    host,
    sessions: lanes.map(({ session }) => session),
    looks: {
      how: "A program on the host that shares no code with the product counted the living processes in /proc.",
      count: samples.length,
      longestGapMs: longestGapMs(watched.counts),
    },
    marks: marksOf(evidence, circumstances, lanes, samples, zeroMs),
    stop: { exitCode: stop.code, durationMs: Math.round(stop.seconds * 1_000), output: stop.screen, lastStop },
    checks: checksOf(evidence).map(({ says, seen, problems: own }) =>
      own.length === 0 ? { verdict: "PASS", says, seen } : { verdict: "FAIL", says, seen: own.join("; ") },
    ),
    trail: trail.log.map((entry) => JSON.stringify(entry)),
    samples: thinned(samples),
  };
}

async function lanesOf(evidence: Evidence): Promise<Lane[]> {
  const places = placesOf(evidence);
  const lanes: Lane[] = [];
  for (const { name, temper, place, unit } of evidence.payloads) {
    const cgroup = places.get(name) ?? "";
    const entry = evidence.trail.log.find((one) => one.AI_TOOLS_CGROUP === cgroup && "AI_TOOLS_PASS" in one);
    const session: RecordedSession = {
      ...{ name, temper, says: await temperInWords(temper), place: kindOf(place), cgroup },
      unit: unit ?? (cgroup.endsWith(".service") ? basename(cgroup) : ""),
      project: entry?.AI_TOOLS_WORKING_DIRECTORY ?? "",
      outcome: outcomeIn(entry),
    };
    lanes.push({ session, holds: (other) => other === cgroup });
  }
  const manager = `/user.slice/user-${evidence.uid}.slice/user@${evidence.uid}.service`;
  const isPayload = (cgroup: string) => [...places.values()].includes(cgroup);
  const isPlumbing = (cgroup: string) => !isPayload(cgroup) && `${cgroup}/`.startsWith(`${manager}/`);
  const isOther = (cgroup: string) => !isPayload(cgroup) && !isPlumbing(cgroup) && !cgroup.startsWith(bystanderPlace);
  const others = evidence.watched.counts.some(({ alive }) => Object.keys(alive).some((at) => isOther(at) && alive[at]));
  if (others) lanes.push({ session: bare("others", "other", "in no place that the drill knows"), holds: isOther });
  const plumbing = bare("user manager", "plumbing", "systemd and what it runs for the account");
  lanes.push({ session: { ...plumbing, cgroup: manager }, holds: isPlumbing });
  for (const name of evidence.bystanders) {
    const cgroup = `${bystanderPlace}${name}.service`;
    lanes.push({
      session: { ...bare(bystanderNames[name], "bystander", bystandersInWords[name]), unit: basename(cgroup), cgroup },
      holds: (other) => other === cgroup,
    });
  }
  return lanes;
}

function bare(name: string, place: RecordedSession["place"], says: string): RecordedSession {
  return { name, temper: "", says, place, unit: "", cgroup: "", project: "", outcome: "" };
}

const bystanderNames: Record<Bystander, string> = {
  operator: "the operator's own",
  "other-user": "another user's",
  "root-acting-for-account": "a root daemon",
  container: "a container",
};

const bystandersInWords: Record<Bystander, string> = {
  operator: "a program of the one who stops",
  "other-user": "a program of somebody who has nothing to do with it",
  "root-acting-for-account": "works with the account's number for the moment",
  container: "has processes with the same number inside",
};

function kindOf(place: Place): RecordedSession["place"] {
  if (place.startsWith("own-manager") || place === "session-moved") return "own-manager";
  return place === "exec" || place.startsWith("system-") ? "stray" : "session";
}

function outcomeIn(entry: Record<string, string> | undefined): string {
  if (entry === undefined) return "";
  const { AI_TOOLS_RESULT: result = "", AI_TOOLS_PASS: pass } = entry;
  if (result === "stray-alive") return "alive";
  return result === "stray-ended" ? (pass === "sigkill" ? "killed" : "terminated") : result;
}

/** The sentence at the head of a temper's source. */
async function temperInWords(temper: string): Promise<string> {
  const lines = (await readFile(inProject("src", "tooling", "tempers", `${temper}.c`), "utf8")).split("\n").slice(1);
  const end = lines.findIndex((line) => !line.startsWith("//"));
  const text = lines
    .slice(0, end)
    .map((line) => line.slice(2).trim())
    .join(" ");
  return text.replace(/^[\w -]+: /, "").replace(/\.( .*)?$/, "");
}

function sampleOf({ atMs, alive }: Count, lanes: Lane[], zeroMs: number): Sample {
  const countOf = ({ holds }: Lane) =>
    Object.entries(alive).reduce((sum, [cgroup, count]) => sum + (holds(cgroup) ? count : 0), 0);
  return { atMs: atMs - zeroMs, alive: lanes.map(countOf) };
}

/** Without the looks that saw the same as the look before and the look after. */
function thinned(samples: Sample[]): Sample[] {
  const same = (one: Sample | undefined, other: Sample) => one?.alive.join() === other.alive.join();
  return samples.filter((sample, index) => !same(samples[index - 1], sample) || !same(samples[index + 1], sample));
}

function marksOf(
  evidence: Evidence,
  { answeredMs }: Circumstances,
  lanes: Lane[],
  samples: Sample[],
  zeroMs: number,
): Mark[] {
  const { counts } = evidence.watched;
  const [trail, watcher, drill] = ["the trail", "the watcher", "the drill"];
  const at = (wanted: (count: Count, index: number) => boolean) =>
    counts.find((count, index) => count.atMs > zeroMs && wanted(count, index))?.atMs;
  const told = counts.findLast(({ atMs }) => atMs <= zeroMs)?.terms ?? 0;
  const deaf = lanes
    .map(({ session }, index) => (session.temper === "deaf" ? index : -1))
    .filter((index) => index >= 0);
  const ends = lanes.map(({ session }, index) => (/plumbing|bystander/.test(session.place) ? -1 : index));
  const living = (index: number) => ends.some((lane) => lane >= 0 && samples[index]?.alive[lane] !== 0);
  const lastLiving = samples.findLastIndex((_, index) => living(index));
  const found: [string, number | undefined, string][] = [
    ["request", timeOf(evidence, "requested"), trail],
    ["answer", answeredMs, drill],
    ["sigterm", at(({ terms }) => terms > told), "the first session that got it"],
    ["kill", at((_, index) => deaf.some((lane) => samples[index]?.alive[lane] === 0)), watcher],
    ["gone", counts[lastLiving + 1]?.atMs, watcher],
    ["verified", timeOf(evidence, "stopped", "incomplete", "reappeared"), trail],
    ["manager", timeOf(evidence, "manager-restored"), trail],
    ["looked", answeredMs === undefined ? undefined : evidence.after[1].atMs, drill],
  ];
  return found.flatMap(([name, ms, by]) => (ms === undefined ? [] : [{ name, atMs: ms - zeroMs, by }]));
}
