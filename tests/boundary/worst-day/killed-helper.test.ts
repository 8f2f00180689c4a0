// SPDX-License-Identifier: Apache-2.0
// Promise: wherever a helper is killed or interrupted, nothing is left that hinders anybody, and running again is the
// remedy: the second stop ends with 0 and the manager is back. Until the kill begins SIGINT and SIGTERM take a stop back;
// no other signal does, and none once it has begun.

import { beforeEach, describe, expect, test } from "vitest";

import { startAccountManager, startPayloads } from "../../../src/tooling/tempers/payloads.ts";
import { bystanders } from "../kit/aftermath.ts";
import { calmHost, closeWith, expectCalm, expectUnhampered, lookForCalm } from "../kit/calm.ts";
import { type Call, forks, helperWith, signals, sliceOf } from "../kit/faults.ts";
import { labHost } from "../kit/host.ts";
import { helper, results, stopBy, stopWithReport } from "../kit/stop.ts";

const host = await labHost();
const slice = await sliceOf(host);
const note = "/run/ai-tools/stop/restore-wanted";
closeWith(host);

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
  step("asking the first process to end", "grace", { calls: signals, when: "1" }),
  step("letting the first one go on", "grace", { calls: signals, when: "2" }),
  step("waiting for them to end", "grace", { calls: "pselect6", when: "200" }),
  step("opening cgroup.kill", "kill", { calls: "openat", path: `${slice}/cgroup.kill`, when: "1" }),
  step("writing to cgroup.kill", "kill", { calls: "write", path: `${slice}/cgroup.kill`, when: "1" }),
  step("killing the first process", "kill", { calls: signals, when: "1" }),
  step("killing the second process", "kill", { calls: signals, when: "2" }),
  step("the census after the kill", "kill", { calls: "getdents64", path: "/proc", when: "6" }),
  step("recording the verdict", "kill", { calls: "rename", when: "1" }),
  step("withdrawing its entry", "kill", { calls: "unlink", when: "2" }),
  step("asking PID 1 what comes back", "kill", { calls: forks, when: "3" }),
  step("the first program of the restore", "kill", { calls: forks, when: "4" }),
  step("taking the note", "kill", { calls: "unlink", path: note, when: "1" }),
  step("bringing the manager back", "kill", { calls: "openat", path: "/proc/uptime", when: "1" }),
  step("ending", "kill", {
    calls: "exit_group",
    when: "1",
    mayNotHappen: "who ends is told of no signal but SIGKILL, which its code tells of",
  }),
];

function step(name: string, phase: Phase, call: Call): Step {
  return { name, phase, call, options: phase === "grace" ? withGrace : atOnce };
}

beforeEach(async () => {
  await calmHost(host);
  await startAccountManager(host);
  await startPayloads(host, [
    { name: "3201", temper: "deaf", place: "session" },
    // Two that no write to the slice ends: each is killed by itself.
    { name: "3202", temper: "headless", place: "exec" },
    { name: "3203", temper: "headless", place: "exec" },
  ]);
});

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

/**
 * Every step with SIGINT; with SIGTERM, which goes the same way, the first step of each phase and those at which a program
 * is started, and every step in a full run.
 */
function stepsFor(signal: string, late: boolean): (readonly [string, Step])[] {
  const list = steps.filter(({ phase }) => (phase === "kill") === late);
  const all = signal === "INT" || process.env.AI_TOOLS_FULL === "1";
  const some = list.filter(({ phase, call }, at) => all || phase !== list[at - 1]?.phase || call.calls === forks);
  return some.map((one) => [one.name, one] as const);
}

describe.each(interruptions)("SIG%s", (signal, interrupted) => {
  test.each(stepsFor(signal, false))("takes a stop back that is at %s", async (_, { call, options }) => {
    const { code, entries } = await stopBy(host, helperWith(call, `signal=${signal}`, ...options));
    expect(code).toBe(interrupted);
    expect(results(entries)).toContain("interrupted");
    const calm = await lookForCalm(host);
    expectUnhampered(calm);
    expect(calm.running).toEqual(["3201", "3202", "3203", ...bystanders].sort());
  });

  test.each(stepsFor(signal, true))("comes too late for a stop that is at %s", async (_, { call, options }) => {
    const { code, entries } = await stopBy(host, helperWith(call, `signal=${signal}`, ...options));
    expect(code).toBe(0);
    expect(results(entries)).toContain("stopped");
    await expectCalm(host, { manager: "active" });
  });
});

const others = ["HUP", "QUIT", "TSTP"] as const;

describe.each([
  ["with --force", atOnce],
  ["with a grace", withGrace],
])("%s, a signal at every step ends no stop:", (_, options) => {
  // One run gets hundreds of them: at every third of its calls, from the first file that it opens to its report.
  test.each(others)("SIG%s", async (signal) => {
    const call: Call = { calls: `openat,write,${signals},unlink,rename,mkdir`, when: "20+3" };
    const { code, entries } = await stopBy(host, helperWith(call, `signal=${signal}`, ...options));
    expect(code).toBe(0);
    expect(results(entries)).toContain("stopped");
    await expectCalm(host, { manager: "active" });
  });
});

describe("each step that is counted is what it is called:", () => {
  test("which programs are started, in this order", async () => {
    const { programs } = await traced(atOnce);
    expect(programs.slice(0, 4)).toEqual([
      expect.stringMatching(/^"\/proc\/self\/exe", \["ai-tools-stop: recorder"/),
      expect.stringMatching(/^"\/usr\/bin\/systemctl", \["[^"]*systemctl", "show"/),
      expect.stringMatching(/^"\/usr\/bin\/systemctl", \["[^"]*systemctl", "show".*"\*\.service"/),
      // Where PID 1 has cleared the runtime directory by itself already, this is for the manager.
      expect.stringMatching(/^"\/usr\/bin\/systemctl", \["[^"]*systemctl", "reset-failed", "user(-runtime-dir)?@/),
    ]);
  });

  test("the entry is the second file that is removed; the first directory that is made is that of the entries", async () => {
    const { calls } = await traced(atOnce);
    expect(named(calls, "unlink")[1]).toMatch(/^unlink\("\/run\/ai-tools\/stop\/\d+-\d+"\)/);
    expect(named(calls, "mkdir")[0]).toMatch(/^mkdir\("\/run\/ai-tools"/);
    expect(named(calls, "rename")[0]).toMatch(/last-stop\.json"/);
  });

  test("the sixth part of a list of processes is read after the kill, the first before anything", async () => {
    const { calls } = await traced(atOnce);
    const lists = calls.flatMap((line, at) => (/^getdents64\(\d+<\/proc>/.test(line) ? [at] : []));
    const kills = calls.flatMap((line, at) =>
      /^(pidfd_send_signal\(|write\(\d+<.*cgroup\.kill>)/.test(line) ? [at] : [],
    );
    expect(lists[5]).toBeGreaterThan(kills[1] ?? Number.POSITIVE_INFINITY);
    expect(lists[0]).toBeLessThan(kills[0] ?? -1);
  });

  test("the first two signals are SIGTERM and SIGCONT to one process in the grace, and SIGKILL by force", async () => {
    const asked = named((await traced(withGrace)).calls, signals).slice(0, 2);
    expect(asked.map((line) => line.replace(/\(\d+<.*?>,/, "(ONE,"))).toEqual([
      expect.stringMatching(/^pidfd_send_signal\(ONE, SIGTERM, /),
      expect.stringMatching(/^pidfd_send_signal\(ONE, SIGCONT, /),
    ]);
    expect(/\(\d+<.*?>/.exec(asked[0] ?? "")?.[0]).toBe(/\(\d+<.*?>/.exec(asked[1] ?? "")?.[0]);
    for (const line of named((await traced(atOnce)).calls, signals).slice(0, 2)) expect(line).toMatch(/, SIGKILL, /);
  });

  interface Traced {
    /** What the helper itself called, in order. */
    calls: string[];
    /** What was executed by those that it started, in the order of starting. */
    programs: string[];
  }

  /**
   * One stop without a fault, and what strace saw of the helper and of those that it started: a file for each process,
   * since in a common one a call is cut in two wherever another process makes one meanwhile.
   */
  async function traced(options: readonly string[]): Promise<Traced> {
    const folder = "/run/lab/steps";
    const calls = `${forks},execve,getdents64,write,${signals},mkdir,rename,unlink`;
    await host.sh(`rm -rf ${folder}; mkdir ${folder}
      strace -ff -y -s 200 -o ${folder}/of -e trace=${calls} ${helper} ${options.join(" ")} >/dev/null`);
    const lines = (await host.sh(`cd ${folder}; grep '' of.*`)).trimEnd().split("\n");
    const processes = Map.groupBy(lines, (line) => /^of\.(\d+):/.exec(line)?.[1] ?? "");
    const callsOf = (pid: string) => (processes.get(pid) ?? []).map((line) => line.slice(`of.${pid}:`.length));
    const ofHelper =
      [...processes.keys()].map(callsOf).find(([first]) => first?.startsWith(`execve("${helper}"`)) ?? [];
    const children = ofHelper.flatMap((call) => /^(?:v?fork|clone3?)\b.* = (\d+)/.exec(call)?.[1] ?? []);
    const executed = children.map((child) => {
      const call = callsOf(child).find((text) => text.startsWith("execve(")) ?? "";
      return call.slice("execve(".length);
    });
    return { calls: ofHelper, programs: executed };
  }

  function named(calls: readonly string[], name: string): string[] {
    return calls.filter((call) => call.startsWith(`${name}(`));
  }
});
