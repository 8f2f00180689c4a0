// SPDX-License-Identifier: Apache-2.0
// Ends what a command started: rooms register a cleanup where they start something, and it runs once, whether the
// command ends well, fails, or is interrupted.

import { constants } from "node:os";

export type Cleanup = () => Promise<void> | void;

/** Longest wait for one cleanup; one that hangs must not keep the ones after it from running. */
const CLEANUP_LIMIT_MS = 60_000;
const INTERRUPTIONS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

const registered: { title: string; cleanup: Cleanup }[] = [];
let running: Promise<void> | undefined;

/**
 * Registers what ends something. The last one registered runs first.
 * @param title what is ended, for the message when that fails, e.g. `lab host trixie-1`
 * @returns takes the registration back, for what has been ended already
 */
export function onExit(cleanup: Cleanup, title = "a cleanup"): () => void {
  const entry = { title, cleanup };
  registered.push(entry);
  return () => {
    const index = registered.indexOf(entry);
    if (index >= 0) registered.splice(index, 1);
  };
}

/**
 * Runs a whole command and then every cleanup, also on Ctrl-C, SIGTERM and SIGHUP.
 * @param main the command; its number is the exit code
 */
export async function endingCleanly(main: () => Promise<number>): Promise<never> {
  const interrupted = new Promise<number>((resolve) => {
    for (const signal of INTERRUPTIONS) process.on(signal, () => resolve(128 + constants.signals[signal]));
  });
  // A closed terminal must not end this process in the middle of its cleanups: what it prints is lost, and that is all.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);
  const code = await Promise.race([interrupted, main().catch(reportFailure)]);
  if (code > 128 && registered.length > 0) console.error("\ninterrupted: ending what was started ...");
  const clean = await runCleanups();
  process.exit(code === 0 && !clean ? 1 : code);
}

/** Runs all cleanups that are registered, each within its limit. false: at least one failed (it was named). */
export async function runCleanups(): Promise<boolean> {
  let clean = true;
  running ??= (async () => {
    for (let entry = registered.pop(); entry; entry = registered.pop()) {
      const problem = await problemOf(entry.cleanup);
      if (problem === undefined) continue;
      clean = false;
      console.error(`could not end ${entry.title}: ${problem}`);
    }
  })();
  await running;
  running = undefined;
  return clean;
}

async function problemOf(cleanup: Cleanup): Promise<string | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<string>((resolve) => {
    timer = setTimeout(() => resolve(`no answer within ${CLEANUP_LIMIT_MS / 1000} s`), CLEANUP_LIMIT_MS);
  });
  try {
    return await Promise.race([late, Promise.resolve(cleanup()).then(() => undefined)]);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    clearTimeout(timer);
  }
}

/** An error that is an answer to the person at the terminal: its text says what to do, and no stack is shown. */
export class Refusal extends Error {}

function reportFailure(error: unknown): number {
  if (error instanceof Refusal) console.error(error.message);
  else console.error(error instanceof Error ? (error.stack ?? error.message) : String(error));
  return 1;
}
