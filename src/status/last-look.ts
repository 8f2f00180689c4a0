// SPDX-License-Identifier: Apache-2.0
// What root saw last, for those who may not look themselves: without it nobody but root could ever be told that a host
// is as it should be. Of this boot, root's alone to write, and only for a day.

import type { Ground } from "../ground/ground.ts";
import { readRecord, replaceWhole } from "../ground/records.ts";
import { isErrno } from "../stop/kernel.ts";
import { type Check, counts, type Facts } from "./facts.ts";

const path = "/run/ai-tools/last-look.json";
const ageMs = 24 * 3_600_000;
/** What only root's rights hide. Who runs is not among it: that changes, and is looked at or unknown. */
const shared = ["helpers", "sudo rule", "log", "cron", "at", "SELinux", "records"];

interface Look {
  at: string;
  checks: Check[];
}

/** Root leaves what it saw; anybody else gets, for each check that is hidden from them, what root saw of it. */
export function shareLook(ground: Ground, at: string, checks: Check[]): Check[] {
  if (ground.isRoot()) {
    // Whether it could be left changes nothing for root; whoever reads an older one sees its time.
    replaceWhole(ground, path, `${JSON.stringify({ at, checks })}\n`);
    return checks;
  }
  const look = readLook(ground, at);
  if (look === undefined) return checks;
  return checks.map((check) => {
    const seen =
      check.verdict === "unknown" && shared.includes(check.name)
        ? look.checks.find(({ name }) => name === check.name)
        : undefined;
    return seen === undefined ? check : { ...seen, says: `${seen.says} (root looked at ${look.at.slice(0, 16)}Z)` };
  });
}

function readLook(ground: Ground, now: string): Look | undefined {
  const stat = ground.lstat(path);
  if (isErrno(stat) || stat.kind !== "file" || stat.uid !== 0 || (stat.mode & 0o022) !== 0) return undefined;
  const look = readRecord(ground, path, isLook);
  if (typeof look !== "object") return undefined;
  const oldMs = Date.parse(now) - Date.parse(look.at);
  return oldMs >= 0 && oldMs <= ageMs ? look : undefined;
}

function isLook(value: unknown): value is Look {
  const look = value as Partial<Look> | null | undefined;
  return typeof look?.at === "string" && Array.isArray(look.checks) && look.checks.every(isCheck);
}

function isCheck(value: unknown): value is Check {
  const check = value as Partial<Check> | null | undefined;
  const verdicts: unknown[] = ["ok", "note", "unknown", "broken"];
  const texts = [check?.name, check?.says, ...(Array.isArray(check?.repair) ? check.repair : [undefined])];
  return texts.every((text) => typeof text === "string") && verdicts.includes(check?.verdict);
}

/** Whether only root's look is missing: everything that is wrong is hidden. */
export function needsRoot(facts: Facts): boolean {
  return !facts.asRoot && facts.checks.some((check) => counts(check) && check.verdict === "unknown");
}
