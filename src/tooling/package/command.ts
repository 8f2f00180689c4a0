// SPDX-License-Identifier: Apache-2.0
// `npm run package`: the RPM and the source RPM, and on request the proof that a second build gives the same bytes.

import { relative } from "node:path";
import type { CommandModule } from "yargs";
import { projectRoot } from "../machine.ts";
import { say } from "../progress.ts";
import { buildPackage, buildTwice } from "./package.ts";

interface Arguments {
  twice: boolean;
  fromSource: boolean;
  release: number;
}

export const command: CommandModule<object, Arguments> = {
  command: "package",
  describe: "build the RPM into build/rpm/",
  builder: {
    twice: { type: "boolean", default: false, describe: "build it twice and compare the checksums" },
    "from-source": { type: "boolean", default: false, describe: "build QuickJS inside rpmbuild, as EL and Fedora do" },
    release: { type: "number", default: 1, describe: "the package's release" },
  },
  handler: async ({ twice, fromSource, release }) => {
    const { rpm, sourceRpm } = await buildPackage({ fromSource, release });
    for (const path of [rpm, sourceRpm]) say(relative(projectRoot, path));
    if (!twice) return;
    const sha256 = await buildTwice({ fromSource, release });
    say(`two builds, the same bytes: ${sha256.rpm} (package), ${sha256.sourceRpm} (source package)`);
  },
};
