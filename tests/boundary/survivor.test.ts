// SPDX-License-Identifier: Apache-2.0
// Promise: when something survives SIGKILL, the stop says so with 1, names it and what holds it, and everything else is
// gone all the same.

import { beforeEach, expect, test } from "vitest";
import { tempersOnHost } from "../../src/tooling/tempers/build-tempers.ts";
import { startPayloads } from "../../src/tooling/tempers/payloads.ts";
import { clearHost, running } from "./kit/facts.ts";
import { labHost } from "./kit/host.ts";
import { entryOf, frontDoor, lastStop, results, stopBy, stopWithReport } from "./kit/stop.ts";

const host = await labHost();
const held = "1501";
let pid = "";
let tracer = "";

beforeEach(async () => {
  await clearHost(host);
  await startPayloads(host, [
    { name: held, temper: "polite", place: "session" },
    { name: "1502", temper: "deaf", place: "exec" },
  ]);
  pid = (await host.sh("pgrep -x polite")).trim();
  await host.sh(`systemd-run --quiet --collect --unit=lab-tracer ${tempersOnHost}/tracing ${pid} 100`);
  tracer = (await host.sh("pgrep -x tracing")).trim();
});

test("a process that a tracer of somebody else holds at its exit is named with state, wait channel and tracer", async () => {
  const { code, report, entries } = await stopWithReport(host, "--force", "--yes");
  expect(code).toBe(1);
  expect(report).toMatchObject({ verdict: "incomplete", exitCode: 1 });
  expect(report.survivors).toMatchObject([
    { pid: Number(pid), command: "polite", state: "t", waitChannel: "ptrace_stop", tracer: Number(tracer) },
  ]);
  expect(report.rows.map(({ outcome }) => outcome).sort()).toEqual(["alive", "killed"]);
  expect(results(entries)).toEqual(["requested", "alive", "stray-ended", "incomplete"]);
  expect(await running(host)).toEqual([]);

  // Once the tracer has gone it is dead, and the next stop is clean.
  await host.sh(`kill -KILL ${tracer}`);
  expect((await stopWithReport(host, "--force", "--yes")).code).toBe(0);
});

test("the operator's front door gives 1, not a refusal, and tells what to do next", async () => {
  const { code, stdout, entries } = await stopBy(host, [frontDoor, "--stop"], { user: "olga" });
  await host.sh(`kill -KILL ${tracer}`);
  expect(code).toBe(1);
  expect(stdout).toMatch(/NOT STOPPED/);
  expect(stdout).toMatch(new RegExp(`ALIVE +pid ${pid} \\(polite\\).*traced by pid ${tracer}`));
  expect(stdout).toMatch(/run ai-tools --stop again/);
  expect(entryOf(entries, "incomplete").AI_TOOLS_CALLER).toBe("olga");
  expect(JSON.parse(await host.sh(`cat ${lastStop}`))).toMatchObject({ verdict: "incomplete", exitCode: 1 });
});
