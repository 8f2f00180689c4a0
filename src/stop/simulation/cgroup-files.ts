// SPDX-License-Identifier: Apache-2.0
// cgroupfs in a simulated world: its directories, and what reading and writing its files answers (cgroup-v2 documentation
// of the kernel). An open file stays with the cgroup it was opened on.

import {
  EAGAIN,
  EBUSY,
  EEXIST,
  EINVAL,
  ENODEV,
  ENOENT,
  EOPNOTSUPP,
  EROFS,
  type Errno,
  ESRCH,
  type FileStat,
} from "../kernel.ts";
import { type Cgroup, isBraked, isFrozen, makeCgroup, membersBelow, removeTree } from "./cgroups.ts";
import type { Process } from "./processes.ts";
import { killCgroup, setFreeze } from "./signals.ts";
import type { World } from "./world.ts";

/** ERANGE, EISDIR of Linux. */
const ERANGE = 34;
const EISDIR = 21;

export interface CgroupFile {
  cgroup: Cgroup;
  name: string;
}

const everywhere = [
  "cgroup.procs",
  "cgroup.threads",
  "cgroup.controllers",
  "cgroup.subtree_control",
  "cgroup.max.descendants",
];
const notAtTheRoot = ["cgroup.events", "cgroup.freeze", "cgroup.type", "cgroup.kill"];

/** The file or directory (`name` empty) at a path below the hierarchy's mount; ENOENT where there is none. */
export function cgroupFileAt(world: World, path: string): CgroupFile | Errno {
  let at = world.root;
  const names = path.split("/").filter((name) => name !== "");
  for (const [index, name] of names.entries()) {
    const child = at.children.get(name);
    if (child !== undefined) at = child;
    else if (index === names.length - 1 && exists(world, at, name)) return { cgroup: at, name };
    else return ENOENT;
  }
  return { cgroup: at, name: "" };
}

function exists(world: World, cgroup: Cgroup, name: string): boolean {
  if (name === "cgroup.kill" && !world.host.killFile) return false;
  return everywhere.includes(name) || (cgroup.parent !== undefined && notAtTheRoot.includes(name));
}

export function statOf(file: CgroupFile): FileStat {
  const directory = file.name === "";
  const mode = directory ? 0o755 : 0o644;
  return {
    kind: directory ? "directory" : "file",
    mode,
    uid: 0,
    nlink: directory ? 2 + file.cgroup.children.size : 1,
    rdev: 0,
    size: 0,
  };
}

export function namesIn(world: World, cgroup: Cgroup): string[] {
  const files = [...everywhere, ...notAtTheRoot].filter((name) => exists(world, cgroup, name));
  return [...files, ...cgroup.children.keys()];
}

export function readCgroupFile(file: CgroupFile): string | Errno {
  const { cgroup, name } = file;
  if (cgroup.removed) return ENODEV;
  switch (name) {
    case "cgroup.events":
      return `populated ${cgroup.population > 0 ? 1 : 0}\nfrozen ${isFrozen(cgroup) && allFrozen(cgroup) ? 1 : 0}\n`;
    case "cgroup.freeze":
      return `${cgroup.freeze ? 1 : 0}\n`;
    case "cgroup.type":
      return cgroup.threaded ? "threaded\n" : "domain\n";
    case "cgroup.max.descendants":
      return `${cgroup.maxDescendants}\n`;
    case "cgroup.procs":
      return cgroup.threaded ? EOPNOTSUPP : numbers(listedAt(cgroup));
    case "cgroup.threads":
      return numbers([...cgroup.members]);
    case "":
      return EISDIR;
    case "cgroup.kill":
      return EINVAL;
    default:
      return "";
  }
}

/** A task in D never freezes, and `frozen` stays 0 as long as there is one. */
function allFrozen(cgroup: Cgroup): boolean {
  return membersBelow(cgroup).every((process) => !process.stuck);
}

/** The processes of threaded children are listed at their domain ancestor. */
function listedAt(cgroup: Cgroup): Process[] {
  const listed = [...cgroup.members];
  for (const child of cgroup.children.values()) if (child.threaded) listed.push(...membersBelow(child));
  return listed;
}

function numbers(processes: Process[]): string {
  return processes.map((process) => `${process.pid}\n`).join("");
}

/** Writes as `writer`; 0 is success. An empty write succeeds and does nothing. */
export function writeCgroupFile(world: World, file: CgroupFile, text: string, writer: Process): Errno {
  const { cgroup, name } = file;
  if (world.host.readOnlyCgroups) return EROFS;
  if (cgroup.removed) return ENODEV;
  const word = text.trim();
  if (word === "") return 0;
  switch (name) {
    case "cgroup.kill":
      return writeKill(world, cgroup, word);
    case "cgroup.freeze":
      if (word !== "0" && word !== "1") return ERANGE;
      setFreeze(world, cgroup, word === "1");
      return 0;
    case "cgroup.max.descendants":
      if (word !== "max" && !/^[0-9]+$/.test(word)) return EINVAL;
      cgroup.maxDescendants = word === "max" ? "max" : Number(word);
      return 0;
    case "cgroup.procs":
      return writeProcs(world, cgroup, word, writer);
    default:
      return name === "" ? EISDIR : EINVAL;
  }
}

function writeKill(world: World, cgroup: Cgroup, word: string): Errno {
  if (cgroup.threaded) return EOPNOTSUPP;
  if (word !== "1") return ERANGE;
  killCgroup(world, cgroup);
  return 0;
}

/** `0` means the writer itself. */
function writeProcs(world: World, cgroup: Cgroup, word: string, writer: Process): Errno {
  if (cgroup.threaded) return EOPNOTSUPP;
  const process = word === "0" ? writer : world.processes.get(Number(word));
  if (process === undefined || process.phase !== "alive") return ESRCH;
  world.move(process, cgroup);
  return 0;
}

/** `mkdir` in cgroupfs; EAGAIN where a limit of an ancestor forbids it. */
export function makeCgroupAt(world: World, path: string): Errno {
  if (world.host.readOnlyCgroups) return EROFS;
  const end = path.lastIndexOf("/");
  const above = cgroupFileAt(world, path.slice(0, end));
  if (typeof above === "number" || above.name !== "") return ENOENT;
  const name = path.slice(end + 1);
  if (above.cgroup.children.has(name)) return EEXIST;
  if (isBraked(above.cgroup)) return EAGAIN;
  makeCgroup(above.cgroup, name).madeByHelper = true;
  return 0;
}

/** `rmdir` in cgroupfs: only without children and living processes; zombies do not hinder it. */
export function removeCgroup(world: World, path: string): Errno {
  if (world.host.readOnlyCgroups) return EROFS;
  const file = cgroupFileAt(world, path);
  if (typeof file === "number") return file;
  if (file.name !== "") return EINVAL;
  if (file.cgroup.children.size > 0 || file.cgroup.population > 0 || file.cgroup.parent === undefined) return EBUSY;
  removeTree(file.cgroup);
  return 0;
}
