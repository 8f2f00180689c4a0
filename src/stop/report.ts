// SPDX-License-Identifier: Apache-2.0
// What a stop says: the table before it acts, and the report of what happened, what is left and what to do next, as text
// for a person and as one JSON document for a program. Everything that somebody else chose is made printable here.

import type { Found } from "./census.ts";
import type { Survivor } from "./end-session.ts";
import { limits } from "./limits.ts";
import { printable, printableWord, shellWord } from "./printable.ts";
import type { ManagerReturn } from "./restore-manager.ts";
import type { Row } from "./rows.ts";

export type Outcome = "terminated" | "killed" | "alive" | "reappeared";

export type Verdict =
  | "stopped"
  | "nothing-running"
  | "incomplete"
  | "reappeared"
  | "declined"
  | "dry-run"
  | "interrupted"
  | "refused";

export interface ReportRow {
  row: Row;
  outcome: Outcome | undefined;
  reason: string;
}

export interface Report {
  run: string;
  verdict: Verdict;
  exitCode: number;
  caller: string;
  uid: number;
  consent: string;
  force: boolean;
  dryRun: boolean;
  rows: ReportRow[];
  survivors: Survivor[];
  /** Sentences about what could not be told; each of them counts as alive. */
  unknown: string[];
  bystanders: { found: Found; reason: string }[];
  unreaped: Found[];
  manager: ManagerReturn | undefined;
  mechanisms: string[];
  /** What a person should know besides: refusals, thaws, aborted connections, ranges that do not count, sinks that failed. */
  remarks: string[];
  /** What a stop does not undo: crontabs, `at` jobs. */
  hints: string[];
  durationMs: number;
}

/** The command to fall back on when the helper could not work at all. It proves nothing. */
export function manualCommand(uid: number | undefined): string {
  const number = uid ?? "$(id -u ai-tools)";
  return `as root: systemctl kill -s KILL user-${number}.slice; pkill -KILL -U ${uid ?? "ai-tools"}`;
}

function plural(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

/** The headline: counts apart, since a name of the session form is the account's to choose. */
export function headline(rows: readonly Row[], uid: number): string {
  if (rows.length === 0) return `Nothing of the account ai-tools (uid ${uid}) is running.`;
  const of = (kind: Row["kind"]) => rows.filter((row) => row.kind === kind).length;
  const processes = rows.reduce((sum, row) => sum + row.processes.length, 0);
  const parts = [
    plural(of("session"), "agent session"),
    plural(of("plumbing"), "unit of account plumbing", "units of account plumbing"),
    plural(of("stray"), "stray"),
  ];
  return `${parts.join(", ")}: ${plural(processes, "process", "processes")} of the account ai-tools (uid ${uid}).`;
}

/** The table that is shown before anything happens. */
export function renderTable(rows: readonly Row[], uid: number): string {
  const lines = [headline(rows, uid)];
  if (rows.length > 0) {
    const shown = rows.slice(0, limits.rows);
    const names = shown.map((row) => printableWord(row.unit, 60));
    const width = Math.max(4, ...names.map((name) => name.length));
    lines.push("", `  ${"UNIT".padEnd(width)}  PROCESSES  PROJECT`);
    shown.forEach((row, index) => {
      const count = String(row.processes.length).padStart(9);
      lines.push(`  ${(names[index] ?? "").padEnd(width)}  ${count}  ${projectInWords(row)}`);
    });
    if (rows.length > shown.length) lines.push(`  and ${rows.length - shown.length} more`);
  }
  return `${lines.join("\n")}\n\n`;
}

function projectInWords(row: Row): string {
  if (row.kind === "stray") return `(stray outside the slice, in ${printableWord(row.key)})`;
  if (row.kind === "plumbing") return `- ${plumbingInWords(row)}`;
  if (row.project.path === undefined) return "unknown";
  return `${printableWord(row.project.path)}${row.project.byAccount ? " (the account's word)" : ""}`;
}

/** `init.scope` is what a user manager calls its own cgroup; a person should not take it for PID 1's. */
function plumbingInWords(row: Row): string {
  const isManager = row.owner === "account" && row.unit === "init.scope";
  return isManager ? "(account plumbing: its user manager)" : "(account plumbing)";
}

/** Who the strays of a row are: their unit is somebody else's, so its name says little. */
function processesInWords(row: Row): string {
  const named = row.processes
    .slice(0, 5)
    .map((found) => `pid ${found.pid} (${printableWord(found.status.command, 40)})`);
  const more = row.processes.length - named.length;
  return `${named.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

/** The report as text. */
export function renderReport(report: Report): string {
  const lines: string[] = [];
  const rows = report.rows.filter(({ outcome }) => outcome !== undefined);
  for (const row of rows.slice(0, limits.rows)) lines.push(rowInWords(row));
  if (rows.length > limits.rows) lines.push(`  and ${rows.length - limits.rows} more`);
  for (const survivor of report.survivors.slice(0, limits.named)) lines.push(survivorInWords(survivor));
  if (report.survivors.length > limits.named) lines.push(`  and ${report.survivors.length - limits.named} more alive`);
  for (const sentence of report.unknown) lines.push(`  UNKNOWN   ${sentence}`);
  for (const { found, reason } of report.bystanders.slice(0, limits.named)) {
    lines.push(`  untouched pid ${found.pid} (${printableWord(found.status.command, 40)}): ${reason}`);
  }
  if (report.bystanders.length > limits.named) {
    lines.push(`  and ${report.bystanders.length - limits.named} more untouched`);
  }
  if (report.unreaped.length > 0) lines.push(unreapedInWords(report.unreaped));
  if (report.manager !== undefined) lines.push(`User manager: ${managerInWords(report.manager)}`);
  for (const remark of report.remarks) lines.push(`Note: ${remark}`);
  lines.push(verdictInWords(report));
  lines.push(...whatNext(report));
  return `${lines.join("\n")}\n`;
}

const words: Record<Outcome, string> = {
  terminated: "stopped   ",
  killed: "KILLED    ",
  alive: "ALIVE     ",
  reappeared: "reappeared",
};

function rowInWords({ row, outcome, reason }: ReportRow): string {
  const word = outcome === undefined ? "" : words[outcome];
  if (row.kind === "stray") return `  ${word}  stray ${processesInWords(row)} in ${printableWord(row.key)}: ${reason}`;
  const place = row.kind === "plumbing" ? ` ${plumbingInWords(row)}` : "";
  return `  ${word}  ${printableWord(row.unit)}${place}: ${reason}`;
}

function survivorInWords({ found, state, waitChannel, tracer }: Survivor): string {
  const channel = waitChannel === "" ? "" : `, waiting in ${printableWord(waitChannel, 40)}`;
  const traced = tracer === 0 ? "" : `, traced by pid ${tracer}`;
  const cgroup = found.cgroup === undefined ? "" : `, in ${printableWord(found.cgroup)}`;
  return `  ALIVE       pid ${found.pid} (${printableWord(found.status.command, 40)}): state ${state}${channel}${traced}${cgroup}`;
}

function unreapedInWords(unreaped: readonly Found[]): string {
  const parents = [...new Set(unreaped.map((found) => found.status.parent))].slice(0, 5).join(", ");
  return `  ${plural(unreaped.length, "dead process", "dead processes")} not yet reaped by pid ${parents} (nothing of it runs)`;
}

function managerInWords(manager: ManagerReturn): string {
  const reason = manager.reason === undefined ? "" : `: ${manager.reason}`;
  const mend = manager.mend === undefined ? "" : `. To mend it, as root: ${manager.mend}`;
  const outcome = {
    "not-running": "was not running",
    restored: "restored",
    "not-restored": "NOT restored",
    "not-wanted": "not restored",
    "left-to-another-stop": "not restored by this stop",
  }[manager.outcome];
  return `${outcome}${reason}${mend}`;
}

function verdictInWords(report: Report): string {
  const seconds = `${(report.durationMs / 1_000).toFixed(1)} s`;
  switch (report.verdict) {
    case "stopped":
      return `STOPPED: everything that was found is verified gone (${seconds}).`;
    case "nothing-running":
      return `Nothing was running, and nothing is: verified (${seconds}).`;
    case "incomplete":
      return `NOT STOPPED: something of the account is alive, or nobody can tell that it is not (${seconds}).`;
    case "reappeared":
      return `NOT STOPPED: everything was ended, but something is alive again (${seconds}).`;
    case "declined":
      return "Declined: nothing was touched.";
    case "dry-run":
      return "Dry run: nothing was touched.";
    case "interrupted":
      return "Interrupted.";
    case "refused":
      return "Refused: nothing was stopped.";
  }
}

function whatNext(report: Report): string[] {
  const lines = [...report.hints];
  if (report.verdict === "dry-run") lines.push("To stop it: ai-tools --stop");
  if (report.verdict === "incomplete") {
    lines.push(
      "Next: run ai-tools --stop again; it is safe at any time. A process in state D ends when the disk or daemon",
    );
    lines.push("that it waits for answers; a traced one when its tracer goes. Until then the host is not clean.");
  }
  if (report.verdict === "reappeared") {
    lines.push("Next: ai-tools --hold REASON, so that no new session is started, and ai-tools --stop again.");
  }
  if (report.verdict === "interrupted") lines.push("Next: run ai-tools --stop again.");
  const touched = report.rows.filter(({ outcome }) => outcome !== undefined).map(({ row }) => row);
  // PID 1's record of a project outweighs the account's word about the same one.
  touched.sort((a, b) => Number(a.project.byAccount) - Number(b.project.byAccount));
  const offered = new Set<string>();
  for (const row of touched) {
    const command = reclaimCommand(row);
    if (command === undefined || offered.has(row.project.path ?? "")) continue;
    offered.add(row.project.path ?? "");
    lines.push(`To take the files back: ${command}`);
  }
  return lines;
}

/** Trees that no session's project can be in. */
const controlPlane = ["/etc", "/usr", "/boot", "/dev", "/proc", "/run", "/sys", "/var/lib/ai-tools", "/var/log"];

function reclaimCommand(row: Row): string | undefined {
  const path = row.project.path;
  if (row.kind !== "session" || path === undefined) return undefined;
  if (!path.startsWith("/") || path === "/" || path.endsWith(" (deleted)")) return undefined;
  const overlaps = (tree: string) => `${path}/`.startsWith(`${tree}/`) || tree.startsWith(`${path}/`);
  if (controlPlane.some(overlaps)) return undefined;
  const word = shellWord(path);
  if (word === undefined) return undefined;
  return `ai-tools --reclaim ${word}${row.project.byAccount ? "   # the account's word" : ""}`;
}

/** The same as one JSON document. */
export function renderJson(report: Report): string {
  const process = (found: Found) => ({
    pid: found.pid,
    command: printable(found.status.command),
    cgroup: found.cgroup === undefined ? null : printable(found.cgroup, 1_000),
  });
  const rows = report.rows.map(({ row, outcome, reason }) => ({
    unit: printable(row.unit),
    kind: row.kind,
    cgroup: printable(row.key, 1_000),
    processes: row.processes.length,
    pids: row.processes.slice(0, limits.named).map((found) => found.pid),
    project: row.project.path === undefined ? null : printable(row.project.path, 1_000),
    projectByAccount: row.project.byAccount,
    outcome: outcome ?? null,
    reason,
  }));
  const strays = report.rows.filter(({ row }) => row.kind === "stray").flatMap(({ row }) => row.processes);
  const document = {
    run: report.run,
    verdict: report.verdict,
    exitCode: report.exitCode,
    caller: report.caller,
    uid: report.uid,
    consent: report.consent,
    force: report.force,
    dryRun: report.dryRun,
    rows: rows.slice(0, limits.rows),
    rowsNotShown: Math.max(0, rows.length - limits.rows),
    strays: strays.slice(0, limits.named).map((found) => process(found)),
    straysNotShown: Math.max(0, strays.length - limits.named),
    survivors: report.survivors.slice(0, limits.named).map(({ found, state, waitChannel, tracer }) => ({
      ...process(found),
      state,
      waitChannel: printable(waitChannel),
      tracer,
    })),
    survivorsNotShown: Math.max(0, report.survivors.length - limits.named),
    unknown: report.unknown,
    bystanders: report.bystanders.slice(0, limits.named).map(({ found, reason }) => ({ ...process(found), reason })),
    bystandersNotShown: Math.max(0, report.bystanders.length - limits.named),
    unreaped: report.unreaped.length,
    manager: {
      outcome: report.manager?.outcome ?? null,
      reason: report.manager?.reason ?? null,
      mend: report.manager?.mend ?? null,
    },
    mechanisms: report.mechanisms,
    remarks: report.remarks,
    hints: report.hints,
    durationMs: Math.round(report.durationMs),
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}
