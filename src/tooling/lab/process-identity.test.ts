// SPDX-License-Identifier: Apache-2.0
// A pid alone names nobody: only with its start time does it, and only that process may be signalled.

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { identityOf, isLiving, type ProcessIdentity, readProc, signalProcess, statFields } from "./process-identity.ts";

function sleeper(): { child: ChildProcess; identity: ProcessIdentity } {
  const child = spawn("sleep", ["60"], { stdio: "ignore" });
  onTestFinished(() => void child.kill("SIGKILL"));
  const identity = identityOf(child.pid ?? 0);
  if (identity === undefined) throw new Error("sleep could not be started");
  return { child, identity };
}

test("a process is living until it has ended", async () => {
  const { child, identity } = sleeper();
  expect(isLiving(identity)).toBe(true);
  expect(signalProcess(identity, "SIGKILL")).toBe(true);
  await once(child, "exit");
  expect(isLiving(identity)).toBe(false);
  expect(signalProcess(identity, "SIGKILL")).toBe(false);
});

test("a process that got the number of an earlier one is not taken for it and never signalled", () => {
  const { identity } = sleeper();
  const earlier = { ...identity, startTime: String(Number(identity.startTime) - 1) };
  expect(isLiving(earlier)).toBe(false);
  expect(signalProcess(earlier, "SIGKILL")).toBe(false);
  expect(isLiving(identity)).toBe(true);
});

test("a number that nobody has names nobody", () => {
  expect(identityOf(2 ** 22 + 1)).toBeUndefined();
});

test("a name made to look like the fields after it does not garble them", () => {
  const after = "S 1 7 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 4711 99";
  expect(statFields(`7 (a) R 1 (b) ${after}`)).toEqual({ state: "S", startTime: "4711", threads: 1 });
});

test("a process that has ended and waits to be reaped is not living", async () => {
  // What the shell becomes never reaps the child that the shell started; the shell itself might.
  const parent = spawn("sh", ["-c", "sleep 60 & echo $!; exec sleep 60"], { stdio: ["ignore", "pipe", "ignore"] });
  onTestFinished(() => void parent.kill("SIGKILL"));
  const [line] = (await once(parent.stdout, "data")) as [Buffer];
  const pid = Number(line.toString());
  while (readProc(`/proc/${parent.pid}/comm`) !== "sleep\n") await pause(5);
  process.kill(pid, "SIGKILL");
  while (!readProc(`/proc/${pid}/stat`)?.includes(") Z ")) await pause(5);
  const unreaped = identityOf(pid);
  expect(unreaped).toBeDefined();
  expect(isLiving(unreaped as ProcessIdentity)).toBe(false);
});

test("a process whose first thread has ended is living as long as another one does", async () => {
  const folder = mkdtempSync(join(tmpdir(), "ai-tools-headless-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const source = `#include <pthread.h>
    #include <unistd.h>
    static void *work(void *none) { write(1, "on", 2); sleep(60); return none; }
    int main(void) { pthread_t thread; pthread_create(&thread, 0, work, 0); pthread_exit(0); }`;
  const program = join(folder, "headless");
  execFileSync("gcc", ["-x", "c", "-", "-o", program, "-lpthread"], { input: source });
  const headless = spawn(program, { stdio: ["ignore", "pipe", "ignore"] });
  onTestFinished(() => void headless.kill("SIGKILL"));
  await once(headless.stdout, "data");
  while (!readProc(`/proc/${headless.pid}/stat`)?.includes(") Z ")) await pause(5);
  const identity = identityOf(headless.pid ?? 0) as ProcessIdentity;
  expect(isLiving(identity)).toBe(true);
  expect(signalProcess(identity, "SIGKILL")).toBe(true);
  await once(headless, "exit");
  expect(isLiving(identity)).toBe(false);
});
