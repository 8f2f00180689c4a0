// SPDX-License-Identifier: Apache-2.0
// `npm run boundary`: every promise on the installed product, on real hosts, as a table of host × case.

import type { CommandModule } from "yargs";

import { type HostName, hostNames } from "../lab/host-names.ts";
import { conclude } from "../test/run.ts";
import { patternOf } from "../test/vitest.ts";
import { partsWith } from "./parts.ts";
import { testsOnHosts } from "./run.ts";

interface Options {
  files: string[] | undefined;
  host: HostName[] | undefined;
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
        choices: hostNames,
        array: true,
        nargs: 1,
        describe: "on this host only; may be given several times; default: on all",
      })
      .option("case", { type: "string", describe: "words that the name of a case holds, all of them" })
      .option("full", { type: "boolean", default: false, describe: "try races twenty times instead of three" }),
  handler: async (options) => {
    const words = options.case?.trim() ?? "";
    const hosts = options.host ?? hostNames;
    const files = (options.files ?? []).map(String);
    const outcomes = await testsOnHosts({
      hosts: hosts.map((host) => ({ host, parts: partsWith(host, files) })),
      ...(words === "" ? {} : { pattern: patternOf(words) }),
      full: options.full,
      everything: files.length === 0 && words === "",
    });
    conclude(outcomes);
  },
};
