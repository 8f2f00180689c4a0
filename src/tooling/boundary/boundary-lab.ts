// SPDX-License-Identifier: Apache-2.0
// What every worker of the boundary tests shares: one engine, the hosts' images, the packages and the compiled tempers. Made
// once, before the workers start, and handed to them in their environment.

import { dirname } from "node:path";

import { ENGINE_VARIABLE, type Engine } from "../lab/engine.ts";
import { type HostName, kindOf } from "../lab/host-names.ts";
import { type OpenLab, openLab } from "../lab/lab.ts";
import { NotInTheArchive } from "../lab/machine-image.ts";
import { buildPackage } from "../package/package.ts";
import { buildPolicyPackage } from "../policy/package.ts";
import { step } from "../progress.ts";
import { buildTempers } from "../tempers/build-tempers.ts";
import { RPM_VARIABLE } from "./variables.ts";

export { RPM_VARIABLE };

export interface BoundaryLab {
  /** What the test runner needs in its environment, besides the name of its hosts. */
  environment: Record<string, string>;
  lab: OpenLab;
  rpm: string;
  /** The RPM of the SELinux policy, for each host on which SELinux enforces. */
  policies: Partial<Record<HostName, string>>;
  /** Hosts that cannot be made because the archive no longer has what they are made of, and why. */
  missing: Partial<Record<HostName, string>>;
}

/** Does `work` with everything ready that the workers of the boundary tests need on these hosts. */
export async function withBoundaryLab<T>(
  hosts: readonly HostName[],
  work: (boundary: BoundaryLab) => Promise<T>,
): Promise<T> {
  const { rpm } = await buildPackage();
  const policies = await policiesFor(hosts);
  await step("compiling tempers", buildTempers);
  const lab = await openLab();
  try {
    const missing: BoundaryLab["missing"] = {};
    for (const host of hosts) await lab.prepare(host).catch((error) => noteMissing(missing, host, error));
    const engine = hosts.some((host) => kindOf(host).kind === "container") ? await lab.engine() : undefined;
    return await work({ environment: { ...inheritance(engine), [RPM_VARIABLE]: rpm }, lab, rpm, policies, missing });
  } finally {
    await lab.end();
  }
}

function noteMissing(missing: BoundaryLab["missing"], host: HostName, error: unknown): void {
  if (!(error instanceof NotInTheArchive)) throw error;
  missing[host] = error.message;
}

async function policiesFor(hosts: readonly HostName[]): Promise<Partial<Record<HostName, string>>> {
  const policies: Partial<Record<HostName, string>> = {};
  for (const host of hosts) {
    const { selinux, suite } = kindOf(host);
    if (selinux) policies[host] = (await buildPolicyPackage(suite)).rpm;
  }
  return policies;
}

/** Lets the workers use the private engine that this process holds; an ordinary one they find by themselves. */
function inheritance(engine: Engine | undefined): Record<string, string> {
  const socket = engine?.argv([]).find((word) => word.startsWith("unix://"));
  return engine?.kind === "ordinary" || socket === undefined
    ? {}
    : { [ENGINE_VARIABLE]: dirname(socket.slice("unix://".length)) };
}
