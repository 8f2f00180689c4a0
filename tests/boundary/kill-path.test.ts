// SPDX-License-Identifier: Apache-2.0
// Promise: between consent and verdict the helper starts no program and no process, and writes to nothing that could
// block: neither terminal nor log.

import { beforeEach, expect, test } from "vitest";

import { startPayloads } from "../../src/tooling/tempers/payloads.ts";
import { clearHost, killOfSlice, running } from "./kit/facts.ts";
import { labHost } from "./kit/host.ts";
import { helper, stopOnTerminal } from "./kit/stop.ts";

const host = await labHost();

beforeEach(() => clearHost(host));

test("strace of a whole run on a terminal shows it", async () => {
  await startPayloads(host, [
    { name: "1201", temper: "polite", place: "session" },
    { name: "1202", temper: "headless", place: "session" },
    { name: "1203", temper: "deaf", place: "exec" },
  ]);
  const { code } = await stopOnTerminal(
    host,
    ["strace", "-f", "-tt", "-y", "-o", "/run/trace", helper, "--force", "--yes"],
    async () => undefined,
  );
  expect(code).toBe(0);
  expect(await running(host)).toEqual([]);

  const lines = (await host.sh("cat /run/trace")).split("\n");
  // The entry of a running stop is made right after consent, before anything is killed; the verdict is known when the
  // record of the last stop is written.
  const consent = lines.findIndex((line) => /\/run\/ai-tools\/stop\/\d+-\d+/.test(line));
  const verdict = lines.findIndex((line) => line.includes("/run/ai-tools/last-stop.json"));
  const path = lines.slice(consent, verdict);
  expect(consent).toBeGreaterThan(0);
  expect(path.filter((line) => /\bpidfd_send_signal\(.*, SIGKILL,/.test(line)).length).toBeGreaterThanOrEqual(1);
  const writes = path.filter((line) => /write\(\d+<[^>]*cgroup\.kill>, "1/.test(line));
  expect(writes.length > 0).toBe((await killOfSlice(host)) === "cgroup-kill");
  expect(path.filter((line) => /\b(execve|execveat|fork|vfork|clone|clone3)\(/.test(line))).toEqual([]);
  const terminals = /write\w*\(\d+<\/dev\/(pts|tty|console)/;
  expect(path.filter((line) => terminals.test(line))).toEqual([]);
  // The recorder is a child that may hang alone: when it writes the log is its own affair.
  const helperPid = (lines[0] ?? "").split(" ")[0];
  const ofHelper = path.filter((line) => line.startsWith(`${helperPid} `));
  expect(ofHelper.length).toBeGreaterThan(10);
  expect(ofHelper.filter((line) => /write\w*\(\d+<([^>]*\.log|socket:|UNIX)/.test(line))).toEqual([]);
  expect(path.filter((line) => /write\w*\([12]</.test(line))).toEqual([]);
});
