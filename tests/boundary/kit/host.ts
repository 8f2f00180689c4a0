// SPDX-License-Identifier: Apache-2.0
// The lab host of this test worker: booted, with the package installed from the RPM and the tempers on it, when the first
// test file asks for it, and shared by all files of the worker. It ends with the lab that holds the workers' engine.

import {
  devices,
  HOSTS_VARIABLE,
  POLICY_VARIABLE,
  READY_HOST_VARIABLE,
  RPM_VARIABLE,
} from "../../../src/tooling/boundary/variables.ts";
import type { LabHost } from "../../../src/tooling/lab/host.ts";
import { type HostName, hostName } from "../../../src/tooling/lab/host-names.ts";
import { openLab } from "../../../src/tooling/lab/lab.ts";
import { buildPackage } from "../../../src/tooling/package/package.ts";
import { buildPolicyPackage } from "../../../src/tooling/policy/package.ts";
import { installTempers } from "../../../src/tooling/tempers/build-tempers.ts";

// The one piece of state of the kit: a worker loads this module once (vitest.config.ts: no isolation of files).
let booted: Promise<LabHost> | undefined;

/** This worker's host. */
export function labHost(): Promise<LabHost> {
  booted ??= boot();
  return booted;
}

async function boot(): Promise<LabHost> {
  const lab = await openLab();
  const ready = process.env[READY_HOST_VARIABLE];
  if (ready !== undefined) return lab.existing(whichHost(), ready);
  const rpm = process.env[RPM_VARIABLE] ?? (await buildPackage()).rpm;
  const host = await lab.boot(whichHost(), { devices });
  await host.installPackage(rpm, ...(host.selinux ? [await policyFor(host)] : []));
  await installTempers(host);
  return host;
}

/** The package that confines sessions where SELinux enforces, for the policy of this very release. */
async function policyFor(host: LabHost): Promise<string> {
  return process.env[POLICY_VARIABLE] ?? (await buildPolicyPackage(host.suite)).rpm;
}

/** One run of the test runner is on hosts of one kind; `npm run boundary` makes one run for each. */
export function whichHost(): HostName {
  return hostName(process.env[HOSTS_VARIABLE] || "bookworm");
}
