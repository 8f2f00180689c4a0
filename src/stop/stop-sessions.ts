// SPDX-License-Identifier: Apache-2.0
// The story of a stop, from top to bottom. Everything above the question may be wrong or late without harm; everything
// below it rests on the kernel alone. No step ends a run early because something unexpected came back.

import { announceStop, wantRestore, withdrawStop, writeLastStop } from "./announcement.ts";
import { attribute } from "./attribution.ts";
import { findCaller } from "./caller.ts";
import { type Census, type Found, type Scope, takeCensus } from "./census.ts";
import { askConsent } from "./consent.ts";
import { describeSurvivors, type Kill, killOutright, proveEmpty, terminateGracefully } from "./end-session.ts";
import type { StopRequest } from "./grammar.ts";
import { findIdentity } from "./identity.ts";
import type { Host } from "./kernel.ts";
import { leftBehind } from "./left-behind.ts";
import { limits } from "./limits.ts";
import { outcomesOf, rowsFrom, unknownOf } from "./outcomes.ts";
import { printable } from "./printable.ts";
import { manualCommand, type Report, renderJson, renderReport, renderTable, type Verdict } from "./report.ts";
import { clearAndRestore, isManagerRunning, type ManagerReturn } from "./restore-manager.ts";
import { type Row, rowsOf } from "./rows.ts";
import { findSlice, leaveSlice, thawSlice } from "./slice.ts";
import { type Fields, type Result, Trail } from "./trail.ts";

/** Exit codes; 128+n for an interruption by signal n. */
export const exitCodes = { done: 0, alive: 1, usage: 2, declined: 4, refused: 5 } as const;

/** One run: what every part of the story needs. */
interface Run {
  host: Host;
  request: StopRequest;
  scope: Scope;
  trail: Trail;
  report: Report;
  startMs: number;
  /** A progress line or an echoed key stands on the operator's terminal without a line break. */
  lineOpen: boolean;
}

/** Stops every session of the account, and says so only when the kernel does. Returns the exit code. */
export async function stopSessions(host: Host, request: StopRequest): Promise<number> {
  host.prepare();
  const startMs = host.nowMs();
  const scope = whomToStop(host);
  if (typeof scope === "string") return refuse(host, request, scope, startMs);
  const outside = leaveSlice(host, scope.slice);
  const run = begin(host, request, scope, startMs);

  let census = takeCensus(host, scope, {
    deadlineMs: host.nowMs() + limits.readingMs,
    detailsMs: limits.cgroupPathsMs,
  });
  const rows = rowsOf(scope, census);
  await unlessItThrows(run, "projects", () => attribute(host, rows));
  const tableShown = await showTable(run, rows, census);
  if (host.interruption() !== 0) return interrupted(run, "before anything was touched");
  if (request.dryRun) return end(run, "dry-run", exitCodes.done);
  if (rows.length > 0 || !census.complete) {
    const answer = await askConsent(host, request, census, tableShown);
    if (answer.kind === "declined") return end(run, "declined", exitCodes.declined);
    if (answer.kind === "interrupted") return interrupted(run, "at the question, before anything was touched");
    if (answer.asked) census = askedAgain(run, census, rows);
    run.report.consent = answer.consent;
  } else run.report.consent = request.yes ? "flag" : "no-tty";
  run.trail.add({ AI_TOOLS_CONSENT: run.report.consent });

  const entry = announceStop(host);
  const managerRan = isManagerRunning(host, scope);
  let left: Census | undefined;
  if (!request.force) {
    run.report.remarks.push(...thawSlice(host, scope.slice));
    const grace = await terminateGracefully(host, scope, census, (seconds, alive) => showProgress(run, seconds, alive));
    if (grace.interrupted !== 0) return interruptedInGrace(run, entry, managerRan);
    left = grace.left;
  }
  const kill = await killAndProve(run, outside, rows);
  run.report.remarks.push(...thawSlice(host, scope.slice));

  judge(run, rows, left, kill);
  await publish(run);
  if (managerRan) wantRestore(host);
  withdrawStop(host, entry);
  if (kill.proved) await restoreAndLookAgain(run, entry);
  return finish(run);
}

/** The account's numbers and slice, or why this helper cannot do its work at all. */
function whomToStop(host: Host): Scope | string {
  if (!host.isRoot()) return "only root can stop sessions; operators run: ai-tools --stop";
  const identity = findIdentity(host);
  if (typeof identity === "string") return identity;
  const slice = findSlice(host, identity.uid);
  return typeof slice === "string" ? slice : { identity, slice };
}

/** Starts the trail with who asked for what. */
function begin(host: Host, request: StopRequest, scope: Scope, startMs: number): Run {
  const caller = findCaller(host);
  const report = emptyReport(host, request, `${caller.name} (uid ${caller.uid})`, scope.identity.uid);
  report.remarks.push(...scope.identity.notes);
  if (scope.slice.readOnly)
    report.remarks.push("the cgroup hierarchy is mounted read-only: each process is killed by itself");
  const trail = new Trail(host, {
    AI_TOOLS_RUN: report.run,
    AI_TOOLS_CALLER: caller.name,
    AI_TOOLS_CALLER_UID: caller.uid,
    AI_TOOLS_FORCE: request.force,
    AI_TOOLS_DRY_RUN: request.dryRun,
  });
  if (caller.rejected !== undefined) {
    trail.record("identity-rejected", `the claimed caller was not believed (${caller.rejected}): recorded as root`);
  }
  trail.record("requested", `stop requested by ${report.caller}`);
  return { host, request, scope, trail, report, startMs, lineOpen: false };
}

function emptyReport(host: Host, request: StopRequest, caller: string, uid: number): Report {
  const time = new Date(host.wallClockMs()).toISOString();
  return {
    run: `${time}-${host.pid}`,
    verdict: "refused",
    exitCode: exitCodes.refused,
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

/** Exit 5: nothing was touched, and how to do it by hand. A root helper records it. */
async function refuse(host: Host, request: StopRequest, reason: string, startMs: number): Promise<number> {
  const root = host.isRoot();
  const identity = root ? findIdentity(host) : "unknown";
  const uid = typeof identity === "string" ? undefined : identity.uid;
  const sentence = `nothing was stopped: ${printable(reason, 300)}`;
  host.print("err", `ai-tools: ${sentence}.\nBy hand, ${manualCommand(uid)}\n`);
  const caller = findCaller(host);
  const report = emptyReport(host, request, `${caller.name} (uid ${caller.uid})`, uid ?? 0);
  report.durationMs = host.nowMs() - startMs;
  report.unknown.push(sentence);
  if (root) {
    const trail = new Trail(host, {
      AI_TOOLS_RUN: report.run,
      AI_TOOLS_CALLER: caller.name,
      AI_TOOLS_CALLER_UID: caller.uid,
      AI_TOOLS_FORCE: request.force,
      AI_TOOLS_DRY_RUN: request.dryRun,
    });
    trail.record("refused", sentence);
    for (const problem of await trail.finish()) host.print("err", `ai-tools: ${problem}\n`);
  }
  if (request.json) host.print("out", renderJson(report));
  await host.flush(limits.reportMs);
  return exitCodes.refused;
}

/** Shows the table; false when the terminal or pipe does not take it. */
async function showTable(run: Run, rows: Row[], census: Census): Promise<boolean> {
  run.report.rows = rows.map((row) => ({ row, outcome: undefined, reason: `${row.processes.length} process(es)` }));
  run.report.bystanders = census.bystanders;
  run.host.print(run.request.json ? "err" : "out", renderTable(rows, run.scope.identity.uid));
  if (!census.complete) run.report.remarks.push("the table was cut off: there is more than it shows");
  return run.host.flush(limits.tableMs);
}

/** A question may stand for a minute: who is asked to end is who is there now. The table's rows stay, new ones join. */
function askedAgain(run: Run, before: Census, rows: Row[]): Census {
  const { host, scope } = run;
  const census = takeCensus(host, scope, {
    deadlineMs: host.nowMs() + limits.readingMs,
    detailsMs: limits.cgroupPathsMs,
  });
  if (!census.complete) return before;
  for (const row of rowsOf(scope, census)) {
    const shown = rows.find((candidate) => candidate.key === row.key);
    if (shown === undefined) rows.push(row);
    else
      shown.processes.push(...row.processes.filter((found) => !shown.processes.some(({ pid }) => pid === found.pid)));
  }
  return census;
}

function showProgress(run: Run, seconds: number, alive: number): void {
  if (!run.host.isTerminal(run.request.json ? 2 : 1)) return;
  const line = `  waiting for ${alive} process(es) to end by themselves, ${seconds} s left`;
  run.host.print(run.request.json ? "err" : "out", `\r${line}   `);
  run.lineOpen = true;
}

/** Kills and proves; an error of our own becomes "not proved", and never the end of the run. */
async function killAndProve(run: Run, outside: boolean, rows: readonly Row[]): Promise<Kill> {
  const known = new Set(rows.flatMap((row) => row.processes.map((found) => found.pid)));
  const deadlineMs = run.host.nowMs() + limits.killMs;
  for (let attempt = 0; ; attempt++) {
    try {
      return await killOutright(run.host, run.scope, outside, known, deadlineMs);
    } catch (error) {
      run.report.remarks.push(`the kill met an error of its own (${printable(String(error))})`);
      if (attempt < 1) continue;
      const nothing = { mechanisms: [], refusal: undefined, passes: 0, abortedConnections: [], killed: new Map() };
      return { proved: false, last: undefined, slicePopulated: true, ...nothing };
    }
  }
}

/** The verdict, from what was seen after the kill. */
function judge(run: Run, rows: readonly Row[], left: Census | undefined, kill: Kill): void {
  const { report, host, scope } = run;
  report.rows = outcomesOf({ scope, rows, left, kill, force: run.request.force });
  report.mechanisms = kill.mechanisms;
  if (kill.refusal !== undefined) report.remarks.push(`${kill.refusal}: each process was killed by itself`);
  if (kill.abortedConnections.length > 0) {
    report.remarks.push(`FUSE connections of the account were cut off: ${kill.abortedConnections.join(", ")}`);
  }
  report.unreaped = kill.last?.unreaped ?? [];
  report.bystanders = kill.last?.bystanders ?? report.bystanders;
  if (!kill.proved) {
    report.survivors = describeSurvivors(host, kill.last);
    report.unknown = unknownOf(kill.last, kill.slicePopulated);
    conclude(run, "incomplete", exitCodes.alive);
  } else conclude(run, report.rows.length === 0 ? "nothing-running" : "stopped", exitCodes.done);
}

function conclude(run: Run, verdict: Verdict, exitCode: number): void {
  run.report.verdict = verdict;
  run.report.exitCode = exitCode;
  run.report.durationMs = run.host.nowMs() - run.startMs;
}

/** The rows and the verdict go to the trail, and the verdict to whoever only needs to know that a stop happened. */
async function publish(run: Run): Promise<void> {
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
  recordVerdict(run);
  trail.showInJournal();
  await publishVerdict(run);
}

function fieldsOf(row: Row): Fields {
  return {
    AI_TOOLS_UNIT: printable(row.unit),
    AI_TOOLS_CGROUP: printable(row.key, 1_000),
    AI_TOOLS_WORKING_DIRECTORY: row.project.path === undefined ? "unknown" : printable(row.project.path, 1_000),
    AI_TOOLS_PROCESSES: row.processes.length,
  };
}

function recordVerdict(run: Run): void {
  const { report, trail } = run;
  const results: Partial<Record<Verdict, Result>> = {
    stopped: "stopped",
    "nothing-running": "stopped",
    incomplete: "incomplete",
    reappeared: "reappeared",
    interrupted: "interrupted",
    declined: "declined",
    "dry-run": "dry-run",
  };
  const strays = report.rows.filter(({ row }) => row.kind === "stray");
  const more = report.rows.length - limits.trailRows;
  const unsaid = more > 0 ? ` (and ${more} more rows than the events above)` : "";
  trail.record(results[report.verdict] ?? "incomplete", `verdict: ${report.verdict}${unsaid}`, {
    AI_TOOLS_VERDICT: report.verdict,
    AI_TOOLS_EXIT_CODE: report.exitCode,
    AI_TOOLS_ROWS: report.rows.length,
    AI_TOOLS_SURVIVORS: report.survivors.length,
    AI_TOOLS_STRAYS: strays.reduce((sum, { row }) => sum + row.processes.length, 0),
    AI_TOOLS_BYSTANDERS: report.bystanders.length,
    AI_TOOLS_DURATION_MS: Math.round(report.durationMs),
  });
}

async function publishVerdict(run: Run): Promise<void> {
  const { run: id, caller, verdict, exitCode } = run.report;
  const time = new Date(run.host.wallClockMs()).toISOString();
  await unlessItThrows(run, "last-stop.json", () =>
    writeLastStop(run.host, { run: id, time, caller, verdict, exitCode }),
  );
}

/** Brings the manager back, and looks once more: only what came with it is excused. */
async function restoreAndLookAgain(run: Run, entry: string): Promise<void> {
  const { host, scope, report, trail } = run;
  const manager = await restoreManager(run, entry);
  const excuse = (found: Found) => cameWithManager(scope, manager, found);
  const look = await proveEmpty(host, scope, limits.finalLookMs, excuse);
  if (look.proved) return;
  report.survivors = describeSurvivors(host, look.last);
  report.unknown = unknownOf(look.last, false);
  const alive = [...(look.last?.alive ?? []), ...(look.last?.held ?? [])];
  for (const row of rowsFrom(scope, alive)) {
    report.rows.push({ row, outcome: "reappeared", reason: "alive again after everything was ended" });
    trail.record("reappeared", `${printable(row.unit)}: alive again after everything was ended`, fieldsOf(row));
  }
  conclude(run, "reappeared", exitCodes.alive);
  recordVerdict(run);
  await publishVerdict(run);
}

async function restoreManager(run: Run, entry: string): Promise<ManagerReturn | undefined> {
  const { host, scope, report, trail } = run;
  const manager = await unlessItThrows(run, "restore", () => clearAndRestore(host, scope, entry));
  report.manager = manager;
  if (manager?.outcome === "restored") trail.record("manager-restored", "the user manager is back");
  if (manager?.outcome === "not-restored") {
    trail.record("manager-not-restored", `the user manager is not back: ${manager.reason ?? "unknown"}`);
  }
  return manager;
}

/** Below the manager and started after the restore began, or root's own work on the runtime directory. */
function cameWithManager(scope: Scope, manager: ManagerReturn | undefined, found: Found): boolean {
  const { slice, identity } = scope;
  if (found.cgroup === undefined) return false;
  if (found.cgroup === `${slice.path}/user-runtime-dir@${identity.uid}.service`) {
    return found.status.uids.every((uid) => uid === 0);
  }
  const after = manager?.startedAfterTicks;
  const below = found.cgroup.startsWith(`${slice.path}/user@${identity.uid}.service/`);
  return below && after !== undefined && found.startTicks !== undefined && found.startTicks >= after;
}

/** An interruption with nothing touched. */
async function interrupted(run: Run, when: string): Promise<number> {
  run.lineOpen = run.host.isTerminal(0);
  run.report.remarks.push(`interrupted ${when}`);
  return end(run, "interrupted", 128 + run.host.interruption());
}

/** An interruption after SIGTERM: the run ends here; where nothing of the account is left, the manager comes back. */
async function interruptedInGrace(run: Run, entry: string, managerRan: boolean): Promise<number> {
  const { host, scope, report } = run;
  report.remarks.push("interrupted during the grace: SIGTERM was sent, nothing was killed or verified");
  const code = 128 + host.interruption();
  conclude(run, "interrupted", code);
  recordVerdict(run);
  await publishVerdict(run);
  if (managerRan) wantRestore(host);
  withdrawStop(host, entry);
  const look = await proveEmpty(host, scope, limits.finalLookMs, () => false);
  if (look.proved) await restoreManager(run, entry);
  return finish(run);
}

/** Ends a run that touched nothing. */
async function end(run: Run, verdict: Verdict, exitCode: number): Promise<number> {
  conclude(run, verdict, exitCode);
  recordVerdict(run);
  return finish(run);
}

/** Hands over trail and report. Neither changes the code. */
async function finish(run: Run): Promise<number> {
  const { host, report, trail, request } = run;
  report.durationMs = host.nowMs() - run.startMs;
  report.hints = report.verdict === "declined" ? [] : leftBehind(host, run.scope.identity);
  const sinkProblems = await trail.finish();
  for (const problem of sinkProblems) host.print("err", `ai-tools: ${problem}\n`);
  host.print(request.json ? "err" : "out", `${run.lineOpen ? "\n" : ""}${renderReport(report)}`);
  if (request.json) host.print("out", renderJson({ ...report, remarks: [...report.remarks, ...sinkProblems] }));
  await host.flush(limits.reportMs);
  return report.exitCode;
}

/** For what decides nothing: an unexpected error becomes a remark. */
async function unlessItThrows<T>(run: Run, what: string, work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    run.report.remarks.push(`${what}: an error of our own (${printable(String(error))})`);
    return undefined;
  }
}
