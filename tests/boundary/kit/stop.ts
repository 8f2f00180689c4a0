// SPDX-License-Identifier: Apache-2.0
// Asks for a stop on a lab host in every way in which one can be asked for, and gathers what came back: exit code, both
// streams, the JSON report and what the run added to the trail.

import { type TrailEntry, trailEntries } from "../../../src/tooling/drill/observer.ts";
import type { LabHost, LabTerminal } from "../../../src/tooling/lab/host.ts";

export const helper = "/usr/libexec/ai-tools/ai-tools-stop";
export const frontDoor = "/usr/bin/ai-tools";
export const trailLog = "/var/log/ai-tools/stop.log";
export const lastStop = "/run/ai-tools/last-stop.json";

/** The limits of a stop sum up to 40 s; the rest is for a busy machine. */
const stopLimitMs = 90_000;

export interface StopResult {
  code: number;
  stdout: string;
  stderr: string;
  /** Entries that were added to the log meanwhile, oldest first. */
  entries: TrailEntry[];
  /** Whether a manager of the account ran before, with lingering on: then there is to be one afterwards. */
  lingered: boolean;
}

export interface Report {
  /** No word of the report's: see `StopResult`. Absent where a test read the report by itself. */
  lingered?: boolean;
  run: string;
  verdict: string;
  exitCode: number;
  caller: string;
  consent: string;
  force: boolean;
  rows: Row[];
  strays: NamedProcess[];
  survivors: (NamedProcess & { state: string; waitChannel: string; tracer: number })[];
  unreaped: number;
  bystanders: (NamedProcess & { reason: string })[];
  manager: { outcome: string | null; reason: string | null; mend: string | null };
  mechanisms: string[];
  remarks: string[];
  hints: string[];
  /** Sentences about what could not be told. */
  unknown: string[];
  durationMs: number;
}

export interface NamedProcess {
  pid: number;
  command: string;
  /** Its place in the hierarchy; `null` where that was not read. */
  cgroup: string | null;
}

export interface Row {
  unit: string;
  kind: string;
  processes: number;
  project: string | null;
  /** `null` where nothing was done: a dry run, a declined question. */
  outcome: string | null;
  reason: string;
}

/** Runs the helper as root, without a terminal, with these options. */
export function stop(host: LabHost, ...options: string[]): Promise<StopResult> {
  return stopBy(host, [helper, ...options]);
}

/** Runs the helper as root with `--json` and reads its report. */
export async function stopWithReport(host: LabHost, ...options: string[]): Promise<StopResult & { report: Report }> {
  const result = await stop(host, "--json", ...options);
  const report = JSON.parse(result.stdout) as Report;
  return { ...result, report: { ...report, lingered: result.lingered } };
}

/** Runs any command that stops, as anybody, without a terminal. */
export async function stopBy(
  host: LabHost,
  argv: string[],
  options: { user?: string; env?: Record<string, string> } = {},
): Promise<StopResult> {
  const { known, lingered } = await before(host);
  const result = await host.run(argv, { ...options, timeoutMs: stopLimitMs });
  return { ...result, entries: await lastEntries(host, known), lingered };
}

/** What is so before a stop. Whether a manager runs is seen in cgroupfs: no service has to answer. */
async function before(host: LabHost): Promise<{ known: number; lingered: boolean }> {
  const text = await host.sh(`cat ${trailLog} 2>/dev/null | wc -l; uid=$(id -u ai-tools)
    [ -e /var/lib/systemd/linger/ai-tools ] &&
      grep -s "populated 1" /sys/fs/cgroup/user.slice/user-$uid.slice/user@$uid.service/cgroup.events; true`);
  const [lines, populated] = text.split("\n");
  return { known: Number(lines), lingered: populated === "populated 1" };
}

/** Runs a shell script that stops, as root, without a terminal. */
export function stopByScript(host: LabHost, script: string): Promise<StopResult> {
  return stopBy(host, ["sh", "-c", script]);
}

export interface TerminalStop {
  code: number;
  screen: string;
  entries: TrailEntry[];
}

/** Runs a command that stops on a terminal of its own, while `act` does what the person there does. */
export async function stopOnTerminal(
  host: LabHost,
  argv: string[],
  act: (terminal: LabTerminal) => Promise<void>,
  options: { user?: string } = {},
): Promise<TerminalStop> {
  const known = await trailLength(host);
  const terminal = host.terminal(argv, options);
  await act(terminal);
  const code = await terminal.exit;
  return { code, screen: terminal.text(), entries: await lastEntries(host, known) };
}

/** What stands on a terminal when the question is asked. */
export const question = /\[Y\/n\]/;

/** How many entries the log has. */
export async function trailLength(host: LabHost): Promise<number> {
  return Number(await host.sh(`cat ${trailLog} 2>/dev/null | wc -l`));
}

/** The log's entries from this one on. */
export async function lastEntries(host: LabHost, known: number): Promise<TrailEntry[]> {
  return trailEntries(await host.sh(`tail -n +${known + 1} ${trailLog} 2>/dev/null || true`));
}

/** The journal's entries of one run. */
export async function journalOf(host: LabHost, run: string): Promise<TrailEntry[]> {
  return trailEntries(
    await host.sh(`journalctl --sync; journalctl -t ai-tools-stop AI_TOOLS_RUN=${run} -o json --no-pager --all`),
  );
}

/** The results of these entries, in order. */
export function results(entries: TrailEntry[]): string[] {
  return entries.map((entry) => entry.AI_TOOLS_RESULT ?? "");
}

/** The single entry with this result. */
export function entryOf(entries: TrailEntry[], result: string): TrailEntry {
  const found = entries.filter((entry) => entry.AI_TOOLS_RESULT === result);
  if (found.length !== 1) throw new Error(`${found.length} entries "${result}" in ${JSON.stringify(results(entries))}`);
  return found[0] as TrailEntry;
}

/** The report's only row of this unit. */
export function rowOf(report: Report, unit: string): Row {
  const found = report.rows.filter((row) => row.unit === unit);
  if (found.length !== 1) throw new Error(`${found.length} rows of ${unit} in ${JSON.stringify(report.rows)}`);
  return found[0] as Row;
}
