// SPDX-License-Identifier: Apache-2.0
// `npm run build`: the static executables, and what they are.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { relative } from "node:path";
import type { CommandModule } from "yargs";
import { projectRoot } from "../machine.ts";
import { say } from "../progress.ts";
import { buildBinaries } from "./build.ts";

export const command: CommandModule = {
  command: "build",
  describe: "build the static executables into build/bin/",
  handler: async () => {
    const binaries = await buildBinaries();
    for (const path of binaries.all) {
      const bytes = readFileSync(path);
      const sha256 = createHash("sha256").update(bytes).digest("hex");
      say(`${relative(projectRoot, path)}  ${bytes.length} bytes  sha256 ${sha256}`);
    }
  },
};
