// SPDX-License-Identifier: Apache-2.0
// Promise: a stop ends what has the account's number in any of its uids and all that lives in the account's slice, and
// nothing else, however much it looks like it.

import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { countersOnHost, tempersOnHost } from "../../src/tooling/tempers/build-tempers.ts";
import { startPayload } from "../../src/tooling/tempers/payloads.ts";
import { clearHost, eventually, readCounters, running } from "./kit/facts.ts";
import { labHost } from "./kit/host.ts";
import { stopWithReport } from "./kit/stop.ts";

const host = await labHost();
const account = (await host.sh("id -u ai-tools")).trim();
const olga = (await host.sh("id -u olga")).trim();
const slice = `/sys/fs/cgroup/user.slice/user-${account}.slice`;
/** Numbers that nobody on the host has. */
const subordinate = 700_000;

beforeEach(() => clearHost(host));
afterEach(() => host.sh("id -u ai-tools >/var/lib/ai-tools/uids; sed -i '/700000/d; /^ai-tools:/d' /etc/subuid"));

/** Starts a process of root's in a system unit that then works under these uids. */
async function startActing(
  name: string,
  real: string | number,
  effective: string | number,
  saved: string | number,
): Promise<void> {
  const command = `${tempersOnHost}/acting ${countersOnHost}/${name} ${real} ${effective} ${saved} 60`;
  await host.sh(`systemd-run --quiet --collect --unit=lab-acting-${name} ${command}`);
  await counts(name);
}

async function counts(name: string): Promise<void> {
  await eventually(`${name} counts`, async () =>
    (await readCounters(host)).some(({ payload, ticks }) => payload === name && ticks > 0),
  );
}

describe("outside the slice", () => {
  test.each([
    ["the real uid alone, as of a setuid program that the account runs", account, 0, 0],
    ["the real uid alone, with somebody else's others", account, olga, olga],
    ["the effective uid alone", olga, account, olga],
    ["the saved uid alone", olga, olga, account],
    ["effective and saved uid", 0, account, account],
  ])("%s is enough to be ended", async (_, real, effective, saved) => {
    await startActing("1401", real, effective, saved);
    const { code } = await stopWithReport(host, "--force", "--yes");
    expect(code).toBe(0);
    expect(await running(host)).toEqual([]);
  });

  test("a root process that only acts for the account is named and spared", async () => {
    await startActing("1402", 0, account, 0);
    const { code, report } = await stopWithReport(host, "--force", "--yes");
    expect(code).toBe(0);
    expect(report.bystanders).toMatchObject([{ command: "acting", reason: expect.stringMatching(/root process/) }]);
    expect(await running(host)).toEqual(["1402"]);
  });

  test("a number in the account's own subordinate range is ended", async () => {
    await host.sh(`echo ai-tools:${subordinate}:65536 >>/etc/subuid`);
    await startActing("1403", subordinate + 1, subordinate + 1, subordinate + 1);
    expect((await stopWithReport(host, "--force", "--yes")).code).toBe(0);
    expect(await running(host)).toEqual([]);
  });

  test("a number in a range that somebody else has too is spared, and the report says so", async () => {
    await host.sh(`printf 'ai-tools:${subordinate}:65536\\nolga:700000:65536\\n' >>/etc/subuid`);
    await startActing("1404", subordinate + 1, subordinate + 1, subordinate + 1);
    const { code, report } = await stopWithReport(host, "--force", "--yes");
    expect(code).toBe(0);
    expect(report.remarks.join("\n")).toMatch(/subordinate uids 700000-765535/);
    expect(await running(host)).toEqual(["1404"]);
  });

  test("a number that root recorded for the account earlier is ended, unless it is somebody's now", async () => {
    await host.sh(`printf '${subordinate + 7}\\n${olga}\\n0\\n' >/var/lib/ai-tools/uids`);
    await startActing("1405", subordinate + 7, subordinate + 7, subordinate + 7);
    await startActing("1406", olga, olga, olga);
    expect((await stopWithReport(host, "--force", "--yes")).code).toBe(0);
    expect(await running(host)).toEqual(["1406"]);
  });

  // moby 35910, copilot-cli 4385
  test("a dead process that nobody reaps is none that runs: it is only reported", async () => {
    const parent = `import os, time
if os.fork() == 0:
    os.setresuid(${account}, ${account}, ${account}); os._exit(0)
time.sleep(60)`;
    await host.sh(`systemd-run --quiet --collect --unit=lab-negligent python3 -c '${parent}'`);
    await eventually("the child is dead", async () =>
      (await host.sh(`ps -o stat= -U ${account} || true`)).startsWith("Z"),
    );
    const { code, report } = await stopWithReport(host, "--force", "--yes");
    expect(code).toBe(0);
    expect(report).toMatchObject({ verdict: "nothing-running", rows: [], unreaped: 1, survivors: [] });
  });
});

describe("inside the slice everything is ended", () => {
  test.each([
    ["root's", "0"],
    ["another user's", olga],
    ["a root process acting for the account", "root acting"],
  ])("%s", async (_, who) => {
    await startPayload(host, "1411", "polite", "session");
    if (who === "root acting") await startActing("1412", 0, account, 0);
    else await startActing("1412", who, who, who);
    await host.sh(`pgrep -x acting >${slice}/cgroup.procs`);
    const { code, report } = await stopWithReport(host, "--force", "--yes");
    expect(code).toBe(0);
    expect(report.bystanders).toEqual([]);
    expect(await running(host)).toEqual([]);
  });

  test("whatever its cgroup is called", async () => {
    const names = [
      "init.scope",
      "user@0.service",
      ".hidden",
      "-rf",
      "memory.max",
      "trailing ",
      "x.slice",
      `user@${account}.service`,
      "a".repeat(255),
    ];
    for (const [number, name] of names.entries()) {
      await startPayload(host, String(1421 + number), "deaf", "exec");
      await host.sh(`mkdir -p -- '${slice}/${name}' && pgrep -n -x deaf >'${slice}/${name}/cgroup.procs'`);
    }
    expect(await running(host)).toHaveLength(names.length);
    const { code, report } = await stopWithReport(host, "--force", "--yes");
    expect(code).toBe(0);
    expect(report.rows.filter(({ kind }) => kind === "stray")).toEqual([]);
    expect(await running(host)).toEqual([]);
  });
});
