// SPDX-License-Identifier: Apache-2.0
// Where a project stands for PID 1 to bring it into a session that sees an empty file system in its place. PID 1 opens a
// path as root and follows every link in it, so that it gets none that anybody else can change: the very directory that
// was claimed is mounted, by its descriptor, below a directory of root's that nobody else can enter.

import { shownPath } from "../claim/paths.ts";
import { isBroughtIn } from "../claim/where.ts";
import type { Ground } from "../ground/ground.ts";
import type { Claim } from "../ground/records.ts";
import { isErrno } from "../stop/kernel.ts";
import { projectPlaces } from "./places.ts";
import { isLauncherAtWork, isUnitAlive, unitForm } from "./session-records.ts";
import { placePath } from "./session-unit.ts";

/** The most that anybody would find mounted one over the other. */
const mostMounts = 10;

/** Mounts the project at the unit's place where its session needs that; a sentence where it cannot be. */
export function bringIn(ground: Ground, unit: string, claim: Claim): string | undefined {
  const { path, device, inode, operator } = claim;
  if (!isBroughtIn(path)) return undefined;
  const namespace = ground.readLink("/proc/self/ns/mnt");
  if (isErrno(namespace) || namespace !== ground.readLink("/proc/1/ns/mnt"))
    return "PID 1 does not see the mounts of this process (another mount namespace): start it from a login of its own";
  const wrong = whyNotRootsAlone(ground, projectPlaces);
  if (wrong !== undefined) return wrong;
  releasePlace(ground, unit);
  const place = placePath(unit);
  const made = ground.makeDirectory(place, 0o700);
  if (made !== 0) return `${place} could not be made (errno ${made})`;
  const errno = ground.bindDirectory({ path, device, inode, uid: operator.uid, place });
  return errno === 0
    ? undefined
    : `${shownPath(path)} is another directory now, or could not be mounted (errno ${errno})`;
}

/** Makes a directory that nobody else can enter, where it is not there; a sentence where there is no such one. */
export function whyNotRootsAlone(ground: Ground, path: string): string | undefined {
  ground.makeDirectory(path, 0o700);
  const stat = ground.statPath(path);
  if (isErrno(stat)) return `${path} could not be made (errno ${stat})`;
  if (stat.kind === "directory" && stat.uid === 0 && (stat.mode & 0o077) === 0) return undefined;
  return `${path} is not root's alone (as root: chown root:root ${path}; chmod 0700 ${path})`;
}

/** Takes the place of a unit away, whether or not there is one. A session that has begun keeps its own mount. */
export function releasePlace(ground: Ground, unit: string): void {
  const place = placePath(unit);
  for (let count = 0; count < mostMounts && ground.unbindDirectory(place) === 0; count++);
  // Never more than an empty directory: what is still mounted keeps it.
  ground.remove(place);
}

/** Takes away what launchers that were killed have left: nobody starts or has a unit of that name. */
export function sweepPlaces(ground: Ground, uid: number): void {
  const names = ground.list(projectPlaces);
  for (const unit of isErrno(names) ? [] : names) {
    if (unitForm.test(unit) && !isLauncherAtWork(ground, unit) && !isUnitAlive(ground, unit, uid))
      releasePlace(ground, unit);
  }
}
