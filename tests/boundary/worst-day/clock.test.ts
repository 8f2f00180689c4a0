// SPDX-License-Identifier: Apache-2.0
// Promise: whatever somebody does to the wall clock while a stop runs moves no limit of it: the grace is neither cut short
// nor drawn out, and nothing is waited for until the day comes round again. Only the times in its records tell of it.
//
// The wall clock of a container is this machine's, so it jumps for the helper alone (tempers/skewed.c), at its first
// signal: that is when its longest waits begin. A clock that jumps for PID 1 as well is left to the virtual machines.

import { beforeEach, expect, test, vi } from "vitest";

import { limits } from "../../../src/stop/limits.ts";
import { tempersOnHost } from "../../../src/tooling/tempers/build-tempers.ts";
import { startPayloads } from "../../../src/tooling/tempers/payloads.ts";
import { expectAftermath, expectStopped, freshHost } from "../kit/aftermath.ts";
import { unitOf } from "../kit/commands.ts";
import { countersOf } from "../kit/facts.ts";
import { labHost } from "../kit/host.ts";
import { watchingInit } from "../kit/init.ts";
import { helper, type Report, stopBy } from "../kit/stop.ts";

/** For a busy machine. */
vi.setConfig({ testTimeout: 300_000 });

const host = await labHost();
const dayS = 86_400;
const stray = "lab-stray-2803.service";

await host.enableLinger();

beforeEach(async () => {
  await freshHost(host);
  await host.sh("systemctl start user@$(id -u ai-tools).service");
  await startPayloads(host, [
    { name: "2801", temper: "saving", place: "session" },
    { name: "2802", temper: "deaf", place: "own-manager" },
    { name: "2803", temper: "stubborn", place: "system-unit" },
  ]);
});

test.each([
  ["forward, with --force", dayS, ["--force"]],
  ["forward, with a grace", dayS, []],
  ["back, with --force", -dayS, ["--force"]],
  ["back, with a grace", -dayS, []],
])("the wall clock jumps by a day: %s", async (_, seconds, options) => {
  const argv = [`${tempersOnHost}/skewed`, String(seconds), helper, "--yes", "--json", ...options];
  const stopped = await watchingInit(host, () => stopBy(host, argv));
  const report: Report = { ...JSON.parse(stopped.stdout), lingered: stopped.lingered };

  const [requested, verdict] = ["requested", "stopped"].map((result) =>
    Date.parse(String(stopped.entries.find((entry) => entry.AI_TOOLS_RESULT === result)?.time)),
  );
  const apartS = ((verdict ?? Number.NaN) - (requested ?? Number.NaN)) / 1_000;
  expect(Math.round((apartS - seconds) / 3_600), "hours between the jump and the records' own").toBe(0);

  const graceful = options.length === 0;
  await expectStopped(
    host,
    { ...stopped, report },
    {
      outcomes: { [unitOf("2801")]: graceful ? "terminated" : "killed", [unitOf("2802")]: "killed", [stray]: "killed" },
    },
  );
  expect(report.durationMs).toBeGreaterThan(graceful ? limits.graceMs : 0);
  const saved = (await countersOf(host, "2801")).reduce((sum, { signs }) => sum + signs, 0);
  expect(saved, "the session that saves its work got its time").toBe(graceful ? 1 : 0);
  await expectAftermath(host, report);
});
