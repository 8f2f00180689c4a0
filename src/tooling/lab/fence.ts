// SPDX-License-Identifier: Apache-2.0
// The fence around the lab: a limit on processes, memory and processor time that a fork storm or a memory hog in a host
// runs into before this machine does. Where cgroup v1 hierarchies exist, it is a child group in each of them, which the
// private engine enters and every host inherits.

import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { totalmem } from "node:os";
import { dirname, join, resolve } from "node:path";
import { readProc } from "./process-identity.ts";

/** Processes and threads of all hosts of one engine together. The build machine has 32,768 numbers. */
export const FENCE_PIDS = 12_000;
/** Half of the 1,024 shares that everything else has. */
const FENCE_CPU_SHARES = 512;

/** Two thirds of this machine's memory, in bytes. */
export function fenceMemory(): number {
  return Math.floor((totalmem() * 2) / 3);
}

/** The group that holds the fence's limits; below it each engine has a group of its own, so that all share them. */
const FENCE_GROUP = "ai-tools-lab";

/**
 * Makes the child groups that the engine enters.
 * @param name a directory name that no other engine has
 * @returns their directories; empty on a machine without cgroup v1 hierarchies
 */
export function makeFences(name: string): string[] {
  const limits: [controller: string, file: string, value: number][] = [
    ["pids", "pids.max", FENCE_PIDS],
    ["memory", "memory.limit_in_bytes", fenceMemory()],
    ["cpu", "cpu.shares", FENCE_CPU_SHARES],
  ];
  const fences: string[] = [];
  for (const [controller, file, value] of limits) {
    const own = ownV1Group(controller);
    if (own === undefined) continue;
    const fence = join(own, FENCE_GROUP, name);
    mkdirSync(fence, { recursive: true });
    writeFileSync(join(own, FENCE_GROUP, file), String(value));
    fences.push(fence);
  }
  return fences;
}

/** Whether this machine has the hierarchy of which the fence matters most. */
export function canFence(): boolean {
  return ownV1Group("pids") !== undefined;
}

function ownV1Group(controller: string): string | undefined {
  return v1Group(controller, readFileSync("/proc/self/cgroup", "utf8"), readFileSync("/proc/self/mountinfo", "utf8"));
}

/**
 * The directory of a process's group in the cgroup v1 hierarchy of one controller; undefined where that controller has
 * no v1 hierarchy or it is not mounted.
 * @param cgroup text of /proc/PID/cgroup, cgroups(7)
 * @param mountinfo text of /proc/self/mountinfo, proc(5)
 */
export function v1Group(controller: string, cgroup: string, mountinfo: string): string | undefined {
  const group = cgroup
    .split("\n")
    .map((line) => line.split(":"))
    .find(([, controllers]) => controllers?.split(",").includes(controller))
    ?.slice(2)
    .join(":");
  const mount = mountinfo
    .split("\n")
    .map((line) => ({ before: line.split(" - ")[0]?.split(" ") ?? [], after: line.split(" - ")[1]?.split(" ") ?? [] }))
    .find(
      ({ before, after }) => before[3] === "/" && after[0] === "cgroup" && after[2]?.split(",").includes(controller),
    );
  return group === undefined || mount?.before[4] === undefined ? undefined : resolve(mount.before[4], `.${group}`);
}

/**
 * The smallest limit on processes that is in force for a process of this machine, from its v1 group and all groups
 * above it, and from its cgroup2 group likewise; undefined when there is none.
 */
export function pidsLimitInForce(pid: number): number | undefined {
  const cgroup = readProc(`/proc/${pid}/cgroup`) ?? "";
  const mountinfo = readFileSync("/proc/self/mountinfo", "utf8");
  const groups = [v1Group("pids", cgroup, mountinfo), v2Group(cgroup, mountinfo)].filter(
    (group) => group !== undefined,
  );
  const limits = groups.flatMap(limitsUpwards).filter((limit) => Number.isFinite(limit));
  return limits.length === 0 ? undefined : Math.min(...limits);
}

function v2Group(cgroup: string, mountinfo: string): string | undefined {
  const group = cgroup
    .split("\n")
    .find((line) => line.startsWith("0::"))
    ?.slice(3);
  const mount = mountinfo.split("\n").find((line) => / - cgroup2 /.test(line) && line.split(" ")[3] === "/");
  const point = mount?.split(" ")[4];
  return group === undefined || point === undefined ? undefined : resolve(point, `.${group}`);
}

function limitsUpwards(group: string): number[] {
  const limits: number[] = [];
  for (let directory = group; directory !== "/"; directory = join(directory, "..")) {
    const file = join(directory, "pids.max");
    if (existsSync(file)) limits.push(Number(readFileSync(file, "utf8").trim()));
  }
  return limits;
}

/** Every process inside the fences: what a killed lab left behind. */
export function processesInside(fences: string[]): number[] {
  const pids = fences
    .filter((fence) => existsSync(fence))
    .flatMap((fence) => readFileSync(join(fence, "cgroup.procs"), "utf8").split("\n"))
    .filter((line) => line !== "")
    .map(Number);
  return [...new Set(pids)];
}

/** Removes the fences, which must be empty, and the group above them when no other engine is in it. */
export function removeFences(fences: string[]): void {
  for (const fence of fences) {
    for (const child of existsSync(fence) ? readdirSync(fence, { withFileTypes: true }) : []) {
      if (child.isDirectory()) rmdirSync(join(fence, child.name));
    }
    removeIfEmpty(fence, ["ENOENT"]);
    removeIfEmpty(dirname(fence), ["ENOENT", "ENOTEMPTY", "EBUSY"]);
  }
}

function removeIfEmpty(directory: string, otherwise: string[]): void {
  try {
    rmdirSync(directory);
  } catch (error) {
    if (!otherwise.includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
  }
}
