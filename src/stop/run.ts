// SPDX-License-Identifier: Apache-2.0
// One run of a stop: what every part of the story needs, its verdict, and how the verdict gets to the trail and to
// whoever only needs to know that a stop happened.

import { lastStopPath, writeLastStop } from "./announcement.ts";
import type { Scope } from "./census.ts";
import type { StopRequest } from "./grammar.ts";
import type { Host } from "./kernel.ts";
import { limits } from "./limits.ts";
import { printable } from "./printable.ts";
import type { Report, Verdict } from "./report.ts";
import type { Row } from "./rows.ts";
import type { Fields, Result, Trail } from "./trail.ts";

export interface Run {
  host: Host;
  request: StopRequest;
  scope: Scope;
  trail: Trail;
  report: Report;
  startMs: number;
  /** A progress line or an echoed key stands on the operator's terminal without a line break. */
  lineOpen: boolean;
}

/** A report of a run that has done nothing yet. */
export function emptyReport(host: Host, request: StopRequest, caller: string, uid: number): Report {
  const time = new Date(host.wallClockMs()).toISOString();
  return {
    run: `${time}-${host.pid}`,
    verdict: "refused",
    exitCode: 5,
    caller,
    uid,
    consent: "",
    force: request.force,
    dryRun: request.dryRun,
    rows: [],
    survivors: [],
    unknown: [],
    bystanders: [],
    unreaped: [],
    manager: undefined,
    mechanisms: [],
    remarks: [],
    hints: [],
    durationMs: 0,
  };
}

/**
 * Does one part of the story; an error of our own becomes a remark and `otherwise`. So no part that decides nothing can
 * end a run, and the kill is reached whatever happens before it.
 */
export async function unlessItThrows<T>(run: Run, what: string, work: () => T | Promise<T>, otherwise: T): Promise<T> {
  try {
    return await work();
  } catch (error) {
    run.report.remarks.push(`${what}: an error of our own (${printable(String(error))})`);
    return otherwise;
  }
}

/** Sets verdict, code and duration. */
export function conclude(run: Run, verdict: Verdict, exitCode: number): void {
  run.report.verdict = verdict;
  run.report.exitCode = exitCode;
  run.report.durationMs = run.host.nowMs() - run.startMs;
}

/** Rows and verdict to the trail, then the verdict to the record of the last stop. */
export async function publish(run: Run): Promise<void> {
  const { report, trail } = run;
  for (const { row, outcome, reason } of report.rows.slice(0, limits.trailRows)) {
    if (outcome === undefined) continue;
    const stray: Result = outcome === "alive" ? "stray-alive" : "stray-ended";
    const result = row.kind === "stray" ? stray : outcome;
    const how: Fields =
      outcome === "terminated"
        ? { AI_TOOLS_PASS: "sigterm" }
        : { AI_TOOLS_PASS: "sigkill", AI_TOOLS_MECHANISM: report.mechanisms.join(",") };
    trail.record(result, `${printable(row.unit)}: ${reason}`, { ...fieldsOf(row), ...how });
  }
  await publishVerdict(run);
  trail.showInJournal();
}

/** The verdict to both. Run again when something reappeared: the last one counts. */
export async function publishVerdict(run: Run): Promise<void> {
  recordVerdict(run);
  const { run: id, caller, verdict, exitCode } = run.report;
  const time = new Date(run.host.wallClockMs()).toISOString();
  const errno = await writeLastStop(run.host, { run: id, time, caller, verdict, exitCode });
  if (errno === 0) return;
  const problem = `${lastStopPath} could not be written (errno ${errno}): it does not tell of this stop`;
  run.report.remarks.push(problem);
  run.host.print("err", `ai-tools: ${problem}\n`);
}

/** What an event says of a row. */
export function fieldsOf(row: Row): Fields {
  return {
    AI_TOOLS_UNIT: printable(row.unit),
    AI_TOOLS_CGROUP: printable(row.key, 1_000),
    AI_TOOLS_WORKING_DIRECTORY: row.project.path === undefined ? "unknown" : printable(row.project.path, 1_000),
    AI_TOOLS_PROCESSES: row.processes.length,
  };
}

const results: Record<Verdict, Result> = {
  stopped: "stopped",
  "nothing-running": "stopped",
  incomplete: "incomplete",
  reappeared: "reappeared",
  interrupted: "interrupted",
  declined: "declined",
  "dry-run": "dry-run",
  refused: "refused",
};

/** The event with the verdict and the counts. */
export function recordVerdict(run: Run): void {
  const { report, trail } = run;
  const strays = report.rows.filter(({ row }) => row.kind === "stray");
  const more = report.rows.length - limits.trailRows;
  const unsaid = more > 0 ? ` (and ${more} more rows than the events above)` : "";
  trail.record(results[report.verdict], `verdict: ${report.verdict}${unsaid}`, {
    AI_TOOLS_VERDICT: report.verdict,
    AI_TOOLS_EXIT_CODE: report.exitCode,
    AI_TOOLS_ROWS: report.rows.length,
    AI_TOOLS_SURVIVORS: report.survivors.length,
    AI_TOOLS_STRAYS: strays.reduce((sum, { row }) => sum + row.processes.length, 0),
    AI_TOOLS_BYSTANDERS: report.bystanders.length,
    AI_TOOLS_DURATION_MS: Math.round(report.durationMs),
  });
}
