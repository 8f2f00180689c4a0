// SPDX-License-Identifier: Apache-2.0
// The lab host of this test worker: booted, with the package installed from the RPM and the tempers on it, when the first
// test file asks for it, and shared by all files of the worker. It ends with the lab that holds the workers' engine.

import { devices, HOSTS_VARIABLE, READY_HOST_VARIABLE, RPM_VARIABLE } from "../../../src/tooling/boundary/variables.ts";
import { LabHost } from "../../../src/tooling/lab/host.ts";
import { type Suite, suites } from "../../../src/tooling/lab/image.ts";
import { openLab } from "../../../src/tooling/lab/lab.ts";
import { buildPackage } from "../../../src/tooling/package/package.ts";
import { installTempers } from "../../../src/tooling/tempers/build-tempers.ts";

// The one piece of state of the kit: a worker loads this module once (vitest.config.ts: no isolation of files).
let booted: Promise<LabHost> | undefined;

/** This worker's host. */
export function labHost(): Promise<LabHost> {
  booted ??= boot();
  return booted;
}

async function boot(): Promise<LabHost> {
  const suite = suiteOfHosts();
  const lab = await openLab();
  const ready = process.env[READY_HOST_VARIABLE];
  if (ready !== undefined) return new LabHost(lab.engine, suite, ready, undefined);
  const rpm = process.env[RPM_VARIABLE] ?? (await buildPackage()).rpm;
  const host = await lab.boot(suite, { devices });
  await host.installPackage(rpm);
  await installTempers(host);
  return host;
}

/** One run of the test runner is one suite; `npm run boundary` makes one run for each. */
function suiteOfHosts(): Suite {
  const asked = process.env[HOSTS_VARIABLE] || "bookworm";
  const suite = suites.find((name) => name === asked);
  if (suite === undefined) throw new Error(`${HOSTS_VARIABLE} is ${asked}: one of ${suites.join(", ")}`);
  return suite;
}
