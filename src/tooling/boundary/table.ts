// SPDX-License-Identifier: Apache-2.0
// The outcomes of the tests on real hosts as a table of host × case. A case is a test's name path; the rounds of a race
// are one case that was tried several times. Nothing here runs anything.

import type { Outcome } from "../test/report.ts";

/** One case on one kind of host. */
export interface Cell {
  /** How many rounds came out so. */
  passed: number;
  failed: number;
  skipped: number;
  /** Of all rounds together. */
  durationMs: number;
  /** Why each round failed that did. */
  messages: string[];
  /** The longest stop by force that ended everything, from request to verdict; absent where there was none. */
  forcedMs?: number;
}

export interface Case {
  /** `boundary`, `worst-day`, or what failed around them. */
  part: string;
  /** The test file: a promise. */
  promise: string;
  /** Groups and title, without the file and the round. */
  name: string;
  /** Where the hostile process lives, as far as the name tells. */
  kind: string;
  /** By name of the kind of host. */
  hosts: Record<string, Cell>;
}

/** A figure that a test told of itself. */
export interface Figure {
  host: string;
  /** The test file, as in `Case.promise`. */
  file?: string;
  /** The test's name path without its file. */
  test?: string;
  what: string;
  [name: string]: unknown;
}

export interface Counts {
  cases: number;
  kinds: number;
  hosts: number;
  /** The most rounds of one case on one kind of host. */
  repetitions: number;
  /** Tests that ran, over all cases, hosts and rounds. */
  passed: number;
  failed: number;
  skipped: number;
  durationMs: number;
  /** Cases and hosts with a stop by force, and how many of them took longer than `forcedWishMs`. */
  forced: number;
  forcedLate: number;
}

export interface Results {
  /** When the table was made, ISO 8601. */
  made: string;
  hosts: string[];
  /** Races were tried twenty times. */
  full: boolean;
  counts: Counts;
  cases: Case[];
  figures: Figure[];
}

/**
 * A stop by force is to have its verdict within this on a host with at most 1,000 other processes. The lab's hosts share a
 * machine, so longer ones are marked, and the tests assert a limit of their own (tests/boundary/kit/aftermath.ts).
 */
export const forcedWishMs = 2_000;

/** Places in which the same temper is tried, by the words that names use for them; the first that fits. */
const kinds: readonly (readonly [kind: string, words: RegExp])[] = [
  ["account's manager", /\bown[- ]manager(-always)?\b|\bsession-moved\b|account's (own )?manager/],
  ["stray", /\b(stray|strays|exec|system-unit)\b|outside (the )?slice/],
  ["unit of PID 1", /\b(session|unit of PID 1|in the slice|inside the slice)\b/],
];
/** The column of what failed before any host was there. */
const noHost = "no host";
const round = /,? ?[([]?\b(?:round|try|time) #?\d+(?: of \d+)?[)\]]?/i;

/** Gathers the outcomes of all hosts. */
export function resultsOf(outcomes: Outcome[], figures: Figure[], run: { hosts: string[]; full: boolean }): Results {
  const cases = new Map<string, Case>();
  for (const outcome of outcomes) {
    const one = caseOf(outcome);
    const known = cases.get(`${one.promise} > ${one.name}`) ?? one;
    cases.set(`${one.promise} > ${one.name}`, known);
    add(known, outcome);
  }
  const all = [...cases.values()];
  for (const figure of figures) addForced(cases, figure);
  const hosts = [...run.hosts, ...(all.some((one) => noHost in one.hosts) ? [noHost] : [])];
  return { made: new Date().toISOString(), hosts, full: run.full, counts: countsOf(all), cases: all, figures };
}

function caseOf({ stage, name, host }: Outcome): Case {
  const bare = host === undefined ? name : name.replace(` [${host}]`, "");
  const [promise = "", ...path] = bare.split(" > ");
  const own = withoutRound(path.join(" > "));
  const kind = kinds.find(([, words]) => words.test(own))?.[0] ?? "";
  return { part: stage, promise, name: own || "(the file itself)", kind, hosts: {} };
}

function withoutRound(path: string): string {
  return path.replace(round, "").trim().replace(/ >$/, "");
}

/** What a stop told of itself belongs to its case. One that left somebody alive ran to its limits on purpose. */
function addForced(cases: ReadonlyMap<string, Case>, { host, file, test = "", what, ...told }: Figure): void {
  const cell = cases.get(`${file} > ${withoutRound(test)}`)?.hosts[host];
  if (cell === undefined || what !== "stop" || told.force !== true || told.code !== 0) return;
  cell.forcedMs = Math.max(cell.forcedMs ?? 0, Number(told.toVerdictMs));
}

function add(one: Case, { host = noHost, result, durationMs = 0, message }: Outcome): void {
  const cell = one.hosts[host] ?? { passed: 0, failed: 0, skipped: 0, durationMs: 0, messages: [] };
  one.hosts[host] = cell;
  cell[result] += 1;
  cell.durationMs += durationMs;
  if (result === "failed") cell.messages.push(message ?? "");
}

function countsOf(cases: Case[]): Counts {
  const cells = cases.flatMap((one) => Object.values(one.hosts));
  const sum = (of: (cell: Cell) => number) => cells.reduce((total, cell) => total + of(cell), 0);
  const forced = cells.filter(({ forcedMs }) => forcedMs !== undefined);
  return {
    cases: cases.length,
    kinds: new Set(cases.map(({ kind }) => kind).filter((kind) => kind !== "")).size,
    hosts: new Set(cases.flatMap(({ hosts }) => Object.keys(hosts).filter((host) => host !== noHost))).size,
    repetitions: Math.max(0, ...cells.map(({ passed, failed, skipped }) => passed + failed + skipped)),
    passed: sum(({ passed }) => passed),
    failed: sum(({ failed }) => failed),
    skipped: sum(({ skipped }) => skipped),
    durationMs: sum(({ durationMs }) => durationMs),
    forced: forced.length,
    forcedLate: forced.filter(isLate).length,
  };
}

/** The table for a terminal: two columns for each kind of host, then the case; cases that did not pass are said in words. */
export function tableLines({ cases, hosts, counts }: Results): string[] {
  const columns = hosts.map((host) => `${host.padEnd(20)}${"by force".padEnd(10)}`).join("");
  const lines = [`${columns}case`];
  let promise = "";
  for (const one of cases) {
    if (one.promise !== promise) lines.push(`${" ".repeat(columns.length)}# ${one.promise}`);
    promise = one.promise;
    const cells = hosts.map((host) => [one.hosts[host], inWords(one.hosts[host]).padEnd(20)] as const);
    lines.push(`${cells.map(([cell, words]) => `${words}${forcedInWords(cell).padEnd(10)}`).join("")}${one.name}`);
  }
  lines.push(countsInWords(counts));
  return lines;
}

/** One cell in a few characters. */
export function inWords(cell: Cell | undefined): string {
  if (cell === undefined) return "-";
  const seconds = `${(cell.durationMs / 1000).toFixed(1)} s`;
  const tried = cell.passed + cell.failed + cell.skipped;
  const times = tried > 1 ? ` ${cell.passed}/${tried}` : "";
  if (cell.failed > 0) return `FAILED${times} ${seconds}`;
  return cell.passed === 0 ? "skipped" : `ok${times} ${seconds}`;
}

/** The longest stop by force of a cell, and `!` where it took longer than it should. */
export function forcedInWords(cell: Cell | undefined): string {
  if (cell?.forcedMs === undefined) return "";
  return `${(cell.forcedMs / 1000).toFixed(1)} s${isLate(cell) ? " !" : ""}`;
}

/** Whether a stop by force took longer than it should on a host with at most 1,000 other processes. */
export function isLate(cell: Cell | undefined): boolean {
  return (cell?.forcedMs ?? 0) >= forcedWishMs;
}

/** The counts in one line. */
export function countsInWords(counts: Counts): string {
  const { cases, kinds: places, hosts, repetitions, passed, failed, skipped, durationMs, forced, forcedLate } = counts;
  const size = `${cases} cases × ${places} kinds of place × ${hosts} kinds of host × up to ${repetitions} repetitions`;
  const late = forced === 0 ? "" : `; by force in ${forced}, ${forcedLate} of them over ${forcedWishMs / 1_000} s`;
  return `${size}: ${passed} passed, ${failed} failed, ${skipped} skipped, ${(durationMs / 60_000).toFixed(1)} min of tests${late}`;
}
