// SPDX-License-Identifier: Apache-2.0
// The control files of FUSE connections in a simulated world: a hung daemon keeps its clients in D until somebody writes
// to `abort`.

import { ENOENT, type Errno, type FileStat } from "../kernel.ts";
import type { Process } from "./processes.ts";
import { release } from "./signals.ts";
import type { World } from "./world.ts";

export interface FuseConnection {
  /** The mounter owns the connection's directory. */
  uid: number;
  waiting: Process[];
}

const directory = "/sys/fs/fuse/connections/";

export function fuseNames(world: World): string[] {
  return [...world.fuse.keys()].map(String);
}

export function fuseStat(world: World, path: string): FileStat | Errno {
  const [number, file] = path.slice(directory.length).split("/");
  const connection = world.fuse.get(Number(number));
  if (connection === undefined) return ENOENT;
  const kind = file === undefined ? "directory" : "file";
  return { kind, mode: kind === "file" ? 0o200 : 0o500, uid: connection.uid, nlink: 2, rdev: 0, size: 0 };
}

/** A write to `N/abort`: everybody who waits for that daemon goes on, with an error. */
export function abortFuse(world: World, path: string): Errno {
  const [number, file] = path.slice(directory.length).split("/");
  const connection = world.fuse.get(Number(number));
  if (connection === undefined || file !== "abort") return ENOENT;
  world.fuse.delete(Number(number));
  for (const process of connection.waiting) release(world, process);
  return 0;
}
