// SPDX-License-Identifier: Apache-2.0
// The drill with a mutant in the helper's place, on a host of its own: what `npm start` would have said.

import type { BoundaryLab } from "../boundary/boundary-lab.ts";
import { runDrill } from "../drill/drill.ts";
import { keepEvidence } from "../drill/keep.ts";
import { step } from "../progress.ts";
import type { Mutant } from "./list.ts";

/** What the drill complains of; "" when it noticed nothing. */
export async function noticedByDrill(boundary: BoundaryLab, mutant: Mutant, helper: string): Promise<string> {
  const host = await boundary.lab.boot();
  try {
    await host.installPackage(boundary.rpm);
    await host.copyIn(helper, "/usr/libexec/ai-tools/ai-tools-stop", "0700");
    const result = await step(`drill with the mutant ${mutant.name}`, () => runDrill(host));
    await keepEvidence(result, `mutant-${mutant.name}`);
    return result.problems.join("; ");
  } finally {
    await host.end();
  }
}
