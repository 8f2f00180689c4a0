// SPDX-License-Identifier: Apache-2.0
// Promise: a stop may be asked for again, by several people at once, and while another one runs; each gives its own
// verified verdict.

import { beforeEach, expect, test } from "vitest";

import { startAccountManager, startPayloads } from "../../src/tooling/tempers/payloads.ts";
import { accountProcesses, clearHost, eventually, running } from "./kit/facts.ts";
import { labHost } from "./kit/host.ts";
import { helper, stop, stopWithReport } from "./kit/stop.ts";

const host = await labHost();
const counter = "stat -c %s /run/ai-tools/stop/count 2>/dev/null || echo 0";

beforeEach(async () => {
  await clearHost(host);
  await startAccountManager(host);
  await startPayloads(host, [
    { name: "1301", temper: "deaf", place: "session" },
    { name: "1302", temper: "polite", place: "own-manager" },
    { name: "1303", temper: "deaf", place: "exec" },
  ]);
});

test("a second stop right after the first is clean", async () => {
  expect((await stop(host, "--force", "--yes")).code).toBe(0);
  const { code, report } = await stopWithReport(host, "--force", "--yes");
  expect(code).toBe(0);
  expect(report.rows.every(({ kind }) => kind === "plumbing")).toBe(true);
  expect(await accountProcesses(host)).toEqual([]);
});

test("a stop that runs can be seen by everybody, and not any more when it is over", async () => {
  const stopping = stop(host, "--yes");
  await eventually("the grace has begun", async () => !(await running(host)).includes("1302"));
  const entries = await host.sh("ls /run/ai-tools/stop", { user: "ursula" });
  const [pid, startTime] = (/^(\d+)-(\d+)$/m.exec(entries) ?? []).slice(1);
  expect(await host.sh(`cut -d' ' -f2,22 /proc/${pid}/stat`)).toBe(`(ai-tools-stop) ${startTime}\n`);
  expect((await stopping).code).toBe(0);
  expect(await host.sh("ls /run/ai-tools/stop")).toBe("count\n");
});

test("three stops at once all end with 0 and the manager comes back once", async () => {
  const raised = Number(await host.sh(counter));
  const all = ["--force", "", "--force"].map(
    (option) => `${helper} ${option} --yes >/run/report-$$ 2>&1; echo $? >>/run/codes`,
  );
  await host.sh("rm -f /run/codes");
  await host.sh(`${all.map((command) => `( ${command} ) &`).join("\n")}\nwait`, { timeoutMs: 90_000 });
  expect((await host.sh("cat /run/codes")).split("\n")).toEqual(["0", "0", "0", ""]);
  expect(await running(host)).toEqual([]);
  expect(await accountProcesses(host)).toEqual([]);
  expect((await host.sh("systemctl is-active user@$(id -u ai-tools).service")).trim()).toBe("active");
  expect(Number(await host.sh(counter))).toBe(raised + 3);
  expect(await host.sh("ls /run/ai-tools/stop")).toBe("count\n");
});
