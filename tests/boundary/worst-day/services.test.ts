// SPDX-License-Identifier: Apache-2.0
// Promise: no service and no program of the host has to work for a stop to happen: whichever hangs, is missing or is
// masked, the sessions are gone, and what the trail or the manager lacks is said.

import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";

import { startAccountManager, startPayloads } from "../../../src/tooling/tempers/payloads.ts";
import { measured } from "../kit/aftermath.ts";
import { calmHost, closeWith, expectCalm } from "../kit/calm.ts";
import { type Call, forks, helperWith, whereHelperSees } from "../kit/faults.ts";
import { labHost } from "../kit/host.ts";
import {
  entryOf,
  frontDoor,
  helper,
  type Report,
  results,
  type StopResult,
  stopBy,
  stopByScript,
} from "../kit/stop.ts";

const host = await labHost();
const uid = (await host.sh("id -u ai-tools")).trim();
const manager = `user@${uid}.service`;
const force = ["--force", "--yes", "--json"];

closeWith(host);

beforeAll(() => host.sh("printf '#!/bin/sh\\nexec sleep 100\\n' >/run/lab/hanging && chmod 755 /run/lab/hanging"));

beforeEach(async () => {
  await calmHost(host);
  await startAccountManager(host);
  await startPayloads(host, [
    { name: "3301", temper: "deaf", place: "session" },
    { name: "3302", temper: "headless", place: "exec" },
  ]);
});

// systemd 257: a logind that ran while the bus was stopped does not come back to it.
const heal = `systemctl kill -s CONT systemd-journald.service dbus.service systemd-logind.service
  systemctl start dbus.socket dbus.service; systemctl restart systemd-logind.service
  rm -f /etc/systemd/system/${manager}; systemctl daemon-reload; pkill -KILL -x sleep; true`;
afterEach(() => host.sh(heal));

function reportOf({ stdout }: StopResult): Report {
  return JSON.parse(stdout) as Report;
}

// systemd 4472, systemd-stable 6, util-linux 3552
describe("the stop is done, and the manager is back or the report's own command brings it back once it can, where", () => {
  test.each([
    ["journald hangs", "systemctl kill -s STOP systemd-journald.service", "either"],
    ["dbus hangs", "systemctl kill -s STOP dbus.service", "either"],
    ["logind hangs", "systemctl kill -s STOP systemd-logind.service", "either"],
    ["dbus is stopped", "systemctl stop dbus.socket dbus.service", "either"],
    ["logind is stopped", "systemctl stop systemd-logind.service", "restored"],
    ["the account's manager hangs", `systemctl kill -s STOP ${manager}`, "restored"],
    [
      "all of them hang",
      `systemctl kill -s STOP systemd-journald.service dbus.service systemd-logind.service ${manager}`,
      "either",
    ],
  ])("%s", async (_, damage, wanted) => {
    await host.sh(damage);
    const stopped = await stopByScript(host, `exec ${helper} ${force.join(" ")}`);
    await host.sh(heal);
    expect(stopped.code).toBe(0);
    expect(results(stopped.entries)).toContain("stopped");
    const { outcome, reason, mend } = reportOf(stopped).manager;
    measured("the manager", { outcome, reason });
    if (wanted === "restored") expect(outcome).toBe("restored");
    if (outcome !== "restored") {
      expect({ outcome, reason }).toEqual({ outcome: "not-restored", reason: expect.stringMatching(/./) });
      await host.sh(mend ?? "false");
    }
    await expectCalm(host, { manager: "active" });
  });
});

describe("the stop is done, and that the manager is not back is said with what mends it, where systemctl", () => {
  test.each([
    ["is missing", "mount --bind /dev/null /usr/bin/systemctl"],
    ["fails", "mount --bind /bin/false /usr/bin/systemctl"],
    ["hangs", "mount --bind /run/lab/hanging /usr/bin/systemctl"],
    [
      "and logger hang",
      "mount --bind /run/lab/hanging /usr/bin/systemctl; mount --bind /run/lab/hanging /usr/bin/logger",
    ],
    ["and logger are missing", "mount --bind /dev/null /usr/bin/systemctl; mount --bind /dev/null /usr/bin/logger"],
  ])("%s", async (_, damage) => {
    const stopped = await stopByScript(host, whereHelperSees(damage, ...force));
    expect(stopped.code).toBe(0);
    expect(results(stopped.entries)).toEqual(expect.arrayContaining(["stopped", "manager-not-restored"]));
    const report = reportOf(stopped);
    expect(report.manager.outcome).toBe("not-restored");
    expect(report.durationMs).toBeLessThan(45_000);
    await expectCalm(host);
    await host.sh(report.manager.mend ?? "false");
    await expectCalm(host, { manager: "active" });
  });
});

// systemd 9461
test("a manager that was masked while it ran is told of with what mends it", async () => {
  await host.sh(`ln -sf /dev/null /etc/systemd/system/${manager} && systemctl daemon-reload`);
  const stopped = await stopByScript(host, `exec ${helper} ${force.join(" ")}`);
  expect(stopped.code).toBe(0);
  expect(reportOf(stopped).manager).toMatchObject({ outcome: "not-restored", reason: expect.stringMatching(/masked/) });
  await expectCalm(host);
});

describe("no free pid", () => {
  test.each<[string, Call]>([
    ["at the start: the trail is written afterwards, whole", { calls: forks, when: "1" }],
    ["until the kill: the trail is written afterwards, whole", { calls: forks, when: "1..2" }],
  ])("%s", async (_, call) => {
    const stopped = await stopBy(host, helperWith(call, "error=EAGAIN", ...force));
    expect(stopped.code).toBe(0);
    expect(results(stopped.entries)).toEqual(expect.arrayContaining(["requested", "killed", "stopped"]));
    await expectCalm(host, { manager: "active" });
  });

  test("for the whole run: it is done, and said that there is no trail and no manager", async () => {
    const stopped = await stopBy(host, helperWith({ calls: forks }, "error=EAGAIN", ...force));
    expect(stopped.code).toBe(0);
    expect(stopped.stderr).toMatch(/trail was not written/);
    expect(reportOf(stopped).manager.outcome).toBe("not-restored");
    await expectCalm(host);
    await host.sh(reportOf(stopped).manager.mend ?? "false");
  });
});

describe("journald hangs with its socket full", () => {
  const fill = `import socket
for path, send in (("/dev/log", b"<14>lab: full"), ("/run/systemd/journal/socket", b"MESSAGE=full\\n")):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.setblocking(False); s.connect(path)
    try:
        while True: s.send(send)
    except BlockingIOError: pass`;

  test("and the operator's plain stop still works, through sudo and the front door", async () => {
    await host.sh(`systemctl kill -s STOP systemd-journald.service && python3 -c '${fill}'`);
    const stopped = await stopBy(host, [frontDoor, "--stop"], { user: "olga" });
    await host.sh(heal);
    expect(stopped.code).toBe(0);
    expect(entryOf(stopped.entries, "stopped").AI_TOOLS_CALLER).toBe("olga");
    expect(stopped.stderr).toMatch(/journal|trail/);
    await expectCalm(host);
  });
});
