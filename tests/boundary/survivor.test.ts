// SPDX-License-Identifier: Apache-2.0
// Promise: when something survives SIGKILL, the stop says so with 1, names it and what holds it, and everything else is
// gone all the same.

import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { tempersOnHost } from "../../src/tooling/tempers/build-tempers.ts";
import { startPayloads } from "../../src/tooling/tempers/payloads.ts";
import { clearHost, eventually, running } from "./kit/facts.ts";
import { lettingGoOf } from "./kit/faults.ts";
import { labHost } from "./kit/host.ts";
import { entryOf, frontDoor, lastStop, results, rowOf, stopBy, stopWithReport } from "./kit/stop.ts";

const host = await labHost();
const uid = (await host.sh("id -u ai-tools")).trim();

beforeEach(async () => {
  await clearHost(host);
  await startPayloads(host, [
    { name: "1501", temper: "polite", place: "session" },
    { name: "1502", temper: "deaf", place: "exec" },
  ]);
});

describe("a process that a tracer of somebody else holds at its exit", () => {
  let pid = "";
  let tracer = "";

  beforeEach(async () => {
    pid = (await host.sh("pgrep -x polite")).trim();
    await host.sh(`systemd-run --quiet --collect --unit=lab-tracer ${tempersOnHost}/tracing ${pid} 100`);
    await eventually(
      "it is traced",
      async () => (await host.sh(`grep TracerPid /proc/${pid}/status`)) !== "TracerPid:\t0\n",
    );
    tracer = (await host.sh("pgrep -x tracing")).trim();
  });

  test("is named with state, wait channel and tracer, and is gone when the tracer is", async () => {
    const { code, report, entries } = await stopWithReport(host, "--force", "--yes");
    expect(code).toBe(1);
    expect(report).toMatchObject({ verdict: "incomplete", exitCode: 1 });
    expect(report.survivors).toMatchObject([
      { pid: Number(pid), command: "polite", state: "t", waitChannel: "ptrace_stop", tracer: Number(tracer) },
    ]);
    expect(report.rows.map(({ outcome }) => outcome).sort()).toEqual(["alive", "killed"]);
    expect(results(entries)).toEqual(["requested", "alive", "stray-ended", "incomplete"]);
    expect(await running(host)).toEqual([]);

    await host.sh(`kill -KILL ${tracer}`);
    expect((await stopWithReport(host, "--force", "--yes")).code).toBe(0);
  });

  test("gives 1 at the operator's front door, no refusal, and what to do next", async () => {
    const { code, stdout, entries } = await stopBy(host, [frontDoor, "--stop"], { user: "olga" });
    await host.sh(`kill -KILL ${tracer}`);
    expect(code).toBe(1);
    expect(stdout).toMatch(/NOT STOPPED/);
    expect(stdout).toMatch(new RegExp(`ALIVE +pid ${pid} \\(polite\\).*traced by pid ${tracer}`));
    expect(stdout).toMatch(/run ai-tools --stop again/);
    expect(entryOf(entries, "incomplete").AI_TOOLS_CALLER).toBe("olga");
    expect(JSON.parse(await host.sh(`cat ${lastStop}`))).toMatchObject({ verdict: "incomplete", exitCode: 1 });
  });
});

// moby 22802, 37886, runc 4145
describe("a process that waits for a file system that hangs", () => {
  const place = "/run/lab/hung";
  const abort = lettingGoOf(place);

  afterEach(() => host.sh(`${abort}; umount -l ${place}; systemctl stop lab-hung-files; true`));

  /** A session that asks a file system of this owner, and got no answer yet. */
  async function startWaiting(owner: string): Promise<void> {
    await host.sh(`mountpoint -q /sys/fs/fuse/connections || mount -t fusectl fusectl /sys/fs/fuse/connections
      systemd-run --quiet --collect --unit=lab-hung-files ${tempersOnHost}/hung-files ${place} ${owner} 100`);
    await eventually(
      "it is mounted",
      async () => (await host.run(["grep", "-q", ` ${place} fuse`, "/proc/mounts"])).code === 0,
    );
    await host.sh(
      `systemd-run --quiet --collect --uid=ai-tools --slice=user-${uid}.slice --unit=ai-tools-claude-code-1503 stat ${place}/file`,
    );
    await eventually(
      "it waits",
      async () => (await host.sh("cat /proc/$(pgrep -x stat)/wchan || true")) === "request_wait_answer",
    );
  }

  test("somebody else's: it is named with state D and its wait channel, and is gone when the file system is", async () => {
    await startWaiting((await host.sh("id -u olga")).trim());
    const { code, report } = await stopWithReport(host, "--force", "--yes");
    expect(code).toBe(1);
    expect(report.survivors).toMatchObject([{ command: "stat", state: "D", waitChannel: "request_wait_answer" }]);
    expect(rowOf(report, "ai-tools-claude-code-1503.service").outcome).toBe("alive");
    expect(rowOf(report, "ai-tools-claude-code-1501.service").outcome).toBe("killed");
    expect(await running(host)).toEqual([]);

    await host.sh(abort);
    expect((await stopWithReport(host, "--force", "--yes")).code).toBe(0);
  });

  test("the account's own: its connection is cut off, which is said, and everything is gone", async () => {
    await startWaiting(uid);
    const { code, report } = await stopWithReport(host, "--force", "--yes");
    expect(code).toBe(0);
    expect(report.remarks.join("\n")).toMatch(/FUSE connections of the account were cut off/);
    expect(rowOf(report, "ai-tools-claude-code-1503.service").outcome).toBe("killed");
    expect(await running(host)).toEqual([]);
  });
});
