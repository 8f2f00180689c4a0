// SPDX-License-Identifier: Apache-2.0
// The lab host of this test worker: booted, with the package installed from the RPM and the tempers on it, when the first
// test file asks for it, and shared by all files of the worker. It ends with the lab that holds the workers' engine.

import { HELPER_VARIABLE, RPM_VARIABLE } from "../../../src/tooling/boundary/boundary-lab.ts";
import type { LabHost } from "../../../src/tooling/lab/host.ts";
import { openLab } from "../../../src/tooling/lab/lab.ts";
import { buildPackage } from "../../../src/tooling/package/package.ts";
import { installTempers } from "../../../src/tooling/tempers/build-tempers.ts";
import { helper } from "./stop.ts";

/** /dev/fuse, for files that hang. */
const fuse = "c 10:229";

// The one piece of state of the kit: a worker loads this module once (vitest.config.ts: no isolation of files).
let booted: Promise<LabHost> | undefined;

/** This worker's host. */
export function labHost(): Promise<LabHost> {
  booted ??= boot();
  return booted;
}

async function boot(): Promise<LabHost> {
  const rpm = process.env[RPM_VARIABLE] ?? (await buildPackage()).rpm;
  const lab = await openLab();
  const host = await lab.boot("bookworm", { devices: [fuse] });
  await host.installPackage(rpm);
  await installTempers(host);
  const mutant = process.env[HELPER_VARIABLE];
  if (mutant !== undefined) await host.copyIn(mutant, helper, "0700");
  return host;
}
