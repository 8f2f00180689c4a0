// SPDX-License-Identifier: Apache-2.0
// `ai-tools --status`: gathers the facts, says them, and answers with its exit code. It changes nothing but root's note of
// what it saw, and needs no rights.

import type { Ground } from "../ground/ground.ts";
import { findSelinux } from "../ground/selinux.ts";
import { isStopRunning, readHold } from "../hold/gate.ts";
import { findIdentity } from "../stop/identity.ts";
import { limits } from "../stop/limits.ts";
import { printable } from "../stop/printable.ts";
import { findSlice, type Slice } from "../stop/slice.ts";
import { type Check, exitCodes, type Facts, stateOf } from "./facts.ts";
import * as host from "./host-checks.ts";
import { shareLook } from "./last-look.ts";
import { readRecords } from "./left.ts";
import { checkAt, checkCron } from "./scheduled.ts";
import { inWords } from "./show.ts";
import { asJson } from "./show-json.ts";
import { checkSudoRule } from "./sudo-rule.ts";
import { findStrays, lookIntoSlice, startingSessions } from "./who-runs.ts";

/** @param words what was typed after `--status` */
export async function showStatus(ground: Ground, words: readonly string[]): Promise<number> {
  ground.prepare();
  const code = await answer(ground, words);
  await ground.closeOutput(limits.reportMs);
  return code;
}

async function answer(ground: Ground, words: readonly string[]): Promise<number> {
  const other = words.find((word) => word !== "--json");
  if (other !== undefined) {
    ground.print(
      "err",
      `ai-tools: --status knows --json, and not "${printable(other)}". Everything: ai-tools --status\n`,
    );
    return exitCodes.usage;
  }
  const facts = await gather(ground);
  ground.print("out", words.includes("--json") ? asJson(facts) : inWords(facts));
  return exitCodes[stateOf(facts)];
}

/** Looks once at everything. Who runs is looked at first: it changes fastest, and is what most people ask for. */
export async function gather(ground: Ground): Promise<Facts> {
  const asRoot = ground.isRoot();
  const identity = findIdentity(ground);
  const uid = typeof identity === "string" ? undefined : identity.uid;
  // Without the account its number is not known, and the hierarchy is looked at all the same.
  const slice = findSlice(ground, uid ?? 0);
  const selinux = findSelinux(ground);
  const records = readRecords(ground, uid, selinux);
  // Where processes are hidden from the caller, they are still counted in the files of their cgroups.
  const hidden = typeof slice === "string" && !asRoot && host.isHidden(slice);
  const visible = typeof slice !== "string" ? slice : hidden && uid !== undefined ? usualSlice(uid) : undefined;
  const account = uid === undefined || visible === undefined ? undefined : { uid, slice: visible };
  const content = account && lookIntoSlice(ground, account.slice, account.uid, records.running);
  const seesAll = typeof identity === "object" && typeof slice === "object";
  const strays = seesAll ? findStrays(ground, identity, slice) : undefined;
  const stopRuns = isStopRunning(ground);
  const at = new Date(ground.wallClockMs()).toISOString();
  const checks = [host.checkHierarchy(slice, asRoot), host.checkAccount(ground, identity)];
  checks.push(...(await checksOf(ground, account)), host.checkSelinux(selinux), records.check);
  return {
    at,
    asRoot,
    // Whoever cannot see root's processes sees no stop either.
    stopRuns: stopRuns === false && !seesAll ? null : (stopRuns ?? null),
    hold: readHold(ground) ?? null,
    sessions: content ? [...content.sessions, ...startingSessions(ground, content, records.running)] : null,
    plumbing: content?.plumbing ?? null,
    strays: strays ?? null,
    left: records.left,
    looseClaims: records.looseClaims,
    selinux,
    checks: shareLook(ground, at, checks),
  };
}

/** What a stop and the sessions rest on; without an account and its slice only what can be told without them. */
async function checksOf(ground: Ground, account: { uid: number; slice: Slice } | undefined): Promise<Check[]> {
  const checks = [
    host.checkPrograms(ground),
    host.checkLauncher(ground),
    await checkSudoRule(ground),
    host.checkLog(ground),
    checkCron(ground),
  ];
  if (account !== undefined) {
    const { uid, slice } = account;
    checks.push(checkAt(ground, uid), host.checkLimits(ground, uid, slice), host.checkManager(ground, uid));
    checks.push(host.checkSlice(ground, slice));
  }
  return checks;
}

/** Where systemd mounts it. */
function usualSlice(uid: number): Slice {
  const mountPoint = "/sys/fs/cgroup";
  const path = `/user.slice/user-${uid}.slice`;
  return { path, directory: `${mountPoint}${path}`, mountPoint, readOnly: false, events: undefined };
}
