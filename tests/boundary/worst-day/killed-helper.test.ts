// SPDX-License-Identifier: Apache-2.0
// Promise: wherever a helper is killed or interrupted, nothing is left that hinders anybody, and running again is the
// remedy: the second stop ends with 0 and the manager is back. Until the kill begins SIGINT and SIGTERM take a stop back;
// no other signal does, and none once it has begun.

import { afterAll, beforeEach, describe, expect, test } from "vitest";

import { startAccountManager, startPayloads } from "../../../src/tooling/tempers/payloads.ts";
import { bystanders } from "../kit/aftermath.ts";
import { calmHost, expectCalm, expectUnhampered, lookForCalm } from "../kit/calm.ts";
import { type Call, forks, helperWith, sliceOf } from "../kit/faults.ts";
import { labHost } from "../kit/host.ts";
import { results, stopBy, stopWithReport } from "../kit/stop.ts";

const host = await labHost();
const slice = await sliceOf(host);
const note = "/run/ai-tools/stop/restore-wanted";

/** When a step is: before anything is touched, in the grace, or once the kill has begun. */
type Phase = "before" | "grace" | "kill";

interface Step {
  name: string;
  phase: Phase;
  call: Call;
  options: string[];
}

const atOnce = ["--force", "--yes"];
const withGrace = ["--yes"];

/** The steps of a stop in their order, each by a system call that belongs to it alone. */
const steps: Step[] = [
  step("learning the account's numbers", "before", { calls: "openat", path: "/etc/passwd", when: "1" }),
  step("starting the recorder", "before", { calls: forks, when: "1" }),
  step("the first census", "before", { calls: "getdents64", path: "/proc", when: "1" }),
  step("asking PID 1 for projects", "before", { calls: forks, when: "2" }),
  step("announcing itself", "kill", { calls: "mkdir", when: "1" }),
  step("leaving the note for the manager", "kill", { calls: "openat", path: note, when: "1" }),
  step("looking whether the slice is frozen", "grace", { calls: "openat", path: `${slice}/cgroup.freeze`, when: "1" }),
  step("asking the first process to end", "grace", { calls: "kill", when: "1" }),
  step("letting the first one go on", "grace", { calls: "kill", when: "2" }),
  step("waiting for them to end", "grace", { calls: "pselect6", when: "200" }),
  step("opening cgroup.kill", "kill", { calls: "openat", path: `${slice}/cgroup.kill`, when: "1" }),
  step("writing to cgroup.kill", "kill", { calls: "write", path: `${slice}/cgroup.kill`, when: "1" }),
  step("killing the first process", "kill", { calls: "kill", when: "1" }),
  step("killing the second process", "kill", { calls: "kill", when: "2" }),
  step("the census after the kill", "kill", { calls: "getdents64", path: "/proc", when: "6" }),
  step("recording the verdict", "kill", { calls: "rename", when: "1" }),
  step("withdrawing its entry", "kill", { calls: "unlink", when: "2" }),
  step("clearing the runtime directory", "kill", { calls: forks, when: "3" }),
  step("taking the note", "kill", { calls: "unlink", path: note, when: "1" }),
  step("bringing the manager back", "kill", { calls: "openat", path: "/proc/uptime", when: "1" }),
  step("ending", "kill", { calls: "exit_group", when: "1" }),
];

function step(name: string, phase: Phase, call: Call): Step {
  return { name, phase, call, options: phase === "grace" ? withGrace : atOnce };
}

beforeEach(async () => {
  await calmHost(host);
  await startAccountManager(host);
  await startPayloads(host, [
    { name: "3201", temper: "deaf", place: "session" },
    { name: "3202", temper: "headless", place: "exec" },
  ]);
});

afterAll(() => calmHost(host));

/** The next stop is as if nothing had happened: it ends with 0, and the manager is there afterwards. */
async function expectRemedy(): Promise<void> {
  const again = await stopWithReport(host, ...atOnce);
  expect(again.code).toBe(0);
  expect(["stopped", "nothing-running"]).toContain(again.report.verdict);
  await expectCalm(host, { manager: "active" });
}

describe("a helper that is killed while it is at", () => {
  test.each(steps.map((one) => [one.name, one] as const))("%s", async (_, { call, options }) => {
    const killed = await stopBy(host, helperWith(call, "signal=KILL", ...options));
    expect(killed.code).toBe(137);
    expectUnhampered(await lookForCalm(host));
    await expectRemedy();
  });
});

const interruptions = [
  ["INT", 130],
  ["TERM", 143],
] as const;

/** Every step with SIGINT; the first step of each phase with SIGTERM, which goes the same way. */
function stepsFor(signal: string, late: boolean): (readonly [string, Step])[] {
  const list = steps.filter(({ phase }) => (phase === "kill") === late);
  const some = signal === "INT" ? list : list.filter((one, at) => one.phase !== list[at - 1]?.phase);
  return some.map((one) => [one.name, one] as const);
}

describe.each(interruptions)("SIG%s", (signal, interrupted) => {
  test.each(stepsFor(signal, false))("takes a stop back that is at %s", async (_, { call, options }) => {
    const { code, entries } = await stopBy(host, helperWith(call, `signal=${signal}`, ...options));
    expect(code).toBe(interrupted);
    expect(results(entries)).toContain("interrupted");
    const calm = await lookForCalm(host);
    expectUnhampered(calm);
    expect(calm.running).toEqual(["3201", "3202", ...bystanders].sort());
  });

  test.each(stepsFor(signal, true))("comes too late for a stop that is at %s", async (_, { call, options }) => {
    const { code, entries } = await stopBy(host, helperWith(call, `signal=${signal}`, ...options));
    expect(code).toBe(0);
    expect(results(entries)).toContain("stopped");
    await expectCalm(host, { manager: "active" });
  });
});

const others = ["HUP", "QUIT", "TSTP"] as const;

// One run gets hundreds of them: at every third of its calls, from the first file that it opens to its report.
test.each(others)("SIG%s at every step ends no stop", async (signal) => {
  const call: Call = { calls: "openat,write,kill,unlink,rename,mkdir", when: "20+3" };
  const { code, entries } = await stopBy(host, helperWith(call, `signal=${signal}`, ...withGrace));
  expect(code).toBe(0);
  expect(results(entries)).toContain("stopped");
  await expectCalm(host, { manager: "active" });
});
