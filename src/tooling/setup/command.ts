// SPDX-License-Identifier: Apache-2.0
// `npm run setup`: installs at once what the other commands would install when they first need it.

import type { CommandModule } from "yargs";
import { quickjsToolchain } from "../build/quickjs.ts";
import { say } from "../progress.ts";
import { ensurePackages } from "./apt.ts";
import { needs } from "./packages.ts";

export const command: CommandModule = {
  command: "setup",
  describe: "install every Debian package and the QuickJS toolchain that the other commands use",
  handler: async () => {
    await ensurePackages(needs.map((need) => need.name));
    await quickjsToolchain();
    say("setup: everything is there");
  },
};
