// SPDX-License-Identifier: Apache-2.0
// Promise: the account's manager comes back where it lingers, with nothing in it that a session planted; whether it does
// is told apart and never changes the verdict.

import { afterEach, beforeEach, expect, test } from "vitest";

import { countersOnHost, tempersOnHost } from "../../src/tooling/tempers/build-tempers.ts";
import { startAccountManager, startPayload } from "../../src/tooling/tempers/payloads.ts";
import { accountProcesses, clearHost, running } from "./kit/facts.ts";
import { labHost } from "./kit/host.ts";
import { results, stopWithReport } from "./kit/stop.ts";

const host = await labHost();
const uid = (await host.sh("id -u ai-tools")).trim();
const manager = `user@${uid}.service`;
const runtimeDirectory = `/run/user/${uid}`;

beforeEach(async () => {
  await clearHost(host);
  await startAccountManager(host);
});

afterEach(async () => {
  await host.sh(
    `systemctl unmask ${manager}; chown root:root /var/lib/ai-tools; rm -rf /var/lib/ai-tools/.config; true`,
  );
});

async function isActive(): Promise<string> {
  return (await host.sh(`systemctl is-active ${manager} || true`)).trim();
}

function mainPid(): Promise<string> {
  return host.sh(`systemctl show -p MainPID ${manager}`);
}

test("a lingering manager is ended with everything, and another one is there afterwards", async () => {
  await startPayload(host, "1101", "deaf", "own-manager-always");
  const old = await mainPid();
  const { code, report, entries } = await stopWithReport(host, "--force", "--yes");
  expect(code).toBe(0);
  expect(report.manager.outcome).toBe("restored");
  expect(results(entries)).toEqual(expect.arrayContaining(["stopped", "manager-restored"]));
  expect(await isActive()).toBe("active");
  expect(await mainPid()).not.toBe(old);
  expect(await running(host)).toEqual([]);
  expect(await accountProcesses(host)).toEqual([]);
  await startPayload(host, "1102", "polite", "own-manager");
});

test("it comes back after each of many stops in a row", async () => {
  for (let round = 1; round <= 7; round++) {
    const { code, report } = await stopWithReport(host, "--force", "--yes");
    expect({ round, code, manager: report.manager.outcome }).toEqual({ round, code: 0, manager: "restored" });
  }
  expect(await isActive()).toBe("active");
});

test("what a session planted in the runtime directory does not run with the new manager", async () => {
  await startPayload(host, "1111", "polite", "session");
  const unit = `[Service]\\nExecStart=${tempersOnHost}/deaf ${countersOnHost}/planted 60\\n`;
  await host.sh(
    `mkdir -p ${runtimeDirectory}/systemd/user/default.target.wants && printf '${unit}' >${runtimeDirectory}/systemd/user/planted.service &&
     ln -s ../planted.service ${runtimeDirectory}/systemd/user/default.target.wants/`,
    { user: "ai-tools" },
  );
  const { code, report } = await stopWithReport(host, "--force", "--yes");
  expect({ code, manager: report.manager.outcome }).toEqual({ code: 0, manager: "restored" });
  expect(await host.sh(`find ${runtimeDirectory} -name 'planted*'`)).toBe("");
  expect(await running(host)).toEqual([]);
});

test("without lingering it belonged to a login that is over: it does not come back, and its directory is gone", async () => {
  // systemd 257: logind, once it has begun to forget the user, never answers a manager that is started meanwhile.
  await host.sh(`loginctl disable-linger ai-tools; systemctl stop ${manager}
    until [ ! -e /run/systemd/users/$(id -u ai-tools) ]; do sleep 0.1; done; systemctl start ${manager}`);
  await startPayload(host, "1121", "polite", "session");
  const { code, report } = await stopWithReport(host, "--force", "--yes");
  expect(code).toBe(0);
  expect(report.manager.outcome).toBe("not-wanted");
  expect(await isActive()).not.toBe("active");
  expect(await host.sh(`ls ${runtimeDirectory} 2>&1 || true`)).toMatch(/No such file/);
});

test("a manager that did not run is not started", async () => {
  await host.sh(`systemctl stop ${manager}`);
  await startPayload(host, "1131", "polite", "session");
  const { code, report, entries } = await stopWithReport(host, "--force", "--yes");
  expect(code).toBe(0);
  expect(report.manager.outcome).toBe("not-running");
  expect(results(entries).filter((result) => result.startsWith("manager"))).toEqual([]);
  expect(await isActive()).not.toBe("active");
});

// systemd 9461
test("a masked manager is reported with the command that mends it, and the code stays 0", async () => {
  await host.sh(`ln -sf /dev/null /etc/systemd/system/${manager} && systemctl daemon-reload`);
  const { code, report, entries } = await stopWithReport(host, "--force", "--yes");
  await host.sh(`rm /etc/systemd/system/${manager} && systemctl daemon-reload`);
  expect(code).toBe(0);
  expect(report.manager.outcome).toBe("not-restored");
  expect(report.manager.reason).toMatch(/masked/);
  expect(report.manager.mend).toMatch(new RegExp(manager));
  expect(results(entries)).toContain("manager-not-restored");
});

test.each([
  ["its passwd home belongs to the account", "chown ai-tools /var/lib/ai-tools"],
  [
    "its passwd home holds something of the account's",
    "install -d -o ai-tools /var/lib/ai-tools/.config/environment.d",
  ],
])("a manager that could read what a session wrote stays down: %s", async (_, damage) => {
  await host.sh(damage);
  const { code, report } = await stopWithReport(host, "--force", "--yes");
  expect(code).toBe(0);
  expect(report.manager.outcome).toBe("not-restored");
  expect(report.manager.reason).toMatch(/\/var\/lib\/ai-tools/);
  expect(await isActive()).not.toBe("active");
});
