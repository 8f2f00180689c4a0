// SPDX-License-Identifier: Apache-2.0
// The closing check of every hostile case: the stop did what it said and nothing else, and the host is as good as before
// it. Bystanders are always there, and PID 1 is asked all the while.

import { appendFileSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { expect } from "vitest";

import type { LabHost } from "../../../src/tooling/lab/host.ts";
import { inProject } from "../../../src/tooling/machine.ts";
import { countersOnHost } from "../../../src/tooling/tempers/build-tempers.ts";
import { type Bystander, startBystanders, startPayloads } from "../../../src/tooling/tempers/payloads.ts";
import { accountProcesses, clearHost, running } from "./facts.ts";
import { type Report, type Row, type StopResult, stopWithReport } from "./stop.ts";

/** Who must go on through every stop. Their names sort before any number. */
export const bystanders: readonly Bystander[] = ["container", "operator", "other-user", "root-acting-for-account"];

/** The limits of a stop sum up to this without the question; a busy machine adds its own. */
const documentedLimitMs = 40_000;
const machineNoiseMs = 5_000;

const initAnswers = "/run/lab/init-answers";
const measuredFile = inProject("build", "test", "measured.jsonl");

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

/** Does the work while PID 1 is asked five times a second. Fails when it did not answer once within 60 s. */
export async function watchingInit<T>(host: LabHost, work: () => Promise<T>): Promise<T> {
  const ask = `while :; do
    before=$(date +%s%3N); timeout 60 systemctl is-system-running >/dev/null 2>&1; code=$?
    echo "$code $(($(date +%s%3N) - before))" >>${initAnswers}; sleep 0.2
  done`;
  await host.sh(`rm -f ${initAnswers}; systemd-run --quiet --collect --unit=lab-watch-init sh -c '${ask}'`);
  try {
    return await work();
  } finally {
    const text = await host.sh(`systemctl kill -s KILL lab-watch-init.service; cat ${initAnswers} 2>/dev/null || true`);
    const answers = text
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => line.split(" ").map(Number) as [code: number, ms: number]);
    measured("PID 1 answers", { asked: answers.length, longestMs: Math.max(0, ...answers.map(([, ms]) => ms)) });
    expect(
      answers.filter(([code]) => code === 124),
      "questions that PID 1 did not answer within 60 s",
    ).toEqual([]);
  }
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
  measured("stop", { code, verdict: report.verdict, durationMs: report.durationMs, rows: report.rows.length });
  expect({ code, verdict: report.verdict, survivors: report.survivors, unknown: report.unknown }).toMatchObject({
    code: wanted,
    verdict: expected.verdict ?? verdictOf[wanted],
    ...(wanted === 0 ? { survivors: [], unknown: [] } : {}),
  });
  expect(report.exitCode).toBe(code);
  expect(report.consent).toBe(expected.consent ?? "flag");
  expect(report.durationMs).toBeLessThan(documentedLimitMs + machineNoiseMs);
  if (expected.survivors) expect(report.survivors).toMatchObject(expected.survivors);
  if (wanted === 1) expect(report.survivors.length + report.unknown.length).toBeGreaterThan(0);
  expectOutcomes(report.rows, expected.outcomes ?? {});
  expect(eventsOf(entries), "the events of the trail are the rows of the report").toEqual(eventsOfRows(report));
  expect(entries[0]?.AI_TOOLS_RESULT).toBe("requested");
  expect(entries.filter((entry) => entry.AI_TOOLS_VERDICT === report.verdict)).toHaveLength(1);
  expect(await running(host)).toEqual([...bystanders, ...(expected.running ?? [])].sort());
  if (wanted === 0 && expected.running === undefined) expect(await accountProcesses(host)).toEqual([]);
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

/**
 * The host is as good as before: PID 1 answers, the slice is neither frozen nor limited, bystanders go on, the manager is
 * back where the report says so and told of where not, and a new session starts.
 */
export async function expectAftermath(host: LabHost, report?: Pick<Report, "manager">): Promise<void> {
  const { outcome, reason } = report?.manager ?? { outcome: null, reason: null };
  const restored = outcome === "restored";
  const after = await host.sh(`timeout 60 systemctl is-system-running
    systemctl is-active user@$(id -u ai-tools).service
    ${sliceState}; true`);
  expect(after).toMatch(/^(running|degraded)\n/);
  expect(unhampered).toContain(after.split("\n").slice(2).join("\n"));
  if (restored) expect(after.split("\n")[1]).toBe("active");
  else if (outcome !== null && outcome !== "not-running") expect(reason).toBeTruthy();
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

/** Neither frozen nor limited, where there is a slice. */
const sliceState = `cd /sys/fs/cgroup/user.slice/user-$(id -u ai-tools).slice 2>/dev/null && cat cgroup.freeze cgroup.max.descendants`;
const unhampered = ["", "0\nmax\n"];

/** Notes a figure of the present test in build/test/measured.jsonl; figures are told, not asserted. */
export function measured(what: string, figures: Record<string, unknown>): void {
  mkdirSync(dirname(measuredFile), { recursive: true });
  const test = expect.getState().currentTestName;
  appendFileSync(measuredFile, `${JSON.stringify({ test, what, ...figures })}\n`);
}
