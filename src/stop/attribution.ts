// SPDX-License-Identifier: Apache-2.0
// Which project a session works in, for display only: root's record of a session that `ai-tools --run` started, PID 1's
// for other units of PID 1, the link that the account chose for units of its own manager. The account's manager is never
// asked: asking starts it.

import type { Scope } from "./census.ts";
import { accountName } from "./identity.ts";
import { type Host, isErrno } from "./kernel.ts";
import { limits } from "./limits.ts";
import { decimal } from "./proc-files.ts";
import { runProgram, systemctlPath } from "./programs.ts";
import type { Row } from "./rows.ts";

/** Names that may stand in a command line of systemctl. */
const plainUnitName = /^[A-Za-z0-9:_.@][A-Za-z0-9:_.@\\-]{0,254}$/;

/** What PID 1 said of the rows' units. */
export interface Attribution {
  /** PID 1 answered in time. */
  answered: boolean;
  /** Units that PID 1 may start again after they were killed, which a stop does not undo. */
  hints: string[];
}

/** Fills in the projects of the rows. Whatever goes wrong, a project stays unknown and the stop goes on. */
export async function attribute(host: Host, rows: readonly Row[]): Promise<Attribution> {
  for (const row of rows) {
    if (row.owner === "account") row.project = { path: oldestDirectory(host, row), byAccount: true };
  }
  const asked = unitsOfInit(rows);
  const records = await askInit(
    host,
    asked.map((row) => row.unit),
  );
  for (const row of asked) {
    const directory = records?.get(row.unit)?.directory;
    const path = recordedProject(host, row) ?? directory;
    if (path !== undefined && row.kind !== "stray") row.project = { path, byAccount: false };
  }
  return { answered: records !== undefined, hints: records === undefined ? [] : restartHints(asked, records) };
}

/**
 * After the verdict: what PID 1 starts again though no process of it was there (a service that waits for its restart, its
 * timer, its socket), and, where it was too slow before, what of the rows. No answer is a hint as well.
 */
export async function askWhatReturns(
  host: Host,
  { identity, slice }: Scope,
  rows: readonly Row[],
  answered: boolean,
): Promise<string[]> {
  const asked = unitsOfInit(rows);
  const all = "*.service";
  const records = await askInit(host, [...(answered ? [] : asked.map((row) => row.unit)), all]);
  if (records === undefined) {
    const units = [...asked.map((row) => row.unit).slice(0, 5), `'${all}'`].join(" ");
    return [
      `PID 1 did not say whether it starts units again. To see, as root: systemctl show -p Restart,TriggeredBy ${units}`,
    ];
  }
  const own = slice.path.slice(slice.path.lastIndexOf("/") + 1);
  const below = own.replace(/\.slice$/, "-");
  const users = [accountName, ...[...identity.numbers].map(String)];
  const hints = answered ? [] : restartHints(asked, records);
  for (const [unit, record] of records) {
    const isPlumbing = /^(user|user-runtime-dir)@/.test(unit);
    if (isPlumbing || !plainUnitName.test(unit) || asked.some((row) => row.unit === unit)) continue;
    if (!users.includes(record.user) && record.slice !== own && !record.slice.startsWith(below)) continue;
    hints.push(...hintsOf(unit, { ...record, restart: record.waitsForRestart ? record.restart : "no" }));
  }
  return hints.slice(0, limits.named);
}

function unitsOfInit(rows: readonly Row[]): Row[] {
  return rows.filter((row) => row.owner === "system" && plainUnitName.test(row.unit)).slice(0, limits.rows);
}

function restartHints(rows: readonly Row[], records: ReadonlyMap<string, UnitRecord>): string[] {
  const hints: string[] = [];
  for (const row of rows) {
    const record = records.get(row.unit);
    if (record !== undefined && isOfAccount(row, record)) hints.push(...hintsOf(row.unit, record));
  }
  return hints;
}

function hintsOf(unit: string, { restart, triggers }: UnitRecord): string[] {
  const again = `PID 1 may start ${unit} again`;
  const prevent = "To prevent it, as root: systemctl stop";
  return [
    ...(restart === "no" ? [] : [`${again} (Restart=${restart}). ${prevent} ${unit}`]),
    ...triggers.map((trigger) => `${again} by ${trigger}. ${prevent} ${trigger}`),
  ];
}

/** Where `--run` keeps its records, one for each session by the unit's name. */
const sessionRecords = "/var/lib/ai-tools/sessions";

/** The claimed project of a session that `--run` started; its working directory may be anywhere below that. */
function recordedProject(host: Host, row: Row): string | undefined {
  if (row.kind !== "session") return undefined;
  const text = host.readText(`${sessionRecords}/${row.unit}.json`);
  if (isErrno(text)) return undefined;
  try {
    const record: unknown = JSON.parse(text);
    const project = (record as { project?: unknown } | null)?.project;
    return typeof project === "string" && project.startsWith("/") ? project : undefined;
  } catch {
    // Torn, or not ours: the unit has its own word.
    return undefined;
  }
}

/** A stray may sit in the unit of somebody else's daemon (cron's, say): that one is not for a stop to advise against. */
function isOfAccount(row: Row, record: UnitRecord): boolean {
  if (row.kind !== "stray" || record.user === accountName) return true;
  return row.processes.some(({ pid, status }) => pid === record.mainPid || String(status.uids[0]) === record.user);
}

/** What PID 1 knows of a unit. */
interface UnitRecord {
  directory: string | undefined;
  /** `Restart=` of a service, "no" for anything else. */
  restart: string;
  /** `User=`, empty for root. */
  user: string;
  mainPid: number | undefined;
  slice: string;
  /** It has ended, and PID 1 waits before it starts it again. */
  waitsForRestart: boolean;
  /** Timers, sockets and paths that start it. */
  triggers: string[];
}

function oldestDirectory(host: Host, row: Row): string | undefined {
  const oldest = row.processes.reduce((a, b) => ((b.startTicks ?? Infinity) < (a.startTicks ?? Infinity) ? b : a));
  const link = host.readLink(`/proc/${oldest.pid}/cwd`);
  return isErrno(link) ? undefined : link;
}

/** One query to PID 1 for all units or patterns, with its limit; undefined where it gave no answer. */
async function askInit(host: Host, units: readonly string[]): Promise<Map<string, UnitRecord> | undefined> {
  const answer = new Map<string, UnitRecord>();
  if (units.length === 0) return answer;
  const properties = "Id,WorkingDirectory,Restart,User,MainPID,TriggeredBy,Slice,SubState";
  // A pattern leaves out what does not run, unless all are asked for.
  const query = [systemctlPath, "show", "--all", `--property=${properties}`, "--", ...units];
  const ran = await runProgram(host, query, host.nowMs() + limits.attributionMs);
  if (ran.kind !== "ended") return undefined;
  for (const block of ran.output.split("\n\n")) {
    const value = (name: string) => new RegExp(`^${name}=(.*)$`, "m").exec(block)?.[1] ?? "";
    if (value("Id") === "") continue;
    const restart = value("Restart");
    answer.set(value("Id"), {
      directory: /^!?(\/.*)$/.exec(value("WorkingDirectory"))?.[1],
      restart: /^[a-z-]+$/.test(restart) ? restart : "no",
      user: value("User"),
      mainPid: decimal(value("MainPID")) || undefined,
      slice: value("Slice"),
      waitsForRestart: value("SubState").startsWith("auto-restart"),
      triggers: value("TriggeredBy")
        .split(" ")
        .filter((name) => plainUnitName.test(name)),
    });
  }
  return answer.size === 0 ? undefined : answer;
}
