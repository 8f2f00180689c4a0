// SPDX-License-Identifier: Apache-2.0
// Which paths can be projects at all, decided from the path and the homes in passwd alone: nothing that the host runs on,
// that records who may do what, or that a person's programs run or believe by being there.

import { isAtOrBelow, shownPath } from "./paths.ts";

/** Somebody's home in passwd, as a plain path. One that is reached through a link is there under both names. */
export interface Home {
  name: string;
  path: string;
}

/** At or below these nothing is a project: the system, its state, and its kernel's and its services' files. */
const systemTrees = ["bin", "boot", "dev", "efi", "etc", "nix", "ostree", "proc", "run", "sbin", "snap", "sys"]
  .concat(["sysroot", "usr"])
  .map((name) => `/${name}`);

/** What below /var is no state of a service. */
const openBelowVar = ["home", "local", "mnt", "opt", "srv", "tmp", "www"].map((name) => `/var/${name}`);

/** Where a session gets a tree of its own, into which its project is mounted: nobody has to let it pass through there. */
const hiddenFromSessions = ["/home", "/root", "/run/user", "/tmp", "/var/tmp"];

/** Why no directory at this (plain) path can be a project, as a sentence without a full stop; undefined: it can. */
export function whyNoProject(path: string, homes: readonly Home[]): string | undefined {
  const shown = shownPath(path);
  if (isSystem(path)) return `${shown} belongs to the system`;
  if (path.lastIndexOf("/") === 0) return `${shown} is a whole tree of the system: name a directory below it`;
  if (openBelowVar.includes(path)) return `${shown} is a whole tree of the system: name a directory below it`;
  for (const home of homes) {
    if (path === home.path) return `${shown} is the home of ${shownPath(home.name)}: name a directory in it`;
    if (isAtOrBelow(home.path, path)) return `${shown} contains the home of ${shownPath(home.name)}`;
    const name = isAtOrBelow(path, home.path) ? firstNameBelow(path, home.path) : "";
    if (!isOwnersControl(name)) continue;
    return `${shown} is below ${shownPath(name)} in the home of ${shownPath(home.name)}, where things are that act as their owner`;
  }
  return undefined;
}

function isSystem(path: string): boolean {
  if (path.startsWith("/lib") || path === "/lost+found") return true;
  if (isAtOrBelow(path, "/var") && path !== "/var") return !openBelowVar.some((open) => isAtOrBelow(path, open));
  return systemTrees.some((tree) => isAtOrBelow(path, tree));
}

/** Keys, logins, shells' and programs' configuration begin with a dot; `bin` is searched for programs. */
function isOwnersControl(name: string): boolean {
  return name.startsWith(".") || name === "bin";
}

function firstNameBelow(path: string, directory: string): string {
  const below = directory === "/" ? path.slice(1) : path.slice(directory.length + 1);
  return below.split("/")[0] ?? "";
}

/**
 * Whether a session finds its project only because it is mounted for it alone (`BindPaths=`), in a tree that is otherwise
 * empty. Elsewhere the account has to pass through every directory above the project.
 */
export function isBroughtIn(path: string): boolean {
  return hiddenFromSessions.some((tree) => path !== tree && isAtOrBelow(path, tree));
}
