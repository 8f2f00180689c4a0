// SPDX-License-Identifier: Apache-2.0
// The front door, `ai-tools`: finds the verb, and hands its validated options to whoever does the work.

import { exit } from "std";
import { printable } from "../stop/printable.ts";
import { say } from "./says.ts";
import { stopThroughSudo } from "./stop-verb.ts";

const help = `ai-tools ${AI_TOOLS_VERSION}: AI coding agents under one sandbox account, and a stop that can be believed.

Usage:
  ai-tools --stop [--dry-run] [-y|--yes] [--force] [--all] [--json]
                     end every session of the account ai-tools, verified by the kernel
  ai-tools --help
  ai-tools --version

Options of --stop:
  --dry-run   show what would be stopped, touch nothing
  -y, --yes   do not ask
  --force     no grace: SIGKILL at once
  --json      the report as one JSON document on standard output
  --all       accepted, changes nothing: every run covers every session

The plain form asks operators (group ai-ops) for no password. Exit codes of a stop: 0 verified gone, 1 something is
alive, 2 usage, 4 declined, 5 could not work at all, 128+n interrupted. More: man ai-tools
`;

function main(words: string[]): number {
  if (words.includes("--stop")) {
    return stopThroughSudo(
      words.filter((word) => word !== "--stop"),
      help,
    );
  }
  const [verb] = words;
  if (verb === "--help" || verb === "-h") return say("out", help);
  if (verb === "--version") return say("out", `ai-tools ${AI_TOOLS_VERSION}\n`);
  if (verb === "--reclaim") {
    say("err", "ai-tools: --reclaim is not in this version. As root: chown -hR --from=ai-tools OPERATOR PATH\n");
    return 2;
  }
  const what = verb === undefined ? "nothing was asked for" : `unknown command "${printable(verb)}"`;
  say("err", `ai-tools: ${what}. To stop every session: ai-tools --stop. All commands: ai-tools --help\n`);
  return 2;
}

exit(main(scriptArgs.slice(1)));
