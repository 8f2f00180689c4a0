// SPDX-License-Identifier: Apache-2.0
// `npm run mutants`: the helper broken on purpose, one way at a time, which tests on real hosts must notice each time.

import type { CommandModule } from "yargs";

import { tryMutants } from "./try.ts";

export const command: CommandModule<object, { only: string[] | undefined }> = {
  command: "mutants",
  describe: "break the helper on purpose, one way at a time: tests on real hosts must go red each time",
  builder: (line) =>
    line.option("only", { type: "string", array: true, nargs: 1, describe: "the mutants of these names alone" }),
  handler: async ({ only }) => {
    process.exitCode = (await tryMutants(only)) ? 0 : 1;
  },
};
