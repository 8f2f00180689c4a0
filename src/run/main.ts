// SPDX-License-Identifier: Apache-2.0
// The launcher of sessions: arguments in, the session's exit code out.

import { exit } from "std";
import { QuickjsGround } from "../ground/quickjs-ground.ts";
import { limits } from "./places.ts";
import { run } from "./run.ts";

async function main(): Promise<number> {
  const ground = new QuickjsGround();
  ground.prepare();
  ground.umask(0o022);
  const code = await run(ground);
  await ground.closeOutput(limits.reportMs);
  return code;
}

exit(await main());
