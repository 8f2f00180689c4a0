// SPDX-License-Identifier: Apache-2.0
// `npm run clean`: ends what labs left behind and deletes what this project made outside its source: caches and build
// results. node_modules stays, because this very command runs from it.

import { existsSync, readdirSync, rmdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { cacheRoot, cacheTag, inProject } from "../machine.ts";
import { say, step } from "../progress.ts";

export async function clean(): Promise<void> {
  const { sweep } = await import("../lab/lab.ts");
  const swept = await step("ending what labs left behind", sweep);
  for (const name of swept) say(`ended ${name}`);
  for (const path of [...cachesIn(cacheRoot()), inProject("build")]) {
    if (!existsSync(path)) continue;
    rmSync(path, { recursive: true, force: true });
    say(`deleted ${path}`);
  }
  if (existsSync(cacheRoot()) && readdirSync(cacheRoot()).length === 0) rmdirSync(cacheRoot());
}

/** Only folders with this project's mark: the cache's place can be set to one that holds other things as well. */
function cachesIn(root: string): string[] {
  if (!existsSync(root)) return [];
  return readdirSync(root)
    .map((name) => join(root, name))
    .filter((path) => existsSync(join(path, cacheTag.file)));
}
