// SPDX-License-Identifier: Apache-2.0
// Promise: whichever file of the kernel does not open, cannot be read or refuses a write, everything that can be ended is
// ended, and 0 is said only on evidence.

import { basename } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { startAccountManager, startPayloads } from "../../../src/tooling/tempers/payloads.ts";
import { bystanders } from "../kit/aftermath.ts";
import { calmHost, closeWith, expectCalm, lookForCalm } from "../kit/calm.ts";
import { type Call, helperWith, inOwnMounts, signals, sliceOf, whereHelperSees } from "../kit/faults.ts";
import { labHost } from "../kit/host.ts";
import { helper, type Report, rowOf, type StopResult, stopBy, stopByScript, stopWithReport } from "../kit/stop.ts";

const host = await labHost();
const slice = await sliceOf(host);
closeWith(host);

beforeEach(async () => {
  await calmHost(host);
  await startPayloads(host, [
    { name: "3101", temper: "deaf", place: "session" },
    { name: "3102", temper: "headless", place: "session" },
    { name: "3103", temper: "stubborn", place: "exec" },
  ]);
  // A unit without processes, so that systemd does not remove the slice with the last of them: that would be evidence too.
  await host.sh(`systemd-run --quiet --unit=lab-slice-holder --slice=${basename(slice)} -p RemainAfterExit=yes true`);
});

// A start that hangs in a frozen slice would hang whatever comes after it.
afterEach(() => host.sh(`echo 0 >${slice}/cgroup.freeze; systemctl stop lab-slice-holder.service; true`));

type Stopped = StopResult & { report: Report };

const options = ["--force", "--yes", "--json"];

function withReport(result: StopResult): Stopped {
  return { ...result, report: JSON.parse(result.stdout) as Report };
}

/** One stop by force with this fault at this call. */
async function stopWith(call: Call, fault: string): Promise<Stopped> {
  return withReport(await stopBy(host, helperWith(call, fault, ...options)));
}

/** For a slice that stays as it was: the account is ended, and PID 1 answers. */
async function expectEnded(): Promise<void> {
  const calm = await lookForCalm(host);
  expect(calm).toMatchObject({ running: [...bystanders], processes: [] });
  expect(["running", "degraded"]).toContain(calm.system);
}

describe("exit 0, since what is gone is proved, and each process is killed by itself, where cgroup.kill", () => {
  const path = `${slice}/cgroup.kill`;
  // Kernels before 5.14 have no such file.
  test.each([
    ["is absent", "openat", "error=ENOENT", /kernel before 5\.14/],
    ["may not be opened", "openat", "error=EACCES", /errno 13/],
    ["cannot be opened for lack of descriptors", "openat", "error=EMFILE", /errno 24/],
    ["is on a broken hierarchy", "openat", "error=EIO", /errno 5/],
    ["refuses the write as a threaded cgroup does", "write", "error=EOPNOTSUPP", /errno 95/],
    ["refuses the write as a security module does", "write", "error=EPERM", /errno 1\)/],
    ["refuses the write on a read-only hierarchy", "write", "error=EROFS", /errno 30/],
    ["takes nothing", "write", "retval=0", /errno 5/],
  ])("%s", async (_, calls, fault, said) => {
    const { code, report } = await stopWith({ calls, path }, fault);
    expect(code).toBe(0);
    expect(report.mechanisms).toEqual(["per-pid"]);
    expect(report.remarks.join("\n")).toMatch(said);
    await expectCalm(host);
  });
});

describe("exit 1 and why, since unknown is alive, although all is ended, where", () => {
  test.each<[string, Call, string]>([
    ["cgroup.events may not be opened", { calls: "openat", path: `${slice}/cgroup.events` }, "error=EACCES"],
    ["cgroup.events cannot be opened", { calls: "openat", path: `${slice}/cgroup.events` }, "error=EIO"],
    ["cgroup.events cannot be read", { calls: "read", path: `${slice}/cgroup.events` }, "error=EIO"],
    ["cgroup.events is empty", { calls: "read", path: `${slice}/cgroup.events` }, "retval=0"],
    ["the last pid may not be read", { calls: "openat", path: "/proc/loadavg" }, "error=EACCES"],
    ["the last pid cannot be read", { calls: "read", path: "/proc/loadavg" }, "error=EIO"],
    ["processes cannot be listed", { calls: "openat", path: "/proc" }, "error=EACCES"],
    ["processes cannot be listed to the end", { calls: "getdents64", path: "/proc", when: "2+" }, "error=EIO"],
  ])("%s", async (_, call, fault) => {
    const { code, report } = await stopWith(call, fault);
    expect(code).toBe(1);
    expect(report.verdict).toBe("incomplete");
    expect(report.survivors).toEqual([]);
    expect(report.unknown.join("\n")).not.toBe("");
    if (!call.path?.startsWith("/proc")) await expectCalm(host);

    const again = await stopWithReport(host, "--force", "--yes");
    expect(again.code).toBe(0);
    await expectCalm(host);
  });
});

describe("exit 0 where what fails decides nothing:", () => {
  test.each<[string, Call, string]>([
    ["the slice's events, for there is no slice", { calls: "openat", path: `${slice}/cgroup.events` }, "error=ENOENT"],
    ["the helper's own place", { calls: "openat", path: "/proc/self/oom_score_adj" }, "error=EACCES"],
    ["subordinate numbers", { calls: "openat", path: "/etc/subuid" }, "error=ENOENT"],
  ])("%s", async (_, call, fault) => {
    const { code } = await stopWith(call, fault);
    expect(code).toBe(0);
    await expectCalm(host);
  });

  test("what sits where: who has no place is ended and has a row all the same", async () => {
    const pid = (await host.sh("pgrep -x stubborn")).trim();
    const { code, report } = await stopWith({ calls: "read", path: `/proc/${pid}/cgroup` }, "error=EIO");
    expect(code).toBe(0);
    expect(rowOf(report, "(not read)")).toMatchObject({ processes: 1, outcome: "killed" });
    await expectCalm(host);
  });

  test("the announcement, the note for the manager and the record of the last stop: the manager is back too", async () => {
    await startAccountManager(host);
    const before = await host.sh("cat /run/ai-tools/last-stop.json; find /run/ai-tools -printf '%p %s %T@\\n'");
    const readOnly = "mount --bind /run/ai-tools /run/ai-tools; mount -o remount,bind,ro /run/ai-tools";
    const { code, stderr, report } = withReport(await stopByScript(host, whereHelperSees(readOnly, ...options)));
    expect(code).toBe(0);
    expect(stderr).toMatch(/last-stop\.json could not be written \(errno 30\)/);
    expect(report.manager.outcome).toBe("restored");
    expect(await host.sh("cat /run/ai-tools/last-stop.json; find /run/ai-tools -printf '%p %s %T@\\n'")).toBe(before);
    await expectCalm(host, { manager: "active" });
  });
});

// systemd 22183: what was opened is not there any more when it is used
describe("exit 0 where a cgroup has gone between two looks:", () => {
  test.each<[string, Call]>([
    ["the write that kills", { calls: "write", path: `${slice}/cgroup.kill` }],
    ["its events", { calls: "read", path: `${slice}/cgroup.events` }],
    ["its events, once", { calls: "read", path: `${slice}/cgroup.events`, when: "1" }],
  ])("%s", async (_, call) => {
    const { code, report } = await stopWith(call, "error=ENODEV");
    expect({ code, verdict: report.verdict, unknown: report.unknown }).toEqual({
      code: 0,
      verdict: "stopped",
      unknown: [],
    });
    expect(report.mechanisms).toEqual(call.calls === "write" ? ["per-pid"] : ["cgroup-kill", "per-pid"]);
    expect(report.remarks.join("\n")).not.toMatch(/cgroup\.kill/);
    await expectCalm(host);
  });

  // Here it is there all the same: who starts the manager believes only what the kernel says of the freeze.
  test("the write that thaws", async () => {
    await startAccountManager(host);
    await host.sh(`echo 1 >${slice}/cgroup.freeze`);
    const { code, report } = await stopWith({ calls: "write", path: `${slice}/cgroup.freeze` }, "error=ENODEV");
    expect(code).toBe(0);
    expect(report.manager).toMatchObject({ outcome: "not-restored", reason: expect.stringMatching(/frozen/) });
    await expectEnded();
    const again = await stopWithReport(host, "--force", "--yes");
    expect(again).toMatchObject({ code: 0, report: { manager: { outcome: "restored" } } });
  });
});

describe("a helper that was started in the slice", () => {
  const [root, init] = ["/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/init.scope/cgroup.procs"];
  const inSlice = `echo $$ >${slice}/cgroup.procs; exec ${helper} ${options.join(" ")}`;

  /** The tracer stays outside; the shell that becomes the helper goes in. */
  async function stopInSlice(refused: readonly string[]): Promise<Stopped> {
    const trace = "/run/lab/injected";
    const tracer = ["strace", "-qq", "-o", trace, ...refused.flatMap((path) => ["-P", path])];
    const fault = ["-e", "trace=openat", "-e", "inject=openat:error=EACCES"];
    const result = withReport(await stopBy(host, [...tracer, ...fault, "sh", "-c", inSlice]));
    const injected = (await host.sh(`cat ${trace}`)).split("\n").filter((line) => line.includes("(INJECTED)"));
    expect(injected).toHaveLength(refused.length);
    return result;
  }

  test("leaves it before it kills", async () => {
    const { code, report } = withReport(await stopByScript(host, inSlice));
    expect(code).toBe(0);
    expect(report.mechanisms).toEqual(["cgroup-kill", "per-pid"]);
    await expectCalm(host);
  });

  test("leaves it for PID 1's scope where the root of the hierarchy refuses", async () => {
    const { code, report } = await stopInSlice([root]);
    expect(code).toBe(0);
    expect(report.mechanisms).toEqual(["cgroup-kill", "per-pid"]);
    await expectCalm(host);
  });

  test("kills one by one where it cannot leave, and says 1, for it is alive there itself", async () => {
    const { code, report } = await stopInSlice([root, init]);
    expect(code).toBe(1);
    expect(report.mechanisms).toEqual(["per-pid"]);
    expect(report.survivors).toEqual([]);
    expect(report.unknown.join("\n")).toMatch(/slice/);
    await expectCalm(host);
    expect((await stopWithReport(host, "--force", "--yes")).code).toBe(0);
  });
});

test("a signal that the kernel refuses leaves a stray alive, which is said with 1; running again ends it", async () => {
  const { code, report } = await stopWith({ calls: signals }, "error=EPERM");
  expect(code).toBe(1);
  expect(report.mechanisms).toEqual(["cgroup-kill"]);
  expect(report.survivors.map(({ command }) => command).sort()).toEqual(["headless", "stubborn"]);
  expect((await lookForCalm(host)).running).toEqual([...bystanders, "3102", "3103"].sort());

  const again = await stopWithReport(host, "--force", "--yes");
  expect(again.code).toBe(0);
  await expectCalm(host);
});

test("a process whose status cannot be read counts as alive and is named", async () => {
  const pid = (await host.sh("pgrep -x stubborn")).trim();
  const { code, report } = await stopWith({ calls: "read", path: `/proc/${pid}/status` }, "error=EIO");
  expect(code).toBe(1);
  expect(report.unknown.join("\n")).toMatch(new RegExp(`\\b${pid}\\b`));
  expect((await stopWithReport(host, "--force", "--yes")).code).toBe(0);
  await expectCalm(host);
});

describe("a slice that was frozen, or may have no child,", () => {
  const hamper = { freeze: `echo 1 >${slice}/cgroup.freeze`, limit: `echo 0 >${slice}/cgroup.max.descendants` };

  test.each(Object.entries(hamper))("is as it should be after a stop: %s", async (_, damage) => {
    await host.sh(damage);
    const { code, report } = await stopWithReport(host, "--force", "--yes");
    expect(code).toBe(0);
    expect(report.remarks.join("\n")).toMatch(/the slice (was frozen, thawed|had a limit of descendants, lifted)/);
    await expectCalm(host);
  });

  test.each([
    ["freeze", "cgroup.freeze", "error=EIO"],
    ["freeze", "cgroup.freeze", "retval=0"],
    ["limit", "cgroup.max.descendants", "error=EACCES"],
  ] as const)(
    "ends with what was in it where it cannot be mended, which is told: %s, %s %s",
    async (what, file, fault) => {
      await startAccountManager(host);
      await host.sh(hamper[what]);
      const { code, report } = await stopWith({ calls: "write", path: `${slice}/${file}` }, fault);
      expect(code).toBe(0);
      expect(report.remarks.join("\n")).toMatch(/could not be (thawed|lifted)/);
      await expectEnded();
      // Nobody starts in a frozen slice; PID 1 itself can hang there (systemd 257).
      if (what === "freeze") expect(report.manager.outcome).toBe("not-restored");
      const again = await stopWithReport(host, "--force", "--yes");
      expect(again.code).toBe(0);
    },
  );

  test("and a hierarchy that is read-only: nobody is started in it", async () => {
    await startAccountManager(host);
    await host.sh(hamper.freeze);
    const script = `mount -o remount,bind,ro /sys/fs/cgroup; exec ${helper} --force --yes --json`;
    const result = await stopByScript(host, inOwnMounts(script));
    const report = JSON.parse(result.stdout) as Report;
    expect(result.code).toBe(0);
    expect(report.remarks.join("\n")).toMatch(/could not be thawed/);
    expect(report.manager.outcome).toBe("not-restored");
    await expectEnded();
    const again = await stopWithReport(host, "--force", "--yes");
    expect(again).toMatchObject({ code: 0, report: { manager: { outcome: "restored" } } });
  });
});
