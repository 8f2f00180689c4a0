// SPDX-License-Identifier: Apache-2.0
// Promise: whichever file of the kernel does not open, cannot be read or refuses a write, everything that can be ended is
// ended, and 0 is said only on evidence.

import { basename } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { startAccountManager, startPayloads } from "../../../src/tooling/tempers/payloads.ts";
import { bystanders } from "../kit/aftermath.ts";
import { calmHost, expectCalm, lookForCalm } from "../kit/calm.ts";
import { type Call, helperWith, inOwnMounts, sliceOf } from "../kit/faults.ts";
import { labHost } from "../kit/host.ts";
import { helper, type Report, type StopResult, stopBy, stopByScript, stopWithReport } from "../kit/stop.ts";

const host = await labHost();
const slice = await sliceOf(host);

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

/** One stop by force with this fault at this call. */
async function stopWith(call: Call, fault: string): Promise<Stopped> {
  const result = await stopBy(host, helperWith(call, fault, "--force", "--yes", "--json"));
  return { ...result, report: JSON.parse(result.stdout) as Report };
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
    ["what sits where", { calls: "openat", path: "/proc/sys/kernel/osrelease" }, "error=EIO"],
    ["moving out of the slice", { calls: "openat", path: "/sys/fs/cgroup/cgroup.procs" }, "error=EACCES"],
    ["the helper's own place", { calls: "openat", path: "/proc/self/oom_score_adj" }, "error=EACCES"],
    ["subordinate numbers", { calls: "openat", path: "/etc/subuid" }, "error=ENOENT"],
    ["the announcement", { calls: "mkdir", when: "1+" }, "error=EROFS"],
  ])("%s", async (_, call, fault) => {
    const { code } = await stopWith(call, fault);
    expect(code).toBe(0);
    await expectCalm(host);
  });
});

test("a signal that the kernel refuses leaves a stray alive, which is said with 1; running again ends it", async () => {
  const { code, report } = await stopWith({ calls: "kill" }, "error=EPERM");
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
