// SPDX-License-Identifier: Apache-2.0
// What a program said and how it ended is passed on as it is.

import { expect, test } from "vitest";
import { runProgram } from "./program.ts";

test("exit code and both outputs are answered", async () => {
  const outcome = await runProgram(["sh", "-c", "echo out; echo err >&2; exit 7"]);
  expect(outcome).toEqual({ code: 7, stdout: "out\n", stderr: "err\n" });
});

test("a program that a signal ended has 128 and its number", async () => {
  expect((await runProgram(["sh", "-c", "kill -TERM $$"])).code).toBe(143);
});

test("standard input is what was given, and empty otherwise", async () => {
  expect((await runProgram(["cat"], { input: "hello" })).stdout).toBe("hello");
  expect((await runProgram(["cat"])).stdout).toBe("");
});

test("a program that does not read its input is no failure", async () => {
  expect((await runProgram(["true"], { input: "x".repeat(1_000_000) })).code).toBe(0);
});

test("a program that does not end in time is an error", async () => {
  await expect(runProgram(["sleep", "60"], { timeoutMs: 1 })).rejects.toThrow("sleep 60: no end within 1 ms");
});

test("a program that cannot be started is an error", async () => {
  await expect(runProgram(["/nonexistent/program"])).rejects.toThrow(/ENOENT/);
});
