// SPDX-License-Identifier: Apache-2.0
// The closing check of every hostile case: the stop did what it said and nothing else, and the host is as good as before
// it. Bystanders are always there, and PID 1 is asked all the while.

import { expect } from "vitest";

import { limits } from "../../../src/stop/limits.ts";
import type { LabHost } from "../../../src/tooling/lab/host.ts";
import { kindOf } from "../../../src/tooling/lab/host-names.ts";
import { countersOnHost } from "../../../src/tooling/tempers/build-tempers.ts";
import type { Counter } from "../../../src/tooling/tempers/counters.ts";
import { type Bystander, startBystanders, startPayloads } from "../../../src/tooling/tempers/payloads.ts";
import { accountProcesses, clearHost, movingCounters, payloadsOf, running } from "./facts.ts";
import { measured } from "./figures.ts";
import { whichHost } from "./host.ts";
import { watchingInit } from "./init.ts";
import { type Report, type Row, type StopResult, stopWithReport } from "./stop.ts";

/** Who must go on through every stop. Their names sort before any number. */
export const bystanders: readonly Bystander[] = ["container", "operator", "other-user", "root-acting-for-account"];

/** The limits of a stop sum up to this without the question; a busy machine adds its own. */
const documentedLimitMs = 40_000;
const machineNoiseMs = 5_000;
/**
 * From the request to the verdict: grace and 10 s at the very worst. By force it is 2 s on hosts with at most 1,000 other
 * processes; a machine that many hosts share cannot promise that, so the table tells who took longer. A survivor is tried
 * for all of the 10 s: then what stands before the grace (reading, asking PID 1, table) comes on top, within its own limits.
 */
const preparationMs = limits.readingMs + limits.attributionMs + limits.tableMs;
const verdictLimitMs = { force: 10_000, worst: 20_000, survivors: 20_000 + preparationMs };
/** What an emulated processor adds to the work between the limits, which count by the clock. */
const emulationMs = kindOf(whichHost()).kind === "machine" ? 20_000 : 0;

/** How often a race is tried. */
export function repetitions(): number {
  return process.env.AI_TOOLS_FULL === "1" ? 20 : 3;
}

/** The rounds of a race, for `test.each`. */
export function rounds(): number[] {
  return Array.from({ length: repetitions() }, (_, index) => index + 1);
}

/** A host with nothing of the account on it, and all bystanders running. */
export async function freshHost(host: LabHost): Promise<void> {
  await clearHost(host);
  await startBystanders(host, bystanders);
}

/** Stops with `--json` and these options while PID 1 is asked all the time whether it answers. */
export async function stopWatched(host: LabHost, ...options: string[]): Promise<StopResult & { report: Report }> {
  return watchingInit(host, () => stopWithReport(host, ...options));
}

export interface Expected {
  /** Default 0. */
  code?: number;
  /** Default: what belongs to the code. */
  verdict?: string;
  /** The outcome of each of these units, or the outcomes that are right. */
  outcomes?: Record<string, string | string[]>;
  /** What the survivors look like; default: none with 0. */
  survivors?: object[];
  /** Default `flag`. */
  consent?: string;
  /** Payloads that go on beside the bystanders. */
  running?: string[];
  /** Why a stop by force, after which nothing is left, may take as long as any other until its verdict. */
  slow?: string;
}

const verdictOf: Record<number, string> = { 0: "stopped", 1: "incomplete", 4: "declined" };

/**
 * Code, report and trail agree with each other and with what the kernel shows: with 0 nothing of the account is left;
 * with 1 the survivors are named. Bystanders go on. The run kept the documented limit.
 */
export async function expectStopped(
  host: LabHost,
  result: StopResult & { report: Report },
  expected: Expected = {},
): Promise<void> {
  const { report, code, entries } = result;
  const wanted = expected.code ?? 0;
  expect({ code, verdict: report.verdict, survivors: report.survivors, unknown: report.unknown }).toMatchObject({
    code: wanted,
    verdict: expected.verdict ?? verdictOf[wanted],
    ...(wanted === 0 ? { survivors: [], unknown: [] } : {}),
  });
  expect(report.exitCode).toBe(code);
  expect(report.consent).toBe(expected.consent ?? "flag");
  expectInTime(result, expected.slow);
  if (expected.survivors) expect(report.survivors).toMatchObject(expected.survivors);
  if (wanted === 1) expect(report.survivors.length + report.unknown.length).toBeGreaterThan(0);
  expectOutcomes(report.rows, expected.outcomes ?? {});
  expect(eventsOf(entries), "the events of the trail are the rows of the report").toEqual(eventsOfRows(report));
  expect(entries[0]?.AI_TOOLS_RESULT).toBe("requested");
  expect(entries.filter((entry) => entry.AI_TOOLS_VERDICT === report.verdict)).toHaveLength(1);
  const moving = await movingCounters(host);
  expect(payloadsOf(moving)).toEqual([...bystanders, ...(expected.running ?? [])].sort());
  expect(toldBystanders(moving), "bystanders that got a SIGTERM").toEqual([]);
  if (wanted === 0 && expected.running === undefined) expect(await accountProcesses(host)).toEqual([]);
}

/** The counters of bystanders that were told to end: nobody may be who is none of the account's. */
export function toldBystanders(counters: readonly Counter[]): Counter[] {
  return counters.filter(({ payload, terms }) => terms > 0 && (bystanders as readonly string[]).includes(payload));
}

/** The whole run and the part of it that counts, up to its first verdict, kept their limits. */
function expectInTime({ code, report, entries }: StopResult & { report: Report }, slow?: string): void {
  const { verdict, durationMs, force, rows } = report;
  const toVerdictMs = Number(entries.find((entry) => "AI_TOOLS_VERDICT" in entry)?.AI_TOOLS_DURATION_MS);
  measured("stop", { code, verdict, force, toVerdictMs, durationMs, rows: rows.length, ...(slow ? { slow } : {}) });
  const ended = force && slow === undefined ? verdictLimitMs.force : verdictLimitMs.worst;
  const limitMs = code === 0 ? ended : verdictLimitMs.survivors - (force ? limits.graceMs : 0);
  expect(toVerdictMs, "from request to verdict, in milliseconds").toBeLessThan(limitMs + emulationMs);
  expect(durationMs).toBeLessThan(documentedLimitMs + machineNoiseMs + emulationMs);
}

function expectOutcomes(rows: Row[], outcomes: Record<string, string | string[]>): void {
  for (const [unit, allowed] of Object.entries(outcomes)) {
    const found = rows.filter((row) => row.unit === unit).map((row) => row.outcome);
    expect(found, `rows of ${unit} among ${JSON.stringify(rows)}`).toHaveLength(1);
    expect([allowed].flat(), `outcome of ${unit}`).toContain(found[0]);
  }
}

/** Results that tell of one row each. */
const rowResults = ["terminated", "killed", "alive", "reappeared", "stray-ended", "stray-alive"];

function eventsOf(entries: StopResult["entries"]): string[] {
  return entries
    .filter((entry) => rowResults.includes(entry.AI_TOOLS_RESULT ?? ""))
    .map((entry) => `${entry.AI_TOOLS_RESULT} ${entry.AI_TOOLS_UNIT}`)
    .sort();
}

/** The first hundred rows have an event each. */
function eventsOfRows({ rows }: Report): string[] {
  const stray: Record<string, string> = { terminated: "stray-ended", killed: "stray-ended", alive: "stray-alive" };
  return rows
    .slice(0, 100)
    .map(({ unit, kind, outcome }) => `${(kind === "stray" && stray[outcome ?? ""]) || outcome} ${unit}`)
    .sort();
}

export interface ExpectedAftermath {
  /** The manager's outcome; default: `restored` where a lingering one ran before a stop that ended with 0. */
  manager?: string;
  /** Why the manager may be late here, which is then told as `not-restored` for lack of an answer in time. */
  managerMayBeLate?: string;
}

/**
 * The host is as good as before: PID 1 answers, the slice is neither frozen nor limited, bystanders go on, the manager is
 * back or it is told why not, and a new session starts.
 */
export async function expectAftermath(
  host: LabHost,
  report?: Pick<Report, "manager" | "lingered" | "exitCode">,
  expected: ExpectedAftermath = {},
): Promise<void> {
  if (report) expectManager(report, expected);
  const restored = report?.manager.outcome === "restored";
  const after = await host.sh(`timeout 60 systemctl is-system-running
    systemctl is-active user@$(id -u ai-tools).service
    ${sliceState}; true`);
  expect(after).toMatch(/^(running|degraded)\n/);
  expect(unhampered).toContain(after.split("\n").slice(2).join("\n"));
  if (restored) expect(after.split("\n")[1]).toBe("active");
  const names = restored ? ["999901", "999902"] : ["999901"];
  await startPayloads(host, [
    { name: "999901", temper: "polite", place: "session" },
    ...(restored ? [{ name: "999902", temper: "polite", place: "own-manager" } as const] : []),
  ]);
  expect(await running(host)).toEqual([...bystanders, ...names].sort());
  const later = await host.sh(`${sliceState}
    systemctl kill -s KILL ai-tools-claude-code-999901.service; rm -f ${countersOnHost}/99990?`);
  expect(unhampered).toContain(later);
}

function expectManager(
  { manager, lingered, exitCode }: Pick<Report, "manager" | "lingered" | "exitCode">,
  { manager: outcome, managerMayBeLate }: ExpectedAftermath,
): void {
  const wanted = outcome ?? (lingered && exitCode === 0 ? "restored" : undefined);
  if (manager.outcome === "not-restored") {
    expect(manager).toMatchObject({ reason: expect.stringMatching(/./), mend: expect.stringMatching(/./) });
    if (managerMayBeLate !== undefined && /no answer in time/.test(manager.reason ?? "")) return;
  }
  if (wanted !== undefined) expect(manager).toMatchObject({ outcome: wanted });
}

/** Neither frozen nor limited, where there is a slice. */
const sliceState = `cd /sys/fs/cgroup/user.slice/user-$(id -u ai-tools).slice 2>/dev/null && cat cgroup.freeze cgroup.max.descendants`;
const unhampered = ["", "0\nmax\n"];

export { measured, watchingInit };
