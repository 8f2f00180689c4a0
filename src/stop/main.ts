// SPDX-License-Identifier: Apache-2.0
// The helper: arguments in, exit code out. Under three other names (argument 0), which no command line can give it, the
// same executable is a child of the helper: the recorder of the trail, the copier to a file or socket, the emptier of a terminal.

import { exit } from "std";
import { writeLastStop } from "./announcement.ts";
import { parseStop, type StopRequest } from "./grammar.ts";
import { SIGINT, SIGTERM } from "./kernel.ts";
import { limits } from "./limits.ts";
import { printable } from "./printable.ts";
import { QuickjsHost, recorderName } from "./quickjs-kernel.ts";
import { recordEvents } from "./recorder.ts";
import { manualCommand } from "./report.ts";
import { exitCodes, stopSessions } from "./stop-sessions.ts";
import { copyToOutput, discardName, discardPending, outputName } from "./terminal.ts";

const help = `ai-tools-stop ${AI_TOOLS_VERSION}: ends every session of the account ai-tools, and says so only when the kernel does.

Usage: ai-tools-stop [--dry-run] [-y|--yes] [--force] [--all] [--json]   (root only; operators: ai-tools --stop)

  --dry-run   show what would be stopped, touch nothing
  -y, --yes   do not ask
  --force     no grace: SIGKILL at once
  --json      the report as one JSON document on standard output
  --all       accepted, changes nothing: every run covers every session

Exit codes: 0 verified gone, 1 something is alive, 2 usage, 4 declined, 5 could not work at all, 128+n interrupted.
More: man ai-tools
`;

async function main(name: string, words: string[]): Promise<number> {
  const host = new QuickjsHost();
  host.prepare();
  if (name === recorderName || name === outputName || name === discardName) {
    host.ignoreInterruptions([SIGINT, SIGTERM]);
    if (name === recorderName) return recordEvents(host);
    if (name === outputName) copyToOutput();
    else discardPending();
    return 0;
  }
  const parsed = parseStop(words, "ai-tools --stop");
  if (parsed.kind === "stop") return stop(host, parsed.request);
  if (parsed.kind === "usage") host.print("err", `ai-tools-stop: ${parsed.message}\n`);
  if (parsed.kind === "help") host.print("out", help);
  if (parsed.kind === "version") host.print("out", `ai-tools-stop ${AI_TOOLS_VERSION}\n`);
  await host.closeOutput(limits.reportMs);
  return parsed.kind === "usage" ? exitCodes.usage : exitCodes.done;
}

/** An error of our own is never a success, and says what to do by hand. */
async function stop(host: QuickjsHost, request: StopRequest): Promise<number> {
  try {
    return await stopSessions(host, request);
  } catch (error) {
    host.print("err", `ai-tools-stop: an error of its own (${printable(String(error))}); nothing is proved.\n`);
    host.print("err", `Run it again; by hand, ${manualCommand(undefined)}\n`);
    const time = new Date(host.wallClockMs()).toISOString();
    const run = `${time}-${host.pid}`;
    await writeLastStop(host, { run, time, caller: "unknown", verdict: "incomplete", exitCode: exitCodes.alive });
    await host.closeOutput(limits.reportMs);
    return exitCodes.alive;
  }
}

exit(await main(scriptArgs[0] ?? "", scriptArgs.slice(1)));
