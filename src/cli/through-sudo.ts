// SPDX-License-Identifier: Apache-2.0
// The verbs whose work a root helper does: checks their form, and hands them over, through `sudo -n` for an operator.
// The helper trusts none of it and checks everything again. Its exit code comes back as it is.

import * as os from "os";
import type { Ground } from "../ground/ground.ts";
import { helpers } from "../ground/places.ts";
import { lastRuleFor } from "../status/sudo-rule.ts";
import { isErrno, SIGCHLD, SIGINT, SIGQUIT } from "../stop/kernel.ts";
import { printable } from "../stop/printable.ts";
import { runProgram } from "../stop/programs.ts";
import { say } from "./says.ts";

const sudo = "/usr/bin/sudo";
/** sudo may ask a directory service for the rules. */
const listMs = 3_000;
/** What a program that cannot be executed shows as. */
const notExecuted = 127;

/** What a verb takes, in words, and what goes to which helper. */
export interface Verb {
  /** As it is typed, e.g. `--claim PATH`. */
  form: string;
  helper: string;
  /** The helper's words; a sentence where the words have another form. */
  words: (words: readonly string[]) => string[] | string;
  /** Root may do it without an operator: what is given goes to whoever has the claim. */
  alsoRoot: boolean;
  /** Exit code where no helper ran, or where it does not suit root. */
  notRun: number;
  /** Exit code for words of another form: a session may end with 2 itself. */
  wrongForm: number;
}

const forRootToo = { alsoRoot: true, notRun: 3, wrongForm: 2 };

export const verbs: Readonly<Record<string, Verb>> = {
  "--claim": onPath("claim", false),
  "--unclaim": onPath("unclaim", true),
  "--reclaim": onPath("reclaim", true),
  "--run": {
    form: "--run ENTRYPOINT [-- ARGS]",
    helper: helpers.run,
    words: runWords,
    alsoRoot: false,
    notRun: 125,
    wrongForm: 125,
  },
  "--hold": { form: "--hold [REASON]", helper: helpers.hold, words: holdWords, ...forRootToo },
  "--release": { form: "--release", helper: helpers.hold, words: releaseWords, ...forRootToo },
};

function onPath(word: string, alsoRoot: boolean): Verb {
  const words = (given: readonly string[]) => {
    const [path, ...more] = given[0] === "--" ? given.slice(1) : given;
    if (path === undefined || path === "") return "which directory? The project you stand in: .";
    if (more.length > 0) return "one directory at a time; a path with blanks needs quotes";
    if (path.startsWith("-") && given[0] !== "--")
      return `${printable(path)} is no option of it; a path with that name: ./${printable(path)}`;
    return [word, path];
  };
  return { form: `--${word} PATH`, helper: helpers.claim, words, ...forRootToo, alsoRoot };
}

/** `ENTRYPOINT [-- ARGS]`: what follows `--` is the session's, whatever it looks like. */
function runWords(given: readonly string[]): string[] | string {
  const [entryPoint, dashes, ...rest] = given;
  if (entryPoint === undefined || entryPoint === "")
    return "which entry point? They are in /etc/ai-tools/entrypoints.d";
  if (!/^[a-z0-9-]+$/.test(entryPoint) || entryPoint.startsWith("-")) {
    return `"${printable(entryPoint)}" is no name of an entry point (a to z, 0 to 9, -)`;
  }
  if (dashes === undefined) return [entryPoint];
  if (dashes !== "--") return "what is for the session comes after --";
  return [entryPoint, "--", ...rest];
}

function holdWords(given: readonly string[]): string[] | string {
  const [reason = "", ...more] = given;
  if (reason.startsWith("-")) return `${printable(reason)} is no option of it`;
  if (more.length > 0) return "a reason of several words needs quotes";
  return reason === "" ? ["hold"] : ["hold", reason];
}

function releaseWords(given: readonly string[]): string[] | string {
  return given.length === 0 ? ["release"] : "it takes nothing more: there is one hold";
}

/**
 * Does what a verb asks for, by its helper.
 * @param words what was typed after the verb
 * @returns the helper's exit code; `wrongForm` or `notRun` of the verb where no helper ran
 */
export async function throughSudo(ground: Ground, name: string, verb: Verb, words: readonly string[]): Promise<number> {
  const passed = verb.words(words);
  if (typeof passed === "string")
    return complain(verb.wrongForm, `${name}: ${passed}.\nTo be typed: ai-tools ${verb.form}`);
  const root = ground.isRoot();
  if (root && !verb.alsoRoot) {
    return complain(
      verb.notRun,
      `${name} is an operator's: what it does, it does for the person who asks, and root is nobody's.\n` +
        `Nothing was done. As a member of ai-ops: ai-tools ${verb.form}`,
    );
  }
  if (canKeysCome(ground)) for (const signal of [SIGINT, SIGQUIT]) os.signal(signal, () => undefined);
  // A caller that ignores SIGCHLD would take the exit code away, and the wait for it would never end.
  os.signal(SIGCHLD, null);
  const code = run(root ? [verb.helper, ...passed] : [sudo, "-n", verb.helper, ...passed]);
  const program = root ? verb.helper : sudo;
  // A session may end with 127 as well.
  if (code === notExecuted && isErrno(ground.lstat(program))) {
    return complain(verb.notRun, `${program} could not be executed: nothing was done. Reinstall the package`);
  }
  if (code === 1 && !root && !(await isGranted(ground, verb.helper))) return explainRefusal(verb.notRun);
  return code;
}

/**
 * A key at the terminal goes to the helper as well, and must not take the caller away meanwhile: it is caught, and not
 * ignored, since what is ignored here would be ignored in whatever is started. Without a terminal it is somebody who
 * sends the signal, and it reaches nobody but this process, as the helper is root's: its end tells the helper.
 */
function canKeysCome(ground: Ground): boolean {
  return ([0, 1, 2] as const).some((descriptor) => ground.isTerminal(descriptor));
}

/**
 * sudo's own refusal is a 1 as well, and a session's or helper's may be one: asked only then, by sudo's own list of the
 * caller's rules. `sudo -l HELPER` would say yes where it asks for a password first.
 */
async function isGranted(ground: Ground, helper: string): Promise<boolean> {
  const ran = await runProgram(ground, [sudo, "-n", "-l"], ground.nowMs() + listMs);
  return ran.kind === "ended" && ran.code === 0 && lastRuleFor(ran.output, helper)?.passwordless === true;
}

function explainRefusal(code: number): number {
  return complain(
    code,
    "sudo did not run the helper: nothing was done. An operator is in the group ai-ops (seen by `id` after a new\n" +
      "login), the rule is /etc/sudoers.d/ai-tools, and `ai-tools --status` says what is wrong with it",
  );
}

/** With the caller's environment: sudo takes from it what it is configured to keep, TERM for one. */
function run(argv: string[]): number {
  try {
    const code = os.exec(argv, { block: true, usePath: false });
    return code < 0 ? 128 - code : code;
  } catch {
    return complain(notExecuted, "no process could be started (fork failed)");
  }
}

function complain(code: number, text: string): number {
  say("err", `ai-tools: ${text}.\n`);
  return code;
}
