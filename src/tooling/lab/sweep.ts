// SPDX-License-Identifier: Apache-2.0
// Removes what a lab left behind that was killed outright: the processes of its engine, its cgroups, its folders. Goes
// by the pids and start times on record, so that it never touches a lab that is still in use.

import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { inProject } from "../machine.ts";
import { processesInside, removeFences } from "./fence.ts";
import { cutOffHungFiles } from "./hung-files.ts";
import { identityOf, isLiving, type ProcessIdentity, signalProcess } from "./process-identity.ts";

/** One folder per private engine; gone with the next boot of the machine, like the processes it tells of. */
export const enginesFolder = "/run/ai-tools-lab";

export interface EngineRecord {
  /** Who holds the engine. */
  owner: ProcessIdentity | undefined;
  /** keep-engine.sh, also the number of the process group. */
  keeper: ProcessIdentity | undefined;
  /** Of the run folder, the fences and the cgroup2 tree. */
  name: string;
  data: string;
  scratch: boolean;
  fences: string[];
}

/** Ending hosts and dockerd in good order takes 1 to 3 s; see keep-engine.sh for its own limits. */
const KEEPER_LIMIT_MS = 10_000;
const KILL_LIMIT_MS = 10_000;

/**
 * Sweeps every private engine whose owner is gone.
 * @param own a run directory to sweep although its owner (this process) lives
 * @returns the names of those that were swept
 */
export async function sweepPrivateEngines(own?: string): Promise<string[]> {
  const stale = staleEngines(enginesFolder, own);
  for (const { run, record } of stale) {
    await endProcesses(record.name, () => processesOf(record));
    removeLeftovers(run, record);
  }
  return stale.map(({ record }) => record.name);
}

/** The engines on record in a folder whose owner is gone, and `own`. */
export function staleEngines(folder: string, own?: string): { run: string; record: EngineRecord }[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder).flatMap((name) => {
    const run = join(folder, name);
    const record = readRecord(run);
    if (record === undefined || (run !== own && record.owner !== undefined && isLiving(record.owner))) return [];
    return [{ run, record }];
  });
}

/** undefined: a lab is just making it, or its keeper is just removing it. */
function readRecord(run: string): EngineRecord | undefined {
  try {
    return JSON.parse(readFileSync(join(run, "record.json"), "utf8")) as EngineRecord;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT" || error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function processesOf(record: EngineRecord): ProcessIdentity[] {
  const inside = processesInside(record.fences).flatMap((pid) => identityOf(pid) ?? []);
  return [...(record.keeper === undefined ? [] : [record.keeper]), ...inside].filter(isLiving);
}

/**
 * Waits until processes are gone, and kills those that take too long: a keeper whose owner is gone tidies up by itself.
 * @param living names those that are left, anew each time it is asked
 * @throws when some survive SIGKILL
 */
export async function endProcesses(
  title: string,
  living: () => ProcessIdentity[],
  keeperLimitMs: number = KEEPER_LIMIT_MS,
): Promise<void> {
  const startedMs = performance.now();
  for (let left = living(); left.length > 0; left = living()) {
    const waitedMs = performance.now() - startedMs;
    if (waitedMs > keeperLimitMs + KILL_LIMIT_MS) {
      throw new Error(`${title}: still alive after SIGKILL: ${left.map(({ pid }) => pid).join(" ")}`);
    }
    if (waitedMs >= keeperLimitMs) {
      for (const identity of left) signalProcess(identity, "SIGKILL");
      cutOffHungFiles(left.map(({ pid }) => pid));
    }
    await pause(50);
  }
}

function removeLeftovers(run: string, record: EngineRecord): void {
  removeFences(record.fences);
  const tidy = spawnSync(
    "unshare",
    ["-m", "--propagation", "private", "sh", inProject("src", "tooling", "lab", "keep-engine.sh"), "tidy"],
    { env: { ...process.env, LAB_CGROUP: record.name }, encoding: "utf8" },
  );
  if (tidy.status !== 0) throw new Error(`cgroups of ${record.name} cannot be removed: ${tidy.stderr}`);
  if (record.scratch) rmSync(record.data, { recursive: true, force: true });
  rmSync(run, { recursive: true, force: true });
}
