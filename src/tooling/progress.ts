// SPDX-License-Identifier: Apache-2.0
// What a person sees while a command works: one line when a step begins and one when it ends. The long output of
// other programs goes to build/logs/, and its end is shown when the program fails.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdirSync, openSync, readFileSync, renameSync } from "node:fs";
import { constants } from "node:os";
import { onExit, Refusal } from "./cleanup.ts";
import { inProject, projectRoot } from "./machine.ts";

const LAST_LINES = 30;

/** Prints one line for the person at the terminal. */
export function say(text: string): void {
  console.log(text);
}

/** Does one piece of work, with a line when it begins and a line with its seconds when it ends, well or not. */
export async function step<T>(title: string, work: () => Promise<T> | T): Promise<T> {
  const startedMs = performance.now();
  const seconds = () => `${((performance.now() - startedMs) / 1000).toFixed(1)} s`;
  say(`[${title}] ...`);
  try {
    const result = await work();
    say(`[${title}] done in ${seconds()}`);
    return result;
  } catch (error) {
    say(`[${title}] FAILED after ${seconds()}`);
    throw error;
  }
}

export interface LoggedOptions {
  cwd?: string;
  /** Added to this process's own environment. */
  env?: Record<string, string>;
  /** Answer the exit code instead of throwing when it is not 0. */
  anyCode?: boolean;
  /** Ctrl-C waits for it instead of ending it (a package manager must not be cut off half-way). */
  uninterruptible?: boolean;
}

export interface LoggedResult {
  code: number;
  /** All that it wrote to standard output and standard error, in order. */
  output: string;
  logPath: string;
}

let runs = 0;

/**
 * Runs a program with its output in `build/logs/NAME.log` (with a number behind it while the program runs, so that two
 * commands at work do not mix theirs).
 * @throws Refusal with the last 30 lines when the program cannot be started or its exit code is not 0
 */
export async function logged(
  name: string,
  argv: [string, ...string[]],
  options: LoggedOptions = {},
): Promise<LoggedResult> {
  const logPath = inProject("build", "logs", `${name}.log`);
  mkdirSync(inProject("build", "logs"), { recursive: true });
  const whileRunning = `${logPath}.${process.pid}-${++runs}`;
  const code = await exitCode(argv, openSync(whileRunning, "w"), options);
  const output = readFileSync(whileRunning, "utf8");
  renameSync(whileRunning, logPath);
  if (code === 0 || options.anyCode) return { code, output, logPath };
  throw new Refusal(`${lastLines(output)}\n${argv[0]} ended with ${code} (log: build/logs/${name}.log)`);
}

async function exitCode(
  [program, ...rest]: [string, ...string[]],
  log: number,
  options: LoggedOptions,
): Promise<number> {
  const child = spawn(program, rest, {
    cwd: options.cwd ?? projectRoot,
    env: { ...process.env, ...options.env },
    stdio: ["ignore", log, log],
    // A process group of its own: Ctrl-C reaches it through the cleanup below, with everything it started.
    detached: true,
  });
  closeSync(log);
  const ended = once(child, "exit") as Promise<[number | null, NodeJS.Signals | null]>;
  const forget = onExit(async () => {
    if (child.pid !== undefined && !options.uninterruptible) process.kill(-child.pid, "SIGTERM");
    await ended;
  }, program);
  try {
    const [code, signal] = await ended;
    return code ?? 128 + constants.signals[signal ?? "SIGKILL"];
  } catch (error) {
    throw new Refusal(`${program} cannot be started: ${error instanceof Error ? error.message : error}`);
  } finally {
    forget();
  }
}

/**
 * Runs a program on this terminal, so that its own progress is seen; Ctrl-C waits until it has ended what it started.
 * @returns its exit code, 128+n for a signal n
 */
export async function attached(argv: [string, ...string[]], env: Record<string, string> = {}): Promise<number> {
  const [program, ...rest] = argv;
  const child = spawn(program, rest, {
    cwd: projectRoot,
    env: { ...process.env, ...env },
    stdio: ["ignore", "inherit", "inherit"],
  });
  const ended = once(child, "exit") as Promise<[number | null, NodeJS.Signals | null]>;
  const forget = onExit(async () => {
    child.kill("SIGTERM");
    await ended;
  }, program);
  try {
    const [code, signal] = await ended;
    return code ?? 128 + constants.signals[signal ?? "SIGKILL"];
  } finally {
    forget();
  }
}

/** The end of a long output, for a message. */
export function lastLines(output: string, count: number = LAST_LINES): string {
  return output.trimEnd().split("\n").slice(-count).join("\n");
}
