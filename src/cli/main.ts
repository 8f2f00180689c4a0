// SPDX-License-Identifier: Apache-2.0
// The front door, `ai-tools`: finds the verb, and hands its validated options to whoever does the work.

import { exit } from "std";
import { QuickjsGround } from "../ground/quickjs-ground.ts";
import { showStatus } from "../status/status.ts";
import { printable } from "../stop/printable.ts";
import { say } from "./says.ts";
import { stopThroughSudo } from "./stop-verb.ts";
import { throughSudo, verbs } from "./through-sudo.ts";

const help = `ai-tools ${AI_TOOLS_VERSION}: AI coding agents under one sandbox account, and a stop that can be believed.

Usage:
  ai-tools --stop [--dry-run] [-y|--yes] [--force] [--all] [--json]
                     end every session of the account ai-tools, verified by the kernel
  ai-tools --status [--json]
                     what runs, and whether this host would pass a stop
  ai-tools --hold [REASON]
  ai-tools --release
                     refuse new sessions until released; those that run go on
  ai-tools --claim PATH
                     let the account work in a project of yours
  ai-tools --run ENTRYPOINT [-- ARGS]
                     start a session in the claimed project where you stand
  ai-tools --reclaim PATH
                     give what the account owns in a project back to you
  ai-tools --unclaim PATH
                     reclaim it, and keep the account out again
  ai-tools --help
  ai-tools --version

Options of --stop:
  --dry-run   show what would be stopped, touch nothing
  -y, --yes   do not ask
  --force     no grace: SIGKILL at once
  --json      the report as one JSON document on standard output
  --all       accepted, changes nothing: every run covers every session

Operators (group ai-ops) are asked for no password, but for --stop with options. Entry points are in
/etc/ai-tools/entrypoints.d. Exit codes:
  --stop      0 verified gone, 1 something is alive, 2 usage, 4 declined, 5 could not work at all, 128+n interrupted
  --status    0 idle, 3 running, 1 something is broken or cannot be seen, 2 usage
  --run       the session's own; 125 where none was started or it was ended on the way
  the others  0 done, 1 not wholly done, 2 usage, 3 refused
More: man ai-tools
`;

async function main(words: string[]): Promise<number> {
  // What comes after -- is a session's and never a verb of ours.
  const dashes = words.indexOf("--");
  if (words.slice(0, dashes < 0 ? words.length : dashes).includes("--stop")) {
    return stopThroughSudo(
      words.filter((word) => word !== "--stop"),
      help,
    );
  }
  const [name, ...rest] = words;
  if (name === "--help" || name === "-h") return say("out", help);
  if (name === "--version") return say("out", `ai-tools ${AI_TOOLS_VERSION}\n`);
  if (name === "--status") return showStatus(new QuickjsGround(), rest);
  const verb = name === undefined ? undefined : verbs[name];
  if (name === undefined || verb === undefined) return unknown(name);
  const ground = new QuickjsGround();
  if (!ground.areWordsWhole()) {
    say("err", `ai-tools: ${name}: a word holds bytes that are not UTF-8; nothing was done.\n`);
    return verb.wrongForm;
  }
  return throughSudo(ground, name, verb, rest);
}

function unknown(word: string | undefined): number {
  const known = word !== undefined && verbs[`--${word}`] !== undefined ? `. Did you mean --${word}?` : ".";
  const what = word === undefined ? "nothing was asked for." : `unknown command "${printable(word)}"${known}`;
  say("err", `ai-tools: ${what} To stop every session: ai-tools --stop. All commands: ai-tools --help\n`);
  return 2;
}

exit(await main(scriptArgs.slice(1)));
