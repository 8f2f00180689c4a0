// SPDX-License-Identifier: Apache-2.0
// Promise: a tracer cannot hide whom it holds. The account's own tracers are ended together with those that they hold;
// somebody else's tracer is named beside the process that it keeps alive, with exit code 1, and 0 follows once it is gone.

import { beforeEach, describe, expect, test, vi } from "vitest";

import { tempersOnHost } from "../../../src/tooling/tempers/build-tempers.ts";
import { expectAftermath, expectStopped, freshHost, stopWatched } from "../kit/aftermath.ts";
import { accountPlaces, pidOf, startCommand, startCounting, temper, unitOf } from "../kit/commands.ts";
import { eventually } from "../kit/facts.ts";
import { labHost } from "../kit/host.ts";
import { frontDoor, stopBy } from "../kit/stop.ts";

/** For a busy machine. */
vi.setConfig({ testTimeout: 300_000 });

const host = await labHost();
const uid = (await host.sh("id -u ai-tools")).trim();
await host.enableLinger();

beforeEach(async () => {
  await freshHost(host);
  await host.sh(`systemctl start user@${uid}.service`);
});

const tracing = (pid: number) => `${tempersOnHost}/tracing ${pid} 100`;

async function untilTraced(pid: number): Promise<number> {
  let tracer = "0";
  await eventually(`${pid} is traced`, async () => {
    tracer = (await host.sh(`sed -n 's/^TracerPid:\\t//p' /proc/${pid}/status`)).trim();
    return tracer !== "0";
  });
  return Number(tracer);
}

describe("a tracer of the account's", () => {
  test("is ended with those whom it holds, in every place", async () => {
    for (const [number, where] of accountPlaces.entries()) {
      await startCounting(host, `220${number}`, where, temper("holding", `220${number}`), 3);
    }
    const result = await stopWatched(host, "--yes", "--force");
    await expectStopped(host, result);
    await expectAftermath(host, result.report);
  });

  test("is ended with those whom it holds after the grace", async () => {
    await startCounting(host, "2204", "session", temper("holding", "2204"), 3);
    const result = await stopWatched(host, "--yes");
    await expectStopped(host, result, { outcomes: { [unitOf("2204")]: "killed" } });
    await expectAftermath(host, result.report);
  });

  test.each([
    ["outside the slice holds one inside", "exec", "session"],
    ["inside the slice holds one outside", "session", "system-unit"],
  ] as const)("%s", async (_, tracerAt, tracedAt) => {
    await startCounting(host, "2205", tracedAt, temper("deaf", "2205"));
    const pid = await pidOf(host, "deaf");
    await startCommand(host, "2206", tracerAt, tracing(pid));
    await untilTraced(pid);
    const result = await stopWatched(host, "--yes", "--force");
    await expectStopped(host, result);
    await expectAftermath(host, result.report);
  });
});

describe("a tracer of somebody else's", () => {
  const tracers = {
    "an operator's":
      "setpriv --reuid=olga --regid=olga --clear-groups --inh-caps=+sys_ptrace --ambient-caps=+sys_ptrace",
    "root's": "",
  };

  test.each(Object.entries(tracers))(
    "%s: named with its pid and 1, for a process in the slice and a stray; 0 once it is gone",
    async (_, as) => {
      await startCounting(host, "2211", "session", temper("deaf", "2211"));
      await startCounting(host, "2212", "exec", temper("stubborn", "2212"));
      await startCounting(host, "2213", "session", temper("polite", "2213"));
      const pids = [await pidOf(host, "deaf"), await pidOf(host, "stubborn")];
      for (const pid of pids) await startCommand(host, String(pid), "root", `${as} ${tracing(pid)}`);
      const survivors: { pid: number; state: string; waitChannel: string; tracer: number }[] = [];
      for (const pid of pids) {
        survivors.push({ pid, state: "t", waitChannel: "ptrace_stop", tracer: await untilTraced(pid) });
      }
      const first = await stopWatched(host, "--yes");
      first.report.survivors.sort((a, b) => pids.indexOf(a.pid) - pids.indexOf(b.pid));
      await expectStopped(host, first, {
        code: 1,
        survivors,
        outcomes: { [unitOf("2211")]: "alive", [unitOf("2213")]: "terminated" },
      });
      expect(first.report.rows.filter(({ kind }) => kind === "stray").map(({ outcome }) => outcome)).toEqual(["alive"]);

      await host.sh(`kill -KILL ${survivors.map(({ tracer }) => tracer).join(" ")}`);
      const second = await stopBy(host, [frontDoor, "--stop"], { user: "olga" });
      expect(second.code).toBe(0);
      await expectAftermath(host);
    },
  );
});
