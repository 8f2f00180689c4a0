// SPDX-License-Identifier: Apache-2.0
// Which project a session works in, for display only: PID 1's record for units of PID 1, the link that the account chose
// for units of its own manager. The account's manager is never asked: asking starts it.

import { type Host, isErrno } from "./kernel.ts";
import { limits } from "./limits.ts";
import { runProgram, systemctlPath } from "./programs.ts";
import type { Row } from "./rows.ts";

/** Names that may stand in a command line of systemctl. */
const plainUnitName = /^[A-Za-z0-9:_.@][A-Za-z0-9:_.@\\-]{0,254}$/;

/** Fills in the projects of the rows. Whatever goes wrong, a project stays unknown and the stop goes on. */
export async function attribute(host: Host, rows: readonly Row[]): Promise<void> {
  for (const row of rows)
    if (row.owner === "account") row.project = { path: oldestDirectory(host, row), byAccount: true };
  const asked = rows.filter((row) => row.owner === "system" && row.kind !== "stray" && plainUnitName.test(row.unit));
  if (asked.length === 0) return;
  const answer = await askInit(
    host,
    asked.slice(0, limits.rows).map((row) => row.unit),
  );
  for (const row of asked) {
    const path = answer.get(row.unit);
    if (path !== undefined) row.project = { path, byAccount: false };
  }
}

function oldestDirectory(host: Host, row: Row): string | undefined {
  const oldest = row.processes.reduce((a, b) => ((b.startTicks ?? Infinity) < (a.startTicks ?? Infinity) ? b : a));
  const link = host.readLink(`/proc/${oldest.pid}/cwd`);
  return isErrno(link) ? undefined : link;
}

/** One query to PID 1 for all units, with its limit; PID 1 hung means no answer. */
async function askInit(host: Host, units: readonly string[]): Promise<Map<string, string>> {
  const query = [systemctlPath, "show", "--property=Id,WorkingDirectory", "--", ...units];
  const ran = await runProgram(host, query, host.nowMs() + limits.attributionMs);
  const answer = new Map<string, string>();
  if (ran.kind !== "ended") return answer;
  for (const block of ran.output.split("\n\n")) {
    const id = /^Id=(.*)$/m.exec(block)?.[1];
    const directory = /^WorkingDirectory=!?(\/.*)$/m.exec(block)?.[1];
    if (id !== undefined && directory !== undefined) answer.set(id, directory);
  }
  return answer;
}
