// SPDX-License-Identifier: Apache-2.0
// The command line of everything that is done to this project: each command lives in its own room and is only named
// here. What a command started is ended with it, whichever way it ends.

import { existsSync } from "node:fs";
import yargs, { type CommandModule } from "yargs";
import { endingCleanly, Refusal } from "./cleanup.ts";
import { inProject } from "./machine.ts";

/** Rooms with a `command.ts` that exports `command` or `commands`. */
const ROOMS = ["setup", "build", "package", "policy", "lab", "drill", "boundary", "mutants", "test"];

await endingCleanly(async () => {
  const modules = (await Promise.all(ROOMS.map(commandsOf))).flat();
  const line = yargs(process.argv.slice(2)).scriptName("npm run").usage("npm run COMMAND [-- OPTIONS]");
  for (const module of modules) line.command(module);
  await line
    .demandCommand(1, "Name a command; --help lists them.")
    .strict()
    .version(false)
    .exitProcess(false)
    .fail((message, error) => {
      throw error ?? new Refusal(message);
    })
    .parseAsync();
  return Number(process.exitCode ?? 0);
});

/** A room that does not load takes only its own commands with it, and is named. */
async function commandsOf(room: string): Promise<CommandModule[]> {
  const path = inProject("src", "tooling", room, "command.ts");
  if (!existsSync(path)) return [];
  try {
    const module = (await import(path)) as { command?: CommandModule; commands?: CommandModule[] };
    return [...(module.commands ?? []), ...(module.command ? [module.command] : [])];
  } catch (error) {
    console.error(`the commands of src/tooling/${room} are missing: ${error instanceof Error ? error.message : error}`);
    return [];
  }
}
