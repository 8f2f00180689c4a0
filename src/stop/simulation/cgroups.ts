// SPDX-License-Identifier: Apache-2.0
// The cgroup v2 tree of a simulated world: who is in which cgroup, what counts as populated, what a frozen and a
// threaded cgroup do. Names are bytes, one character each.

import type { Process } from "./processes.ts";

export interface Cgroup {
  readonly name: string;
  readonly parent: Cgroup | undefined;
  readonly children: Map<string, Cgroup>;
  /** Processes that live here. A zombie is none of them: it does not count as populated and does not hinder `rmdir`. */
  readonly members: Set<Process>;
  /** Living processes here and below. */
  population: number;
  threaded: boolean;
  /** The cgroup's own `cgroup.freeze`; a cgroup is frozen as soon as one of its ancestors is. */
  freeze: boolean;
  maxDescendants: number | "max";
  /** Removed: every open file of it answers ENODEV from now on. */
  removed: boolean;
  /** Made by a helper under test, which therefore has to remove it. */
  madeByHelper: boolean;
}

/** A cgroup below `parent`; without one, the root of a hierarchy. */
export function makeCgroup(parent: Cgroup | undefined, name: string): Cgroup {
  const cgroup: Cgroup = {
    name,
    parent,
    children: new Map(),
    members: new Set(),
    population: 0,
    threaded: false,
    freeze: false,
    maxDescendants: "max",
    removed: false,
    madeByHelper: false,
  };
  parent?.children.set(name, cgroup);
  return cgroup;
}

/** Path below the hierarchy's root as the kernel prints it: `/` for the root. */
export function pathOf(cgroup: Cgroup): string {
  let path = "";
  for (let at: Cgroup | undefined = cgroup; at?.parent !== undefined; at = at.parent) path = `/${at.name}${path}`;
  return path === "" ? "/" : path;
}

/** The cgroup at a path, made on the way where it is missing. */
export function ensureCgroup(root: Cgroup, path: string): Cgroup {
  let at = root;
  for (const name of path.split("/")) {
    if (name !== "") at = at.children.get(name) ?? makeCgroup(at, name);
  }
  return at;
}

export function findCgroup(root: Cgroup, path: string): Cgroup | undefined {
  let at: Cgroup | undefined = root;
  for (const name of path.split("/")) {
    if (name !== "") at = at?.children.get(name);
  }
  return at;
}

export function isBelow(cgroup: Cgroup, above: Cgroup): boolean {
  for (let at: Cgroup | undefined = cgroup; at !== undefined; at = at.parent) if (at === above) return true;
  return false;
}

export function isFrozen(cgroup: Cgroup): boolean {
  for (let at: Cgroup | undefined = cgroup; at !== undefined; at = at.parent) if (at.freeze) return true;
  return false;
}

export function join(process: Process, cgroup: Cgroup): void {
  cgroup.members.add(process);
  count(cgroup, 1);
}

/** The process is no longer alive there (it died, or moved). */
export function leave(process: Process, cgroup: Cgroup): void {
  if (cgroup.members.delete(process)) count(cgroup, -1);
}

function count(cgroup: Cgroup, change: number): void {
  for (let at: Cgroup | undefined = cgroup; at !== undefined; at = at.parent) at.population += change;
}

/** Every living process in a cgroup and below it, in no promised order. */
export function membersBelow(cgroup: Cgroup): Process[] {
  const found: Process[] = [];
  const open = [cgroup];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    found.push(...at.members);
    open.push(...at.children.values());
  }
  return found;
}

export function descendants(cgroup: Cgroup): number {
  let number = 0;
  const open = [cgroup];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    number += at.children.size;
    open.push(...at.children.values());
  }
  return number;
}

/** Whether some ancestor's limit (or its own) forbids one more cgroup below `cgroup`. */
export function isBraked(cgroup: Cgroup): boolean {
  for (let at: Cgroup | undefined = cgroup; at !== undefined; at = at.parent) {
    if (at.maxDescendants !== "max" && descendants(at) >= at.maxDescendants) return true;
  }
  return false;
}

/** Removes an unpopulated cgroup and everything below it, as systemd does when a unit is over. */
export function removeTree(cgroup: Cgroup): void {
  const open = [cgroup];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    at.removed = true;
    open.push(...at.children.values());
  }
  cgroup.parent?.children.delete(cgroup.name);
}
