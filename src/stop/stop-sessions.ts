// SPDX-License-Identifier: Apache-2.0
// The story of a stop, from top to bottom. Everything above the question may be wrong or late without harm; everything
// below it rests on the kernel alone. No step ends a run early because something unexpected came back.

import { type Announcement, announceStop, wantRestore, wasAnotherStopAtWork, withdrawStop } from "./announcement.ts";
import { askWhatReturns, attribute } from "./attribution.ts";
import { findCaller } from "./caller.ts";
import { type Census, emptyCensus, type Found, type Scope, takeCensus } from "./census.ts";
import { type Answer, askConsent, ignoreSharedKeyboard } from "./consent.ts";
import {
  describeSurvivors,
  type Grace,
  type Kill,
  killOutright,
  lookAgain,
  nothingKilled,
  terminateGracefully,
} from "./end-session.ts";
import type { StopRequest } from "./grammar.ts";
import { findIdentity } from "./identity.ts";
import { type Host, SIGINT, SIGTERM } from "./kernel.ts";
import { limits } from "./limits.ts";
import { isInitsJob, outcomesOf, rowsFrom, unknownOf } from "./outcomes.ts";
import { printable } from "./printable.ts";
import { manualCommand, renderJson, renderReport, renderTable, type Verdict } from "./report.ts";
import { clearAndRestore, isManagerRunning, type ManagerReturn } from "./restore-manager.ts";
import { type Row, rowsOf } from "./rows.ts";
import {
  conclude,
  emptyReport,
  fieldsOf,
  publish,
  publishVerdict,
  type Run,
  recordVerdict,
  unlessItThrows,
} from "./run.ts";
import { findSlice, leaveSlice, thawSlice } from "./slice.ts";
import { Trail } from "./trail.ts";

/** Exit codes; 128+n for an interruption by signal n. */
export const exitCodes = { done: 0, alive: 1, usage: 2, declined: 4, refused: 5 } as const;

/** Stops every session of the account, and says so only when the kernel does. Returns the exit code. */
export async function stopSessions(host: Host, request: StopRequest): Promise<number> {
  host.prepare();
  const startMs = host.nowMs();
  const scope = whomToStop(host);
  if (typeof scope === "string") return refuse(host, request, scope, startMs);
  const outside = leaveSlice(host, scope.slice);
  const run = begin(host, request, scope, startMs);

  const census = await unlessItThrows(run, "census", () => readWhoIsThere(host, scope), emptyCensus(false));
  const rows = await unlessItThrows(run, "rows", () => rowsOf(scope, census), []);
  await unlessItThrows(run, "terminal", () => ignoreSharedKeyboard(host, census), undefined);
  const initAnswered = await unlessItThrows(run, "projects", () => addProjects(run, rows), false);
  const tableShown = await unlessItThrows(run, "table", () => showTable(run, rows, census), false);
  if (host.interruption() !== 0) return interrupted(run, "before anything was touched");
  if (request.dryRun) return end(run, "dry-run", exitCodes.done);
  const answer = await consentTo(run, rows, census, tableShown);
  if (answer.kind === "declined") return end(run, "declined", exitCodes.declined);
  if (answer.kind === "interrupted") return interrupted(run, "at the question, before anything was touched");
  const asked = answer.asked
    ? await unlessItThrows(run, "census", () => lookAfterQuestion(run, census, rows), census)
    : census;

  const managerRan = await unlessItThrows(run, "manager", () => isManagerRunning(host, scope), true);
  const unannounced: Entry = { announcement: undefined, restoreWithoutNote: managerRan };
  const entry = await unlessItThrows(run, "announcement", () => announce(run, managerRan), unannounced);
  let left: Census | undefined;
  if (!request.force) {
    const grace = await unlessItThrows(run, "grace", () => giveGrace(run, asked), { interrupted: 0, left: undefined });
    if (grace.interrupted !== 0) return interruptedInGrace(run, entry, managerRan);
    left = grace.left;
  }
  // Another stop may have brought the manager back meanwhile.
  await unlessItThrows(run, "manager", () => noteManager(run, entry), undefined);
  // From here on it is too late to take the stop back; the programs that follow inherit this.
  host.ignoreInterruptions([SIGINT, SIGTERM]);
  const kill = await killAndProve(run, outside, rows);

  conclude(run, kill.proved ? "stopped" : "incomplete", kill.proved ? exitCodes.done : exitCodes.alive);
  await unlessItThrows(run, "thaw", () => thaw(run), undefined);
  await unlessItThrows(run, "verdict", () => describe(run, rows, left, kill), undefined);
  await unlessItThrows(run, "record", () => publish(run), undefined);
  await unlessItThrows(run, "hints", () => addLateHints(run, rows, initAnswered), undefined);
  await unlessItThrows(run, "announcement", () => withdraw(run, entry), undefined);
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
  const trail = startTrail(host, request, report.run, caller);
  if (caller.rejected !== undefined) {
    trail.record("identity-rejected", `the claimed caller was not believed (${caller.rejected}): recorded as root`);
  }
  trail.record("requested", `stop requested by ${report.caller}`);
  return { host, request, scope, trail, report, startMs, lineOpen: false };
}

function startTrail(host: Host, request: StopRequest, run: string, caller: { name: string; uid: number }): Trail {
  return new Trail(host, {
    AI_TOOLS_RUN: run,
    AI_TOOLS_CALLER: caller.name,
    AI_TOOLS_CALLER_UID: caller.uid,
    AI_TOOLS_FORCE: request.force,
    AI_TOOLS_DRY_RUN: request.dryRun,
    AI_TOOLS_YES: request.yes,
    AI_TOOLS_JSON: request.json,
  });
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
    const trail = startTrail(host, request, report.run, caller);
    trail.record("refused", sentence);
    for (const problem of (await trail.finish()).problems) host.print("err", `ai-tools: ${problem}\n`);
  }
  if (request.json) host.print("out", renderJson(report));
  await host.closeOutput(limits.reportMs);
  return exitCodes.refused;
}

function readWhoIsThere(host: Host, scope: Scope): Census {
  return takeCensus(host, scope, { deadlineMs: host.nowMs() + limits.readingMs, detailsMs: limits.cgroupPathsMs });
}

/** Whether PID 1 answered. */
async function addProjects(run: Run, rows: readonly Row[]): Promise<boolean> {
  const { answered, hints } = await attribute(run.host, rows);
  run.report.hints.push(...hints);
  return answered;
}

async function addLateHints(run: Run, rows: readonly Row[], initAnswered: boolean): Promise<void> {
  run.report.hints.push(...(await askWhatReturns(run.host, run.scope, rows, initAnswered)));
}

/** Shows the table; false when the terminal or pipe does not take it. */
async function showTable(run: Run, rows: Row[], census: Census): Promise<boolean> {
  run.report.rows = rows.map((row) => ({ row, outcome: undefined, reason: `${row.processes.length} process(es)` }));
  run.report.bystanders = census.bystanders;
  run.host.print(run.request.json ? "err" : "out", renderTable(rows, run.scope.identity.uid));
  if (!census.complete) run.report.remarks.push("the table was cut off: there is more than it shows");
  return run.host.flush(limits.tableMs);
}

/** Asks where there is something to ask about; how consent came goes with every later event. */
async function consentTo(run: Run, rows: readonly Row[], census: Census, tableShown: boolean): Promise<Answer> {
  const { host, request, report, trail } = run;
  const unreadable: Answer = { kind: "go on", consent: "unreadable", asked: false };
  const nobodyThere = rows.length === 0 && census.complete;
  const ask = () => askConsent(host, nobodyThere ? { ...request, yes: true } : request, census, tableShown);
  const answer = await unlessItThrows(run, "question", ask, unreadable);
  if (answer.kind !== "go on") return answer;
  report.consent = nobodyThere && !request.yes ? "no-tty" : answer.consent;
  trail.add({ AI_TOOLS_CONSENT: report.consent });
  return answer;
}

/** A question may stand for a minute: who is asked to end is who is there now. The table's rows stay, new ones join. */
function lookAfterQuestion(run: Run, before: Census, rows: Row[]): Census {
  const census = readWhoIsThere(run.host, run.scope);
  if (!census.complete) return before;
  const shown = new Map(rows.map((row) => [row.key, row]));
  for (const row of rowsOf(run.scope, census)) {
    const known = shown.get(row.key);
    if (known === undefined) rows.push(row);
    else {
      const pids = new Set(known.processes.map(({ pid }) => pid));
      known.processes.push(...row.processes.filter(({ pid }) => !pids.has(pid)));
    }
  }
  return census;
}

/** What others can see of this stop while it runs. */
interface Entry {
  /** undefined where it could not be made. */
  announcement: Announcement | undefined;
  /** The manager ran, and no note of that could be left: this stop restores it by its own knowledge. */
  restoreWithoutNote: boolean;
}

/** The note is left before anything is touched: a helper that is killed later does not lose the manager. */
function announce(run: Run, managerRan: boolean): Entry {
  const announcement = announceStop(run.host);
  if (announcement.refused !== 0) {
    const why = `the counter of stops could not be raised (errno ${announcement.refused})`;
    run.report.remarks.push(`${why}: a session that was being started meanwhile may run; look, and stop again`);
  }
  return { announcement, restoreWithoutNote: managerRan && !wantRestore(run.host, managerRan) };
}

/** The manager runs and will be ended: the note of it is there, or this stop keeps it in mind. */
function noteManager(run: Run, entry: Entry): void {
  if (isManagerRunning(run.host, run.scope) && !wantRestore(run.host, true)) entry.restoreWithoutNote = true;
}

async function giveGrace(run: Run, census: Census): Promise<Grace> {
  await unlessItThrows(run, "thaw", () => thaw(run), undefined);
  return terminateGracefully(run.host, run.scope, census, (seconds, alive) => showProgress(run, seconds, alive));
}

function thaw(run: Run): void {
  run.report.remarks.push(...thawSlice(run.host, run.scope.slice));
}

function withdraw(run: Run, entry: Entry): void {
  if (entry.announcement !== undefined) withdrawStop(run.host, entry.announcement.path);
}

function showProgress(run: Run, seconds: number, alive: number): void {
  if (!run.host.isTerminal(run.request.json ? 2 : 1)) return;
  const line = `  waiting for ${alive} process(es) to end by themselves, ${seconds} s left`;
  run.host.print(run.request.json ? "err" : "out", `\r${line}   `);
  run.lineOpen = true;
}

/** Kills and proves; an error of our own is met with a second try, and then with "not proved". */
async function killAndProve(run: Run, outside: boolean, rows: readonly Row[]): Promise<Kill> {
  const known = new Set(rows.flatMap((row) => row.processes.map((found) => found.pid)));
  const deadlineMs = run.host.nowMs() + limits.killMs;
  const attempt = () => killOutright(run.host, run.scope, outside, known, deadlineMs);
  const first = await unlessItThrows<Kill | undefined>(run, "kill", attempt, undefined);
  return first ?? (await unlessItThrows(run, "kill", attempt, nothingKilled()));
}

/** The rest of the verdict: what became of each row, who is alive, and what a person should know besides. */
function describe(run: Run, rows: readonly Row[], left: Census | undefined, kill: Kill): void {
  const { report, host, scope } = run;
  report.mechanisms = kill.mechanisms;
  if (kill.refusal !== undefined) report.remarks.push(kill.refusal);
  if (kill.abortedConnections.length > 0) {
    report.remarks.push(`FUSE connections of the account were cut off: ${kill.abortedConnections.join(", ")}`);
  }
  report.unreaped = kill.last?.unreaped ?? [];
  report.bystanders = kill.last?.bystanders ?? report.bystanders;
  report.rows = outcomesOf({ scope, rows, left, kill, force: run.request.force });
  if ([...kill.killed.values()].some((found) => isInitsJob(scope, found))) {
    report.remarks.push("PID 1's own clearing of the runtime directory was cut off by the kill, and is done again");
  }
  if (kill.proved) {
    if (report.rows.length === 0) conclude(run, "nothing-running", exitCodes.done);
    return;
  }
  const places = new Map(rows.flatMap((row) => row.processes.map(({ pid, cgroup }) => [pid, cgroup])));
  for (const found of kill.last?.alive ?? []) found.cgroup ??= places.get(found.pid);
  report.survivors = describeSurvivors(host, kill.last);
  report.unknown = unknownOf(scope, kill.last, kill.slicePopulated);
}

/** Brings the manager back, and looks once more: only what came with it is excused. */
async function restoreAndLookAgain(run: Run, entry: Entry): Promise<void> {
  const { host, scope, report, trail } = run;
  // What the restore does not need of its time the look may have, on a host that starts processes without pause.
  const untilMs = host.nowMs() + limits.restoreMs + limits.finalLookMs;
  const manager = await restoreManager(run, entry);
  const others = wereOthersAtWork(run, entry);
  const excuse = (found: Found) => cameWithManager(scope, manager, others, found);
  const notLooked = { quiet: false, last: undefined };
  const look = await unlessItThrows(
    run,
    "final look",
    () => lookAgain(host, scope, Math.max(limits.finalLookMs, untilMs - host.nowMs()), excuse),
    notLooked,
  );
  if (look.quiet) return;
  const wasSeen = look.last !== undefined && look.last.alive.length + look.last.held.length > 0;
  conclude(run, wasSeen ? "reappeared" : "incomplete", exitCodes.alive);
  report.survivors = describeSurvivors(host, look.last);
  report.unknown = unknownOf(scope, look.last, false);
  for (const row of rowsFrom(scope, [...(look.last?.alive ?? []), ...(look.last?.held ?? [])])) {
    report.rows.push({ row, outcome: "reappeared", reason: "alive again after everything was ended" });
    trail.record("reappeared", `${printable(row.unit)}: alive again after everything was ended`, fieldsOf(row));
  }
  await unlessItThrows(run, "record", () => publishVerdict(run), undefined);
}

function wereOthersAtWork({ host }: Run, { announcement }: Entry): boolean {
  return announcement !== undefined && wasAnotherStopAtWork(host, announcement);
}

async function restoreManager(run: Run, entry: Entry): Promise<ManagerReturn | undefined> {
  const { host, scope, report, trail } = run;
  const others = wereOthersAtWork(run, entry);
  const restore = () => clearAndRestore(host, scope, { withoutNote: entry.restoreWithoutNote, others });
  const manager = await unlessItThrows<ManagerReturn | undefined>(run, "restore", restore, undefined);
  report.manager = manager;
  if (manager?.outcome === "restored") trail.record("manager-restored", "the user manager is back");
  if (manager?.outcome === "not-restored" || manager?.outcome === "not-wanted") {
    const mend = manager.mend === undefined ? "" : `; to mend it: ${manager.mend}`;
    trail.record("manager-not-restored", `the user manager is not back: ${manager.reason ?? "unknown"}${mend}`);
  }
  return manager;
}

/**
 * Below the manager and started after the restore began, or root's own work on the runtime directory. `others`: another
 * stop was at work meanwhile and may have restored.
 */
function cameWithManager(scope: Scope, manager: ManagerReturn | undefined, others: boolean, found: Found): boolean {
  const { slice, identity } = scope;
  if (isInitsJob(scope, found)) return true;
  // A manager that another stop has brought back: nothing of it was there when this stop had its proof.
  const after = manager?.outcome === "left-to-another-stop" && others ? 0 : manager?.startedAfterTicks;
  // PID 1's child sits in the unit's own cgroup until it has become the manager; a sick logind keeps it there.
  const unit = `${slice.path}/user@${identity.uid}.service`;
  const below = found.cgroup === unit || found.cgroup?.startsWith(`${unit}/`) === true;
  return below && after !== undefined && found.startTicks !== undefined && found.startTicks >= after;
}

/** An interruption with nothing touched. */
async function interrupted(run: Run, when: string): Promise<number> {
  run.lineOpen = run.host.isTerminal(0);
  run.report.remarks.push(`interrupted ${when}`);
  return end(run, "interrupted", 128 + run.host.interruption());
}

/** An interruption after SIGTERM: the run ends here; where nothing of the account is left, the manager comes back. */
async function interruptedInGrace(run: Run, entry: Entry, managerRan: boolean): Promise<number> {
  const { host, scope, report } = run;
  report.remarks.push("interrupted during the grace: SIGTERM was sent, nothing was killed or verified");
  conclude(run, "interrupted", 128 + host.interruption());
  host.ignoreInterruptions([SIGINT, SIGTERM]);
  await unlessItThrows(run, "record", () => publishVerdict(run), undefined);
  await unlessItThrows(run, "announcement", () => withdraw(run, entry), undefined);
  const look = () => lookAgain(host, scope, limits.finalLookMs, () => false);
  const { quiet } = await unlessItThrows(run, "look", look, { quiet: false, last: undefined });
  if (quiet) await restoreManager(run, entry);
  else if (managerRan)
    report.remarks.push("the user manager may have ended as well; the stop that ends everything brings it back");
  return finish(run);
}

/** Ends a run that touched nothing. */
async function end(run: Run, verdict: Verdict, exitCode: number): Promise<number> {
  conclude(run, verdict, exitCode);
  if (verdict === "declined") run.report.hints = [];
  recordVerdict(run);
  return finish(run);
}

/** Hands over trail and report. Neither changes the code. */
async function finish(run: Run): Promise<number> {
  const { host, report, trail, request } = run;
  host.ignoreInterruptions([SIGINT, SIGTERM]);
  report.durationMs = host.nowMs() - run.startMs;
  const untilMs = host.nowMs() + limits.reportMs;
  const nothing = { problems: ["the trail may be incomplete"], hints: [] };
  const { problems, hints } = await unlessItThrows(run, "trail", () => trail.finish(), nothing);
  if (report.verdict !== "declined") report.hints.push(...hints);
  for (const problem of problems) host.print("err", `ai-tools: ${problem}\n`);
  host.print(request.json ? "err" : "out", `${run.lineOpen ? "\n" : ""}${renderReport(report)}`);
  if (request.json) host.print("out", renderJson({ ...report, remarks: [...report.remarks, ...problems] }));
  await host.closeOutput(Math.max(limits.reportAloneMs, untilMs - host.nowMs()));
  return report.exitCode;
}
