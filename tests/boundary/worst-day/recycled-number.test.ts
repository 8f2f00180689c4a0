// SPDX-License-Identifier: Apache-2.0
// Promise: a number that comes round again is not mistaken. Whoever got the number of a session's process that has ended
// gets no signal of the stop, at whatever moment of it the number changed hands.

import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { startPayload } from "../../../src/tooling/tempers/payloads.ts";
import { expectAftermath, expectStopped, freshHost, measured, rounds, stopWatched } from "../kit/aftermath.ts";
import { startCommand, startCounting, temper, unitOf, untilCounting } from "../kit/commands.ts";
import { countersOf, eventually } from "../kit/facts.ts";
import { labHost } from "../kit/host.ts";
import { helper, question, stopOnTerminal } from "../kit/stop.ts";

/** For a busy machine. */
vi.setConfig({ testTimeout: 300_000 });

const host = await labHost();
const account = (await host.sh("id -u ai-tools")).trim();
const strangers = [(await host.sh("id -u ursula")).trim(), "0"];

beforeEach(() => freshHost(host));

/** The only process of a session's unit. */
async function mainPid(name: string): Promise<number> {
  return Number(await host.sh(`systemctl show -P MainPID ${unitOf(name)}`));
}

/** Lets a process of this uid take the number as soon as it is free. */
async function announceSuccessor(name: string, pid: number, uid: string): Promise<void> {
  await startCommand(host, name, "root", temper("successor", name, String(pid), uid));
  await eventually("the successor waits", async () => {
    return (await host.run(["pgrep", "-f", `successor .*/${name} `])).code === 0;
  });
}

/** It has the number that it waited for, works, and was told of no signal. */
async function expectUntouched(name: string, pid: number): Promise<void> {
  const [successor, ...more] = (await countersOf(host, name)).filter((counter) => counter.pid === pid);
  expect(more).toEqual([]);
  expect(successor).toMatchObject({ moves: true, terms: 0 });
  await host.sh(`systemctl kill -s KILL lab-command-${name}`);
}

// bazel 11910, psutil 2400
describe("whoever got the number, another user or root,", () => {
  /** Two sessions of this temper, whose numbers root and another user wait for. */
  async function startHeirs(kind: "stubborn" | "polite" | "deaf"): Promise<number[]> {
    const pids: number[] = [];
    for (const [index, uid] of strangers.entries()) {
      await startPayload(host, `231${index}`, kind, "session");
      pids[index] = await mainPid(`231${index}`);
      await announceSuccessor(`232${index}`, pids[index], uid);
    }
    return pids;
  }

  async function expectHeirsUntouched(pids: number[]): Promise<void> {
    for (const [index, pid] of pids.entries()) await expectUntouched(`232${index}`, pid);
  }

  test("while the question stood is not signalled", async () => {
    const pids = await startHeirs("stubborn");
    const { code } = await stopOnTerminal(host, [helper], async (terminal) => {
      await terminal.waitFor(question, 60_000);
      await host.sh(`kill -KILL ${pids.join(" ")}`);
      for (const index of pids.keys()) await untilCounting(host, `232${index}`);
      terminal.type("\r");
    });
    expect(code).toBe(0);
    await expectHeirsUntouched(pids);
    await expectAftermath(host);
  });

  test.each(rounds())("in the grace is not signalled (round %i)", async () => {
    const pids = await startHeirs("polite");
    await startPayload(host, "2330", "stubborn", "session");
    const result = await stopWatched(host, "--yes");
    await expectStopped(host, result, {
      outcomes: {
        [unitOf("2310")]: "terminated",
        [unitOf("2311")]: "terminated",
        [unitOf("2330")]: "killed",
      },
      running: ["2320", "2321"],
    });
    await expectHeirsUntouched(pids);
    await expectAftermath(host, result.report);
  });

  test.each(rounds())("in the kill is not signalled (round %i)", async () => {
    const pids = await startHeirs("deaf");
    const result = await stopWatched(host, "--yes", "--force");
    await expectStopped(host, result, {
      outcomes: { [unitOf("2310")]: "killed", [unitOf("2311")]: "killed" },
      running: ["2320", "2321"],
    });
    await expectHeirsUntouched(pids);
    await expectAftermath(host, result.report);
  });
});

test("a process of the account that got the number in the grace is a newcomer: it gets no SIGTERM, and is ended", async () => {
  await startPayload(host, "2341", "polite", "session");
  await startPayload(host, "2342", "stubborn", "session");
  const pid = await mainPid("2341");
  await announceSuccessor("2343", pid, account);
  const result = await stopWatched(host, "--yes");
  await expectStopped(host, result, { outcomes: { [unitOf("2342")]: "killed" } });
  const successor = (await countersOf(host, "2343")).find((counter) => counter.pid === pid);
  expect(successor).toMatchObject({ moves: false, terms: 0 });
  expect(successor?.ticks).toBeGreaterThan(0);
  await expectAftermath(host, result.report);
});

describe("where numbers come round every moment", () => {
  const fewNumbers = 2_000;
  const allNumbers = host.sh("mount -o remount,bind,rw /proc/sys && cat /proc/sys/kernel/pid_max");
  const setNumbers = async (most: number | string) => host.sh(`echo ${most} >/proc/sys/kernel/pid_max`);
  const asUser = (user: string) => `setpriv --reuid=${user} --regid=${user} --clear-groups`;

  beforeEach(async () => {
    await allNumbers;
    await setNumbers(fewNumbers);
  });
  afterEach(async () => setNumbers((await allNumbers).trim()));
  afterAll(() => host.sh("mount -o remount,bind,ro /proc/sys"));

  test.each(rounds())("no child of anybody else's is ended by a signal (round %i)", async () => {
    for (const user of ["olga", "ursula"]) {
      await startCounting(host, user, "root", `${asUser(user)} ${temper("churning", user)}`);
    }
    await startPayload(host, "2351", "scattered", "session");
    await startPayload(host, "2352", "deaf", "exec");
    const before = await countersOf(host, "olga");
    const { code, report } = await stopWatched(host, "--yes", "--force");
    expect({ code, survivors: report.survivors }).toEqual({ code: 0, survivors: [] });
    for (const user of ["olga", "ursula"]) {
      expect(await countersOf(host, user)).toMatchObject([{ moves: true, terms: 0, signs: 0 }]);
    }
    const children = ((await countersOf(host, "olga"))[0]?.ticks ?? 0) - (before[0]?.ticks ?? 0);
    measured("numbers given out by one of two", { children, numbers: fewNumbers });
    await host.sh(
      "systemctl kill -s KILL lab-command-olga lab-command-ursula; rm -f /run/lab/counters/olga /run/lab/counters/ursula",
    );
    await expectAftermath(host, report);
  });
});
