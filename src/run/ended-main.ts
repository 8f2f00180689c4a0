// SPDX-License-Identifier: Apache-2.0
// What PID 1 starts when a session's unit has ended: the unit's name in, whether everything is done out.

import { exit } from "std";
import { QuickjsGround } from "../ground/quickjs-ground.ts";
import { afterSession } from "./ended.ts";
import { limits } from "./places.ts";

async function main(): Promise<number> {
  const ground = new QuickjsGround();
  ground.prepare();
  ground.umask(0o022);
  const code = await afterSession(ground);
  await ground.closeOutput(limits.reportMs);
  return code;
}

exit(await main());
