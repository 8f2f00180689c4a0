// SPDX-License-Identifier: Apache-2.0
// `npm run boundary`: every promise on the installed product, on real hosts, as a table of host × case.

import type { CommandModule } from "yargs";

import { type Suite, suites } from "../lab/image.ts";
import { conclude } from "../test/run.ts";
import { patternOf } from "../test/vitest.ts";
import { partsWith } from "./parts.ts";
import { testsOnHosts } from "./run.ts";

interface Options {
  files: string[] | undefined;
  host: Suite[] | undefined;
  case: string | undefined;
  full: boolean;
}

export const command: CommandModule<object, Options> = {
  command: "boundary [files..]",
  describe: "the tests on real hosts alone, or those of files whose name contains a word",
  builder: (line) =>
    line
      .positional("files", { type: "string", array: true, describe: "parts of file names" })
      .option("host", {
        choices: suites,
        array: true,
        nargs: 1,
        describe: "Debian release of the hosts; default: both",
      })
      .option("case", { type: "string", describe: "words that the name of a case holds, all of them" })
      .option("full", { type: "boolean", default: false, describe: "try races twenty times instead of three" }),
  handler: async (options) => {
    const words = options.case?.trim() ?? "";
    const outcomes = await testsOnHosts({
      hosts: options.host ?? [...suites],
      parts: partsWith((options.files ?? []).map(String)),
      ...(words === "" ? {} : { pattern: patternOf(words) }),
      full: options.full,
    });
    conclude(outcomes);
  },
};
