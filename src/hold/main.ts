// SPDX-License-Identifier: Apache-2.0
// The helper of the hold: arguments in, exit code out.

import { exit } from "std";
import { QuickjsGround } from "../ground/quickjs-ground.ts";
import { limits } from "../stop/limits.ts";
import { holdOrRelease } from "./hold.ts";

async function main(): Promise<number> {
  const ground = new QuickjsGround();
  ground.prepare();
  // Files get the mode that they are made with, whatever the caller's mask is: a hold that nobody can read helps nobody.
  ground.umask(0);
  const code = await holdOrRelease(ground);
  await ground.closeOutput(limits.reportMs);
  return code;
}

exit(await main());
