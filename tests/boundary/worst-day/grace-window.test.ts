// SPDX-License-Identifier: Apache-2.0
// Promise: the grace is one window for everything, and nothing that a session does moves its end.

import { beforeEach, expect, test } from "vitest";

import { limits } from "../../../src/stop/limits.ts";
import { countersOnHost, tempersOnHost } from "../../../src/tooling/tempers/build-tempers.ts";
import { expectAftermath, expectStopped, freshHost, measured } from "../kit/aftermath.ts";
import { countersOf, eventually, readCounters } from "../kit/facts.ts";
import { labHost } from "../kit/host.ts";
import { stopWithReport } from "../kit/stop.ts";

const host = await labHost();
const session = "ai-tools-claude-code-3951.service";

beforeEach(() => freshHost(host));

// docker 1299, claude-code 82433: whoever is asked to end starts something new instead
test("a session that starts something new each second gets no second more than the others", async () => {
  await host.sh(`systemd-run --quiet --collect --uid=ai-tools --gid=ai-tools --slice=user-$(id -u ai-tools).slice \\
    --unit=${session} ${tempersOnHost}/restless ${countersOnHost}/3951`);
  await eventually("it runs", async () => (await readCounters(host)).some(({ payload }) => payload === "3951"));
  const result = await stopWithReport(host, "--yes");
  const newcomers = (await countersOf(host, "3951")).map(({ signs }) => signs);
  measured("grace", { durationMs: result.report.durationMs, newcomers });
  await expectStopped(host, result, { outcomes: { [session]: "killed" } });
  // Grace and kill have these limits; the session is good for 26 s.
  expect(result.report.durationMs).toBeLessThan(limits.graceMs + limits.killMs);
  expect(newcomers[0]).toBeGreaterThan(3);
  await expectAftermath(host, result.report);
});
