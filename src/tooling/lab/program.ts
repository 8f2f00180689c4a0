// SPDX-License-Identifier: Apache-2.0
// Runs one program to its end and keeps what it said: how the lab talks to the Docker command line.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { constants } from "node:os";

export interface Outcome {
  /** The exit code; 128+n when signal n ended it. */
  code: number;
  stdout: string;
  stderr: string;
}

export interface ProgramOptions {
  /** Given on standard input; without it standard input is empty. */
  input?: string | Uint8Array;
  /** Longest wait in milliseconds; then the program gets SIGKILL and the answer is an error. Default: 60 s. */
  timeoutMs?: number;
  /** Added to this process's own environment. */
  env?: Record<string, string>;
}

const DEFAULT_LIMIT_MS = 60_000;

/**
 * Runs a program and answers with its exit code and output, whatever they are.
 * @throws when it cannot be started, or has not ended within its limit (then with what it said so far)
 */
export async function runProgram(argv: [string, ...string[]], options: ProgramOptions = {}): Promise<Outcome> {
  const [program, ...rest] = argv;
  const child = spawn(program, rest, { stdio: ["pipe", "pipe", "pipe"], env: { ...process.env, ...options.env } });
  const said = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
  child.stdout.on("data", (bytes: Buffer) => said.stdout.push(bytes));
  child.stderr.on("data", (bytes: Buffer) => said.stderr.push(bytes));
  // A program that ends before it has read its input is no failure of ours: its exit code says what happened.
  child.stdin.on("error", () => undefined);
  child.stdin.end(options.input ?? "");

  const limitMs = options.timeoutMs ?? DEFAULT_LIMIT_MS;
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    child.kill("SIGKILL");
    // A descendant may hold the pipes open: what it says is no longer of interest.
    child.stdout.destroy();
    child.stderr.destroy();
  }, limitMs);
  const [code, signal] = (await once(child, "close").finally(() => clearTimeout(timer))) as [
    number | null,
    NodeJS.Signals | null,
  ];
  const outcome = {
    code: code ?? 128 + constants.signals[signal ?? "SIGKILL"],
    stdout: Buffer.concat(said.stdout).toString("utf8"),
    stderr: Buffer.concat(said.stderr).toString("utf8"),
  };
  if (late) throw new Error(`${argv.join(" ")}: no end within ${limitMs} ms\n${outcome.stdout}${outcome.stderr}`);
  return outcome;
}
