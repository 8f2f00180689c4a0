// SPDX-License-Identifier: Apache-2.0
// The helper of claims: arguments in, exit code out.

import { exit } from "std";
import { QuickjsGround } from "../ground/quickjs-ground.ts";
import { limits } from "../stop/limits.ts";
import { claimVerbs } from "./verbs.ts";

async function main(): Promise<number> {
  const ground = new QuickjsGround();
  ground.prepare();
  // Everybody may read what is claimed, whatever the caller's mask is.
  ground.umask(0o022);
  const code = await claimVerbs(ground);
  await ground.closeOutput(limits.reportMs);
  return code;
}

exit(await main());
