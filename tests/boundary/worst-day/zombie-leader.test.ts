// SPDX-License-Identifier: Apache-2.0
// Promise: a process whose main thread has exited is alive for as long as another thread of it is, and is told as such.

import { afterEach, beforeEach, expect, test } from "vitest";

import { tempersOnHost } from "../../../src/tooling/tempers/build-tempers.ts";
import { type Place, startPayload } from "../../../src/tooling/tempers/payloads.ts";
import { expectAftermath, expectStopped, freshHost } from "../kit/aftermath.ts";
import { eventually } from "../kit/facts.ts";
import { labHost } from "../kit/host.ts";
import { stopWithReport } from "../kit/stop.ts";

const host = await labHost();

beforeEach(() => freshHost(host));
afterEach(() => host.sh("systemctl kill -s KILL lab-tracer.service; true"));

// moby 35910: what `ps` shows as a zombie is not always dead
test.each<[Place]>([["session"], ["exec"]])("%s: one that outlives SIGKILL is a survivor", async (place) => {
  await startPayload(host, "3971", "headless", place);
  const pid = (await host.sh("pgrep -x headless")).trim();
  const thread = (await host.sh(`ls /proc/${pid}/task | grep -vx ${pid}`)).trim();
  await host.sh(`systemd-run --quiet --collect --unit=lab-tracer ${tempersOnHost}/tracing ${thread} 100`);
  await eventually("it is traced", async () =>
    /TracerPid:\t[1-9]/.test(await host.sh(`cat /proc/${pid}/task/${thread}/status`)),
  );
  expect(await host.sh(`grep State: /proc/${pid}/status`)).toMatch(/Z \(zombie\)/);

  const result = await stopWithReport(host, "--force", "--yes");
  await expectStopped(host, result, { code: 1, survivors: [{ pid: Number(pid), command: "headless", state: "t" }] });

  await host.sh("systemctl kill -s KILL lab-tracer.service");
  const again = await stopWithReport(host, "--force", "--yes");
  expect(again.code).toBe(0);
  await expectAftermath(host, again.report);
});
