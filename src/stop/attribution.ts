// SPDX-License-Identifier: Apache-2.0
// Which project a session works in, for display only: PID 1's record for units of PID 1, the link that the account chose
// for units of its own manager. The account's manager is never asked: asking starts it.

import { accountName } from "./identity.ts";
import { type Host, isErrno } from "./kernel.ts";
import { limits } from "./limits.ts";
import { runProgram, systemctlPath } from "./programs.ts";
import type { Row } from "./rows.ts";

/** Names that may stand in a command line of systemctl. */
const plainUnitName = /^[A-Za-z0-9:_.@][A-Za-z0-9:_.@\\-]{0,254}$/;

/**
 * Fills in the projects of the rows. Whatever goes wrong, a project stays unknown and the stop goes on. Returns hints:
 * units that PID 1 starts again after they were killed, which a stop does not undo.
 */
export async function attribute(host: Host, rows: readonly Row[]): Promise<string[]> {
  for (const row of rows)
    if (row.owner === "account") row.project = { path: oldestDirectory(host, row), byAccount: true };
  const asked = rows.filter((row) => row.owner === "system" && plainUnitName.test(row.unit)).slice(0, limits.rows);
  if (asked.length === 0) return [];
  const records = await askInit(
    host,
    asked.map((row) => row.unit),
  );
  const hints: string[] = [];
  for (const row of asked) {
    const record = records.get(row.unit);
    if (record?.directory !== undefined && row.kind !== "stray")
      row.project = { path: record.directory, byAccount: false };
    // A stray may sit in the unit of somebody else's daemon (cron's, say): that one is not for a stop to advise against.
    const ofAccount =
      row.kind !== "stray" || record?.user === accountName || record?.user === String(row.processes[0]?.status.uids[0]);
    if (record !== undefined && record.restart !== "no" && ofAccount) {
      hints.push(
        `PID 1 may start ${row.unit} again (Restart=${record.restart}). To prevent it, as root: systemctl stop ${row.unit}`,
      );
    }
  }
  return hints;
}

/** What PID 1 knows of a unit. */
interface UnitRecord {
  directory: string | undefined;
  /** `Restart=` of a service, "no" for anything else. */
  restart: string;
  /** `User=`, empty for root. */
  user: string;
}

function oldestDirectory(host: Host, row: Row): string | undefined {
  const oldest = row.processes.reduce((a, b) => ((b.startTicks ?? Infinity) < (a.startTicks ?? Infinity) ? b : a));
  const link = host.readLink(`/proc/${oldest.pid}/cwd`);
  return isErrno(link) ? undefined : link;
}

/** One query to PID 1 for all units, with its limit; PID 1 hung means no answer. */
async function askInit(host: Host, units: readonly string[]): Promise<Map<string, UnitRecord>> {
  const query = [systemctlPath, "show", "--property=Id,WorkingDirectory,Restart,User", "--", ...units];
  const ran = await runProgram(host, query, host.nowMs() + limits.attributionMs);
  const answer = new Map<string, UnitRecord>();
  if (ran.kind !== "ended") return answer;
  for (const block of ran.output.split("\n\n")) {
    const id = /^Id=(.*)$/m.exec(block)?.[1];
    const directory = /^WorkingDirectory=!?(\/.*)$/m.exec(block)?.[1];
    const restart = /^Restart=([a-z-]+)$/m.exec(block)?.[1] ?? "no";
    const user = /^User=(.*)$/m.exec(block)?.[1] ?? "";
    if (id !== undefined) answer.set(id, { directory, restart, user });
  }
  return answer;
}
