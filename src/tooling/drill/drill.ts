// SPDX-License-Identifier: Apache-2.0
// The drill: on a real host with the package installed it starts sessions, lets an operator stop them all from a
// terminal, and judges what is left by looking from outside.

import type { LabHost } from "../lab/host.ts";
import { say, step } from "../progress.ts";
import { installTempers } from "../tempers/build-tempers.ts";
import {
  accountUid,
  type Bystander,
  type Payload,
  startAccountManager,
  startBystanders,
  startPayloads,
} from "../tempers/payloads.ts";
import { type Evidence, problemsOf, stillnessMs } from "./evidence.ts";
import { describeHost, look, lookTwice, readLastStop, readTrail, type TrailEntry } from "./observer.ts";
import { type Circumstances, type DrillRecord, recordOf } from "./record.ts";
import { showWhileRunning } from "./screen.ts";
import { startWatching, stopWatching } from "./watch.ts";

const operator = "olga";
const stopCommand = ["ai-tools", "--stop"];
/** How far apart the two looks before the stop are: enough for every counter to move by a hundred. */
const movingMs = 300;
/** Longest wait for the question, and for the end of the stop after it (its own limits sum up to 40 s). */
const questionLimitMs = 15_000;
const stopLimitMs = 90_000;

export interface DrillResult {
  /** Why it failed; empty when it passed. */
  problems: string[];
  /** Everything that was seen. */
  evidence: Evidence;
  /** The same for people and for programs that compare drills. */
  record: DrillRecord;
}

/** Runs the drill on a host that has the package installed, and says what it saw. Everything it started is ended by the stop or with the host. */
export async function runDrill(host: LabHost): Promise<DrillResult> {
  const startedMs = Date.now();
  await installTempers(host);
  const uid = await accountUid(host);
  const { payloads, bystanders } = await step("drill: start sessions and bystanders", () => startEverything(host));
  const before = await lookTwice(host, uid, movingMs);
  await startWatching(host, uid);
  const dryRun = await step("drill: dry run", () => showDryRun(host));
  const afterDryRun = await look(host, uid);
  const trailBefore = await readTrail(host);
  const { answeredMs, ...stop } = await step("drill: the stop, as the operator sees it", () => stopAsOperator(host));
  const after = await lookTwice(host, uid, stillnessMs);
  const watched = await stopWatching(host);
  const trail = newEntries(trailBefore, await readTrail(host));
  const evidence: Evidence = { uid, payloads, bystanders, before, dryRun, afterDryRun, stop, watched, after, trail };
  const circumstances: Circumstances = {
    startedMs,
    endedMs: Date.now(),
    // A virtual machine has a clock of its own.
    ...(host.kind === "container" ? { answeredMs } : {}),
    command: stopCommand.join(" "),
    host: await describeHost(host),
    lastStop: await readLastStop(host),
  };
  return { problems: problemsOf(evidence), evidence, record: await recordOf(evidence, circumstances) };
}

/** The last line of a drill. */
export function verdictLine(problems: string[]): string {
  return problems.length === 0 ? "drill: passed" : `drill: FAILED: ${problems.join("; ")}`;
}

async function startEverything(host: LabHost): Promise<{ payloads: Payload[]; bystanders: Bystander[] }> {
  await host.sh("install -d /srv/projects && install -d -o olga /srv/projects/shop /srv/projects/billing");
  await startAccountManager(host);
  const shop = "/srv/projects/shop";
  const billing = "/srv/projects/billing";
  const payloads = await startPayloads(host, [
    { name: "101", temper: "polite", place: "run", workingDirectory: shop },
    { name: "102", temper: "deaf", place: "run", workingDirectory: billing },
    { name: "103", temper: "scattered", place: "run", workingDirectory: shop },
    { name: "104", temper: "headless", place: "run", workingDirectory: billing },
    { name: "105", temper: "stopped", place: "run", workingDirectory: shop },
    { name: "106", temper: "restarting", place: "run", workingDirectory: billing },
    { name: "107", temper: "polite", place: "own-manager", workingDirectory: shop },
    { name: "108", temper: "deaf", place: "own-manager-always", workingDirectory: billing },
    { name: "109", temper: "deaf", place: "system-unit" },
    { name: "110", temper: "polite", place: "exec" },
  ]);
  const bystanders: Bystander[] = ["operator", "other-user", "root-acting-for-account", "container"];
  await startBystanders(host, bystanders);
  return { payloads, bystanders };
}

/** As root, since the operator's rule covers the bare form only and the lab's operator has no password. */
async function showDryRun(host: LabHost): Promise<Evidence["dryRun"]> {
  const { code, stdout, stderr } = await host.run(["ai-tools", "--stop", "--dry-run"]);
  say(`# ai-tools --stop --dry-run\n${stdout}${stderr}`);
  return { code, output: stdout + stderr };
}

async function stopAsOperator(host: LabHost): Promise<Evidence["stop"] & { answeredMs: number }> {
  const startedMs = performance.now();
  let answeredMs = Number.NaN;
  say(`${operator}$ ${stopCommand.join(" ")}`);
  const terminal = host.terminal(stopCommand, { user: operator });
  const screen = await showWhileRunning(
    terminal,
    async () => {
      await terminal.waitFor(/\[Y\/n\]/, questionLimitMs);
      answeredMs = Date.now();
      terminal.type("\r");
    },
    stopLimitMs,
  );
  return { caller: operator, seconds: (performance.now() - startedMs) / 1000, answeredMs, ...screen };
}

function newEntries(before: Evidence["trail"], all: Evidence["trail"]): Evidence["trail"] {
  const rest = (sink: "log" | "journal"): TrailEntry[] => all[sink].slice(before[sink].length);
  return { log: rest("log"), journal: rest("journal") };
}
