// SPDX-License-Identifier: Apache-2.0
// Promise: whatever temper a session has and wherever it lives, a stop ends every process of it, and says how.

import { beforeEach, describe, expect, test } from "vitest";

import {
  type Place,
  startAccountManager,
  startPayload,
  startPayloads,
  type Temper,
} from "../../src/tooling/tempers/payloads.ts";
import { accountProcesses, clearHost, countersOf, running } from "./kit/facts.ts";
import { labHost } from "./kit/host.ts";
import { rowOf, stop, stopWithReport } from "./kit/stop.ts";

const host = await labHost();

const tempers: Temper[] = ["polite", "deaf", "stubborn", "scattered", "headless", "stopped", "restarting", "saving"];
const places: Place[] = ["session", "own-manager", "own-manager-always", "system-unit", "exec"];

beforeEach(() => clearHost(host));

describe("after a stop with --force nothing of any temper is left that lived", () => {
  test.each(places)("in the place %s", async (place) => {
    if (place.startsWith("own-manager")) await startAccountManager(host);
    await startPayloads(
      host,
      tempers.map((temper, number) => ({ name: String(201 + number), temper, place })),
    );
    expect(await running(host)).toHaveLength(tempers.filter((temper) => temper !== "stopped").length);

    const { code } = await stop(host, "--force", "--yes");

    expect(code).toBe(0);
    expect(await running(host)).toEqual([]);
    expect(await accountProcesses(host)).toEqual([]);
  });
});

// One grace for all of these: claude-code 82433, 33947, 25963, gemini-cli 20941, pi 9460, codex 21994 are each one of them.
test("a stop asks once, gives one grace to all, then kills, and tells of each which it was", async () => {
  const numbers = new Map<Temper, string>(tempers.map((temper, number) => [temper, String(301 + number)]));
  await startPayloads(
    host,
    [...numbers].map(([temper, name]) => ({ name, temper, place: "session" })),
  );

  const { code, report } = await stopWithReport(host, "--yes");

  const outcomes = Object.fromEntries(
    [...numbers].map(([temper, number]) => [temper, rowOf(report, unit(number)).outcome]),
  );
  expect(outcomes).toEqual({
    polite: "terminated",
    stopped: "terminated",
    saving: "terminated",
    deaf: "killed",
    stubborn: "killed",
    scattered: "killed",
    headless: "killed",
    restarting: "killed",
  });
  expect(code).toBe(0);
  expect(await running(host)).toEqual([]);
  expect(await accountProcesses(host)).toEqual([]);

  // SIGTERM came exactly once, and never to the newcomer that a polite session started to save its work.
  expect((await countersOf(host, numbers.get("stubborn") ?? "")).map(({ terms }) => terms)).toEqual([1]);
  expect((await countersOf(host, numbers.get("saving") ?? "")).map(({ terms, signs }) => ({ terms, signs }))).toEqual([
    { terms: 1, signs: 0 },
    { terms: 0, signs: 1 },
  ]);
});

test("a session and a stray of the same stop are told apart, and both are gone", async () => {
  await startPayloads(host, [
    { name: "401", temper: "polite", place: "session" },
    { name: "402", temper: "deaf", place: "system-unit" },
    { name: "403", temper: "polite", place: "exec" },
  ]);

  const { code, report } = await stopWithReport(host, "--force", "--yes");

  expect(code).toBe(0);
  expect(rowOf(report, unit("401")).kind).toBe("session");
  expect(rowOf(report, "lab-stray-402.service").kind).toBe("stray");
  expect(report.rows.filter(({ kind }) => kind === "stray")).toHaveLength(2);
  expect(await running(host)).toEqual([]);
});

test("a slice that somebody left frozen, with no room for a new cgroup, is thawed so that the polite can obey", async () => {
  await startPayload(host, "411", "polite", "session");
  const slice = `/sys/fs/cgroup/user.slice/user-${(await host.sh("id -u ai-tools")).trim()}.slice`;
  await host.sh(`echo 0 >${slice}/cgroup.max.descendants; echo 1 >${slice}/cgroup.freeze`);
  expect(await running(host)).toEqual([]);

  const { code, report } = await stopWithReport(host, "--yes");

  expect(code).toBe(0);
  expect(rowOf(report, unit("411")).outcome).toBe("terminated");
  await startPayload(host, "412", "polite", "session");
  expect(await host.sh(`cat ${slice}/cgroup.max.descendants ${slice}/cgroup.freeze`)).toBe("max\n0\n");
});

test("with nothing running a stop says so and ends with 0", async () => {
  await host.sh("systemctl stop user@$(id -u ai-tools).service");
  const { code, report } = await stopWithReport(host);
  expect(code).toBe(0);
  expect(report.verdict).toBe("nothing-running");
});

function unit(number: string): string {
  return `ai-tools-claude-code-${number}.service`;
}
