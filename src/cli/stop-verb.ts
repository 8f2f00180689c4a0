// SPDX-License-Identifier: Apache-2.0
// `ai-tools --stop`: root executes the helper, an operator goes through sudo. The helper's exit code comes back as it
// is. sudo's own refusal is also a 1, and is told apart by the helper's record of the last stop.

import * as os from "os";
import { parseStop, type StopRequest } from "../stop/grammar.ts";
import { SIGCHLD, SIGINT, SIGQUIT, SIGTSTP } from "../stop/kernel.ts";
import { say } from "./says.ts";

const sudo = "/usr/bin/sudo";
const helper = "/usr/libexec/ai-tools/ai-tools-stop";
const lastStop = "/run/ai-tools/last-stop.json";
const refused = 5;

/** Runs a stop with the given options (without `--stop`) and returns its exit code. */
export function stopThroughSudo(words: readonly string[], help: string): number {
  const parsed = parseStop(words, "ai-tools --stop");
  if (parsed.kind === "help") return say("out", help);
  if (parsed.kind === "version") return say("out", `ai-tools ${AI_TOOLS_VERSION}\n`);
  if (parsed.kind === "usage") {
    say("err", `ai-tools: ${parsed.message}\n`);
    return 2;
  }
  // A key or a closed job must not take the caller away while the helper works; the helper catches its own.
  for (const signal of [SIGINT, SIGQUIT, SIGTSTP]) os.signal(signal, undefined);
  // A caller that ignores SIGCHLD would take the exit code away, and the wait for it would never end.
  os.signal(SIGCHLD, null);
  if (isRoot()) return asRoot(parsed.request);
  return asOperator(parsed.request);
}

function asRoot(request: StopRequest): number {
  const code = run([helper, ...optionsOf(request)], 0);
  if (code !== 127) return code;
  say("err", `ai-tools: ${helper} could not be executed: nothing was stopped. Reinstall the package.\n`);
  return byHand();
}

/** The bare form needs no password; `--yes` is the bare form with nobody to ask. The others ask as sudo is configured. */
function asOperator(request: StopRequest): number {
  const bare = !request.dryRun && !request.force && !request.json;
  const before = lastRun();
  const code = bare
    ? run([sudo, "-n", helper], request.yes ? os.open("/dev/null", os.O_RDONLY) : 0)
    : run([sudo, helper, ...optionsOf(request)], 0);
  if (!wasRefused(code, before)) return code;
  if (!bare || request.yes || !os.isatty(0)) return explainRefusal();
  say("err", "ai-tools: there is no sign that the helper ran. Once more, so that sudo may ask:\n");
  const again = run([sudo, helper], 0);
  return wasRefused(again, before) ? explainRefusal() : again;
}

/** A 1 is the helper's only if it left the record of another run; 127 is a sudo that is not there. */
function wasRefused(code: number, before: string): boolean {
  return code === 127 || (code === 1 && lastRun() === before);
}

function explainRefusal(): number {
  say(
    "err",
    "ai-tools: there is no sign that sudo ran the helper: take it that nothing was stopped.\n" +
      "An operator is in the group ai-ops (seen by `id` after a new login), and the rule is /etc/sudoers.d/ai-tools;\n" +
      "`sudo -l` shows what you may run.\n",
  );
  return byHand();
}

function byHand(): number {
  say(
    "err",
    `As root: ${helper}\nor, without it: systemctl kill -s KILL user-$(id -u ai-tools).slice; pkill -KILL -U ai-tools\n`,
  );
  return refused;
}

function optionsOf(request: StopRequest): string[] {
  const options: string[] = [];
  if (request.dryRun) options.push("--dry-run");
  if (request.yes) options.push("--yes");
  if (request.force) options.push("--force");
  if (request.json) options.push("--json");
  return options;
}

function run(argv: string[], stdin: number): number {
  try {
    const code = os.exec(argv, { block: true, usePath: false, stdin });
    return code < 0 ? 128 - code : code;
  } catch {
    say("err", "ai-tools: no process could be started (fork failed).\n");
    return 127;
  }
}

/** Which run left the record of the last stop; the file is root's and readable by all. */
function lastRun(): string {
  return /"run":"([^"]*)"/.exec(firstBytes(lastStop))?.[1] ?? "";
}

function isRoot(): boolean {
  return /^Uid:\t[0-9]+\t0\t/m.test(firstBytes("/proc/self/status"));
}

function firstBytes(path: string): string {
  const fd = os.open(path, os.O_RDONLY);
  if (fd < 0) return "";
  const buffer = new ArrayBuffer(4_096);
  const count = os.read(fd, buffer, 0, 4_096);
  os.close(fd);
  return count <= 0 ? "" : String.fromCharCode(...new Uint8Array(buffer, 0, count));
}
