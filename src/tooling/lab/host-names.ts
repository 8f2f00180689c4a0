// SPDX-License-Identifier: Apache-2.0
// The kinds of hosts that the lab has, by the names that commands and tests use for them.

import type { Suite } from "./image.ts";

export interface HostKind {
  /** The Debian release of everything but the kernel. */
  suite: Suite;
  /** A container shares the kernel of the machine that holds the lab; a virtual machine has its own. */
  kind: "container" | "machine";
  /** Whether SELinux enforces on it. */
  selinux: boolean;
  /** The release whose kernel a machine runs, where it is not its own. */
  kernelOf?: "bullseye";
}

/**
 * systemd 252 (bookworm) is the generation of EL9, 257 (trixie) that of EL10, and sid is ahead of Fedora. The kernel of
 * bullseye, 5.10, has no `cgroup.kill`.
 */
const kinds = {
  bookworm: { suite: "bookworm", kind: "container", selinux: false },
  trixie: { suite: "trixie", kind: "container", selinux: false },
  sid: { suite: "sid", kind: "container", selinux: false },
  "bookworm-selinux": { suite: "bookworm", kind: "machine", selinux: true },
  "trixie-selinux": { suite: "trixie", kind: "machine", selinux: true },
  "bookworm-5.10": { suite: "bookworm", kind: "machine", selinux: false, kernelOf: "bullseye" },
} as const satisfies Record<string, HostKind>;

export type HostName = keyof typeof kinds;

/** In the order in which they are tried: the quick ones first. */
export const hostNames: readonly HostName[] = Object.keys(kinds) as HostName[];

/** What kind of host has this name. */
export function kindOf(name: HostName): HostKind {
  return kinds[name];
}

/** @throws naming those that there are */
export function hostName(text: string): HostName {
  const known = hostNames.find((name) => name === text);
  if (known === undefined) throw new Error(`no host is called ${text}: one of ${hostNames.join(", ")}`);
  return known;
}

/**
 * How many times as long as on a container something may take on this kind of host before it counts as hung: the
 * processor of a virtual machine is emulated.
 */
export function patienceFor(name: HostName): number {
  return kinds[name].kind === "machine" ? 6 : 1;
}
