// SPDX-License-Identifier: Apache-2.0
// Promise: no session outgrows a stop, in the slice, below the account's manager or outside both.

import { afterAll, beforeEach, describe, expect, test } from "vitest";

import { countersOnHost, tempersOnHost } from "../../../../src/tooling/tempers/build-tempers.ts";
import { startAccountManager } from "../../../../src/tooling/tempers/payloads.ts";
import { expectAftermath, expectStopped, freshHost, rounds } from "../../kit/aftermath.ts";
import { clearHost, eventually } from "../../kit/facts.ts";
import { labHost } from "../../kit/host.ts";
import { helper, rowOf, stopByScript } from "../../kit/stop.ts";
import { everywhere, moreProcesses, sessionUnit, stopAmid, withReport } from "../../kit/units.ts";

const host = await labHost();

beforeEach(() => freshHost(host));
afterAll(() => clearHost(host));

// kernel commit b69bb476dee9: a fork can race the kill of a cgroup
// Outside the slice nothing ends all of it at once, and each one that is killed makes room for another.
describe.each(everywhere)("a fork storm that grows, a unit of %s", (manager) => {
  async function stopStorm(...options: string[]): Promise<void> {
    if (manager === "own manager") await startAccountManager(host);
    // The kernel counts the account's processes over all hosts of a machine, so that it may not come to its own limit.
    const result = await stopAmid(host, { manager, name: "201", temper: "storm" }, moreProcesses(100), ...options);
    await expectStopped(host, result, { outcomes: { [sessionUnit("201")]: "killed" } });
    expect(rowOf(result.report, sessionUnit("201")).processes).toBeGreaterThanOrEqual(100);
    await expectAftermath(host, result.report);
  }

  test.each(rounds())("is ended whole, round %i", () => stopStorm("--force"));

  test("is ended whole after a grace in which it grew on", () => stopStorm());
});

// sudo stops itself, for good, with a child that is stopped: where storms are stopped before they are killed.
test("the sudo above a fork storm ends with it", async () => {
  const storm = `${tempersOnHost}/storm ${countersOnHost}/203 60`;
  const result = await stopByScript(
    host,
    `set -- /proc/[0-9]*; before=$#
     systemd-run --quiet --collect --unit=lab-command-203 sudo -u ai-tools ${storm} || exit
     until ${moreProcesses(100)}; do sleep 0.05; done; exec ${helper} --json --yes --force`,
  );
  await expectStopped(host, withReport(result, result.stdout));
  await eventually("sudo has ended", async () => (await host.run(["pgrep", "-x", "sudo"])).code === 1, 30_000);
});

// The end of its own, on which whoever runs these tests relies.
test("a fork storm that nobody stops ends after its seconds", async () => {
  const storm = `${tempersOnHost}/storm ${countersOnHost}/202 6`;
  const asAccount = "setpriv --reuid=ai-tools --regid=ai-tools --clear-groups setsid --fork";
  const counts = await host.sh(`set -- /proc/[0-9]*; before=$#; ${asAccount} ${storm} </dev/null >/dev/null 2>&1
    sleep 3; set -- /proc/[0-9]*; echo $(($# - before)); sleep 12; pgrep -c -x storm; true`);
  const [during = 0, after] = counts.trim().split("\n").map(Number);
  expect(during).toBeGreaterThan(50);
  expect(after).toBe(0);
});
