// SPDX-License-Identifier: Apache-2.0
// What every worker of the boundary tests shares: one engine, the host image, the package and the compiled tempers. Made
// once, before the workers start, and handed to them in their environment.

import { dirname } from "node:path";

import { ENGINE_VARIABLE, type Engine } from "../lab/engine.ts";
import { ensureImage } from "../lab/image.ts";
import { openLab } from "../lab/lab.ts";
import { buildPackage } from "../package/package.ts";
import { step } from "../progress.ts";
import { buildTempers } from "../tempers/build-tempers.ts";

/** Names the RPM that the tests install; without it each worker builds it. */
export const RPM_VARIABLE = "AI_TOOLS_BOUNDARY_RPM";
/** Names an executable that takes the place of the installed helper: a mutant, which the tests must notice. */
export const HELPER_VARIABLE = "AI_TOOLS_BOUNDARY_HELPER";

/**
 * Does `work` with everything ready that the workers of the boundary tests need.
 * @param work gets the variables to add to the environment of the test runner
 */
export async function withBoundaryLab<T>(work: (environment: Record<string, string>) => Promise<T>): Promise<T> {
  const { rpm } = await buildPackage();
  await step("compiling tempers", buildTempers);
  const lab = await openLab();
  try {
    await ensureImage(lab.engine, "bookworm");
    return await work({ ...inheritance(lab.engine), [RPM_VARIABLE]: rpm });
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
