// SPDX-License-Identifier: Apache-2.0
// Debian packages, installed only where one is missing. Where this cannot be done (no root, no apt) the answer says
// exactly what is missing and how to get it.

import { spawnSync } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { Refusal } from "../cleanup.ts";
import { isRoot } from "../machine.ts";
import { type LoggedResult, logged, say, step } from "../progress.ts";
import { type Need, needs } from "./packages.ts";

/** Longest wait for another package manager that holds apt's locks; a system upgrade takes minutes. */
const LOCK_LIMIT_S = 900;
const LOCK_RETRY_MS = 5_000;
const LOCK_HELD = /Could not get lock|Unable to lock|Unable to acquire the dpkg/;

/** What the machine can do, so that the decisions below can be tried without installing anything. */
export interface PackageMachine {
  root: boolean;
  hasApt: boolean;
  /** Whether dpkg says that the package is installed. */
  isInstalled(name: string): boolean;
  /** Whether a path exists, or a program of this name is in PATH. */
  hasProgram(program: string): boolean;
  /** Whether apt's lists name a version that can be installed. */
  isKnown(name: string): boolean;
  aptGet(...args: string[]): Promise<LoggedResult>;
  pause(ms: number): Promise<void>;
}

/**
 * Makes sure that Debian packages are there; installs those that are not.
 * @throws Refusal naming the missing packages and the command to install them, where this process may not
 */
export async function ensurePackages(names: string[], machine: PackageMachine = thisMachine()): Promise<void> {
  const missing = missingPackages(names, machine);
  if (missing.length === 0) return;
  if (!machine.hasApt || !machine.root) throw new Refusal(howToInstall(missing, machine));
  await step(`installing ${missing.map((need) => need.name).join(" ")}`, () => install(missing, machine));
}

function missingPackages(names: string[], machine: PackageMachine): Need[] {
  return names
    .map((name) => needs.find((need) => need.name === name) ?? { name, why: "needed by this command", provides: [] })
    .filter((need) => !machine.isInstalled(need.name) && !need.provides.some((program) => machine.hasProgram(program)));
}

function howToInstall(missing: Need[], machine: PackageMachine): string {
  const list = missing.map((need) => `  ${need.name} (${need.why})`).join("\n");
  const names = missing.map((need) => need.name).join(" ");
  const how = machine.hasApt
    ? `Run this command as root, or install them first:\n  sudo apt-get install --no-install-recommends ${names}`
    : "This machine has no apt-get: install what provides them with its own package manager.";
  return `These Debian packages are missing:\n${list}\n${how}`;
}

async function install(missing: Need[], machine: PackageMachine): Promise<void> {
  const names = missing.map((need) => need.name);
  let updated = false;
  if (!names.every((name) => machine.isKnown(name))) {
    await aptGet(machine, "update");
    updated = true;
  }
  const install = ["install", "--yes", "--no-install-recommends", ...names];
  const result = await aptGet(machine, ...install);
  if (result.code === 0) return;
  // Lists from before the archive changed name files that are gone: one update, then the answer is final.
  if (!updated) {
    await aptGet(machine, "update");
    if ((await aptGet(machine, ...install)).code === 0) return;
  }
  throw new Refusal(`${result.output.trimEnd().split("\n").slice(-30).join("\n")}\n${howToInstall(missing, machine)}`);
}

/** One run of apt-get. dpkg's lock is waited for by apt itself, the lists' and the archives' locks are waited for here. */
async function aptGet(machine: PackageMachine, ...args: string[]): Promise<LoggedResult> {
  let waitedMs = 0;
  for (;;) {
    const result = await machine.aptGet("-o", `DPkg::Lock::Timeout=${LOCK_LIMIT_S}`, ...args);
    if (result.code === 0 || !LOCK_HELD.test(result.output) || waitedMs >= LOCK_LIMIT_S * 1000) return result;
    if (waitedMs === 0) say("another package manager is at work: waiting for it ...");
    await machine.pause(LOCK_RETRY_MS);
    waitedMs += LOCK_RETRY_MS;
  }
}

function thisMachine(): PackageMachine {
  return {
    root: isRoot(),
    hasApt: hasProgram("apt-get"),
    hasProgram,
    isInstalled: (name) => answer("dpkg-query", "--status", name).includes("\nStatus: install ok installed\n"),
    isKnown: (name) => /Candidate: (?!\(none\))/.test(answer("apt-cache", "policy", name)),
    aptGet: (...args) =>
      logged("apt-get", ["apt-get", ...args], {
        anyCode: true,
        uninterruptible: true,
        env: { DEBIAN_FRONTEND: "noninteractive", LC_ALL: "C.UTF-8" },
      }),
    pause: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
  };
}

/** Standard output of a short question; empty where the program is absent or says no. */
function answer(program: string, ...args: string[]): string {
  return spawnSync(program, args, { encoding: "utf8", env: { ...process.env, LC_ALL: "C.UTF-8" } }).stdout ?? "";
}

function hasProgram(program: string): boolean {
  const paths = program.startsWith("/")
    ? [program]
    : (process.env.PATH ?? "").split(delimiter).map((directory) => join(directory, program));
  return paths.some(isThere);
}

function isThere(path: string): boolean {
  try {
    accessSync(path, constants.R_OK);
    return true;
  } catch (error) {
    // Absent and unreadable are the same answer here: it cannot be used.
    return (error as NodeJS.ErrnoException).code === undefined;
  }
}
