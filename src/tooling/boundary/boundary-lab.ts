// SPDX-License-Identifier: Apache-2.0
// What every worker of the boundary tests shares: one engine, the host image, the package and the compiled tempers. Made
// once, before the workers start, and handed to them in their environment.

import { dirname } from "node:path";

import { ENGINE_VARIABLE, type Engine } from "../lab/engine.ts";
import { ensureImage, type Suite } from "../lab/image.ts";
import { type OpenLab, openLab } from "../lab/lab.ts";
import { buildPackage } from "../package/package.ts";
import { step } from "../progress.ts";
import { buildTempers } from "../tempers/build-tempers.ts";
import { RPM_VARIABLE } from "./variables.ts";

export { RPM_VARIABLE };

export interface BoundaryLab {
  /** What the test runner needs in its environment, besides the suite of its hosts. */
  environment: Record<string, string>;
  lab: OpenLab;
  rpm: string;
}

/** Does `work` with everything ready that the workers of the boundary tests need on hosts of these suites. */
export async function withBoundaryLab<T>(
  suites: readonly Suite[],
  work: (boundary: BoundaryLab) => Promise<T>,
): Promise<T> {
  const { rpm } = await buildPackage();
  await step("compiling tempers", buildTempers);
  const lab = await openLab();
  try {
    for (const suite of suites) await ensureImage(lab.engine, suite);
    return await work({ environment: { ...inheritance(lab.engine), [RPM_VARIABLE]: rpm }, lab, rpm });
  } finally {
    await lab.end();
  }
}

/** Lets the workers use the private engine that this process holds; an ordinary one they find by themselves. */
function inheritance(engine: Engine): Record<string, string> {
  const socket = engine.argv([]).find((word) => word.startsWith("unix://"));
  return engine.kind === "ordinary" || socket === undefined
    ? {}
    : { [ENGINE_VARIABLE]: dirname(socket.slice("unix://".length)) };
}
