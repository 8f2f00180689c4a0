// SPDX-License-Identifier: Apache-2.0
// The status for a person who has two seconds: one word first, then what is wrong with the lines that mend it, then what
// runs, then what is left to be done. No line without need.

import { pastedPath, shownPath } from "../claim/paths.ts";
import { describeHold } from "../hold/gate.ts";
import { printable, printableWord } from "../stop/printable.ts";
import { type Check, counts, type Facts, type Plumbing, type Stray, stateOf } from "./facts.ts";
import { needsRoot } from "./last-look.ts";

/** Rows of one table; a person who needs more takes `--json`. */
const mostRows = 50;

/** Printable ASCII, worst first. */
export function inWords(facts: Facts): string {
  const parts = [
    headline(facts),
    ...urgent(facts),
    sessionTable(facts),
    strayTable(facts),
    plumbingLines(facts),
    leftLines(facts),
    claimLines(facts),
  ];
  return parts.filter((part) => part !== "").join("\n");
}

function headline(facts: Facts): string {
  const state = stateOf(facts);
  const wrong = facts.checks.filter(counts);
  const certain = wrong.some(({ verdict }) => verdict === "broken") || typeof facts.hold === "string";
  const word = state === "broken" && !certain ? "UNKNOWN" : state.toUpperCase();
  const host =
    wrong.length === 0
      ? `all ${facts.checks.length} checks of the host passed`
      : `${wrong.length} of ${facts.checks.length} checks of the host did not pass`;
  return `${word}: ${atWork(facts)}; ${host}\n`;
}

function atWork({ sessions, plumbing, strays }: Facts): string {
  if (sessions === null || plumbing === null) return "what runs CANNOT BE TOLD";
  const others = plumbing.filter(({ works }) => works).length;
  const parts: string[] = [];
  if (sessions.length > 0) parts.push(counted(sessions.length, "session"));
  if (strays !== null && strays.length > 0) parts.push(counted(strays.length, "stray"));
  if (others > 0) parts.push(counted(others, "other unit"));
  const seen = parts.length === 0 ? "nothing at work" : `${parts.join(", ")} at work`;
  return strays === null ? `${seen} in the slice, strays CANNOT BE TOLD` : seen;
}

function counted(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? "" : "s"}`;
}

/** Stop, hold, and what is wrong. */
function urgent(facts: Facts): string[] {
  const lines: string[] = [];
  if (facts.stopRuns === true) lines.push(row("STOP", "", "a stop is running: every session is being ended"));
  if (facts.stopRuns === null) lines.push(row("unknown", "stop", "whether a stop is running cannot be told"));
  if (typeof facts.hold === "string") {
    lines.push(
      row("BROKEN", "hold", `it counts as set and cannot be read: ${printable(facts.hold)}`),
      mend("ai-tools --release"),
    );
  } else if (facts.hold !== null)
    lines.push(row("HOLD", "", `${describeHold(facts.hold)}`), "         to lift it: ai-tools --release\n");
  const worst = (verdict: Check["verdict"]) => facts.checks.filter((check) => check.verdict === verdict);
  for (const { name, says, repair } of worst("broken")) {
    lines.push(row("BROKEN", name, says));
    if (repair.length > 0) lines.push("         as root:\n", ...repair.map(mend));
  }
  for (const { name, says } of worst("unknown")) lines.push(row("unknown", name, says));
  if (needsRoot(facts)) lines.push("         as root:\n", mend("ai-tools --status"));
  for (const { name, says } of worst("note")) lines.push(row("note", name, says));
  return lines.length === 0 ? [] : [lines.join("")];
}

function row(word: string, name: string, says: string): string {
  return `${word.padEnd(8)} ${name === "" ? "" : name.padEnd(11)}${says}\n`;
}

/** A line to be pasted, alone on its line. */
function mend(line: string): string {
  return `           ${line}\n`;
}

function sessionTable({ sessions }: Facts): string {
  if (sessions === null || sessions.length === 0) return "";
  const rows = sessions.map((session) => [
    printableWord(session.unit),
    session.operator === null ? "?" : printableWord(session.operator),
    session.ageSeconds === null ? "?" : age(session.ageSeconds),
    count(session),
    session.memory === null ? "?" : size(session.memory),
    session.project === null ? "? (no record of root's)" : shownPath(session.project),
  ]);
  return table(["SESSION", "OPERATOR", "AGE", "PROCESSES", "MEMORY", "PROJECT"], rows);
}

function strayTable({ strays }: Facts): string {
  if (strays === null || strays.length === 0) return "";
  const rows = strays.map(({ pid, command, state, cgroup }: Stray) => [String(pid), state, command, cgroup ?? "?"]);
  return table(["STRAY", "STATE", "COMMAND", "OUTSIDE THE SLICE, IN"], rows);
}

function plumbingLines({ plumbing }: Facts): string {
  if (plumbing === null || plumbing.length === 0) return "";
  const rows = plumbing.map((unit: Plumbing) => [
    printableWord(unit.unit),
    count(unit),
    unit.memory === null ? "?" : size(unit.memory),
    unit.works ? "at work" : "idle",
  ]);
  return table(["OTHER UNIT", "PROCESSES", "MEMORY", ""], rows);
}

function leftLines({ left }: Facts): string {
  if (left.length === 0) return "";
  const lines = left.slice(0, mostRows).map(({ unit, project, operator, since, how }) => {
    const what = `${printableWord(unit)} of ${printableWord(operator)}, ${printable(since.slice(0, 16))}Z, in ${shownPath(project)}: ${printable(how)}`;
    return `  ${what}\n${mend(`ai-tools --reclaim ${pastedPath(project)}`)}`;
  });
  return `NOT HANDED BACK: what these sessions wrote still belongs to the account.\n${lines.join("")}${more(left.length)}`;
}

function claimLines({ looseClaims }: Facts): string {
  if (looseClaims.length === 0) return "";
  const lines = looseClaims
    .slice(0, mostRows)
    .map(
      ({ path, operator, what, repair }) =>
        `  ${shownPath(path)}, of ${printableWord(operator)}: ${what}\n${mend(repair)}`,
    );
  return `CLAIMS to be put right:\n${lines.join("")}${more(looseClaims.length)}`;
}

/** Columns as wide as their widest cell; numbers to the right. */
function table(head: readonly string[], rows: readonly string[][]): string {
  const shown = [head, ...rows.slice(0, mostRows)];
  const widths = head.map((_title, column) => Math.max(...shown.map((cells) => cells[column]?.length ?? 0)));
  const right = head.map((title) => title === "AGE" || title === "PROCESSES" || title === "MEMORY");
  const lines = shown.map((cells) =>
    cells
      .map((cell, column) => (right[column] ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0)))
      .join("  ")
      .trimEnd(),
  );
  return `${lines.join("\n")}\n${more(rows.length)}`;
}

function more(rows: number): string {
  return rows > mostRows ? `  and ${rows - mostRows} more: ai-tools --status --json\n` : "";
}

function count({ processes, atLeast }: { processes: number | null; atLeast: boolean }): string {
  if (processes === null) return "?";
  return atLeast ? `${processes}+` : String(processes);
}

/** The two largest units, e.g. `2h03m`. */
export function age(seconds: number): string {
  const two = (number: number) => String(number).padStart(2, "0");
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  if (minutes === 0) return `${seconds}s`;
  if (hours === 0) return `${minutes}m${two(seconds % 60)}s`;
  return hours < 24 ? `${hours}h${two(minutes % 60)}m` : `${Math.floor(hours / 24)}d${two(hours % 24)}h`;
}

/** Powers of 1,024, at most four digits, e.g. `512K`, `1.5G`. */
export function size(bytes: number): string {
  let value = bytes / 1_024;
  for (const unit of ["K", "M", "G"]) {
    if (value < 1_000) return `${value < 10 && unit !== "K" ? value.toFixed(1) : Math.round(value)}${unit}`;
    value /= 1_024;
  }
  return `${value < 10 ? value.toFixed(1) : Math.round(value)}T`;
}
