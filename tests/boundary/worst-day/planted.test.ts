// SPDX-License-Identifier: Apache-2.0
// Promise: nothing that a session left behind for the account's next manager runs after a stop: no unit, no timer, no
// environment, no configuration, wherever the account can write.

import { afterEach, beforeEach, expect, test } from "vitest";

import { countersOnHost, tempersOnHost } from "../../../src/tooling/tempers/build-tempers.ts";
import { startAccountManager, startPayload } from "../../../src/tooling/tempers/payloads.ts";
import { bystanders, expectAftermath, expectStopped, freshHost, stopWatched } from "../kit/aftermath.ts";
import { eventually, readCounters, running } from "../kit/facts.ts";
import { labHost } from "../kit/host.ts";
import { lastEntries, trailLength } from "../kit/stop.ts";
import { expectManagerBack } from "../kit/units.ts";

const host = await labHost();
const uid = (await host.sh("id -u ai-tools")).trim();
const runtime = `/run/user/${uid}`;
const writable = "/var/lib/ai-tools/home";
const command = (name: string) => `${tempersOnHost}/polite ${countersOnHost}/planted-${name} 90`;

/** How long nothing planted may run after exit 0. */
const watchMs = 60_000;

beforeEach(async () => {
  await freshHost(host);
  await startAccountManager(host);
});

afterEach(() => host.sh(`rm -rf ${writable}/.config ${writable}/.local ${writable}/.pam_environment; true`));

/** A service, started by a target of the manager, in one of the directories of units. */
function unitIn(directory: string, name: string): string {
  return `mkdir -p ${directory}/default.target.wants ${directory}/basic.target.wants ${directory}/timers.target.wants
    printf '[Unit]\\nDefaultDependencies=no\\n[Service]\\nExecStart=${command(name)}\\n' >${directory}/planted-${name}.service
    ln -sf ../planted-${name}.service ${directory}/default.target.wants/
    ln -sf ../planted-${name}.service ${directory}/basic.target.wants/`;
}

/** One that no target wants: a timer, a path and a drop-in of a unit that every manager starts bring it. */
function bringersIn(directory: string): string {
  return `mkdir -p ${directory}/timers.target.wants ${directory}/paths.target.wants ${directory}/dbus.socket.d ${directory}/basic.target.d ${directory}/service.d
    for name in timer path dropin; do
      printf "[Service]\\nExecStart=${tempersOnHost}/polite ${countersOnHost}/planted-$name 90\\n" >${directory}/planted-$name.service
    done
    printf '[Timer]\\nOnActiveSec=1\\nOnUnitInactiveSec=1\\nAccuracySec=1ms\\n' >${directory}/planted-timer.timer
    ln -sf ../planted-timer.timer ${directory}/timers.target.wants/
    printf '[Path]\\nPathExists=/\\n' >${directory}/planted-path.path
    ln -sf ../planted-path.path ${directory}/paths.target.wants/
    printf '[Unit]\\nWants=planted-dropin.service\\n' >${directory}/basic.target.d/planted.conf
    printf '[Service]\\nEnvironment=PLANTED=service.d\\n' >${directory}/service.d/planted.conf`;
}

const unitDirectories = [
  "systemd/user",
  "systemd/user.control",
  "systemd/transient",
  "systemd/generator",
  "systemd/generator.late",
];

/** Everything in the runtime directory from which a manager of systemd 252 to 257 starts or configures something. */
const inRuntimeDirectory = [
  ...unitDirectories.map((directory, number) => unitIn(`${runtime}/${directory}`, `runtime-${number}`)),
  bringersIn(`${runtime}/systemd/user`),
  `mkdir -p ${runtime}/user-tmpfiles.d ${runtime}/dbus-1/services ${runtime}/environment.d ${runtime}/systemd/user-environment-generators
   printf 'f ${countersOnHost}/planted-tmpfiles 0644 - - - x\\n' >${runtime}/user-tmpfiles.d/planted.conf
   printf '[D-BUS Service]\\nName=org.freedesktop.Notifications\\nExec=${command("bus")}\\n' >${runtime}/dbus-1/services/planted.service
   printf '[Manager]\\nManagerEnvironment=PLANTED=runtime\\nDefaultEnvironment=PLANTED=runtime\\n' >${runtime}/systemd/user.conf
   printf 'PLANTED=runtime\\n' >${runtime}/environment.d/planted.conf`,
].join("\n");

/** The same below the home that sessions write, which is no manager's home. */
const inSessionsHome = [
  unitIn(`${writable}/.config/systemd/user`, "home"),
  unitIn(`${writable}/.config/systemd/user.control`, "control"),
  unitIn(`${writable}/.local/share/systemd/user`, "share"),
  bringersIn(`${writable}/.config/systemd/user`),
  `mkdir -p ${writable}/.config/environment.d ${writable}/.config/user-tmpfiles.d
   printf 'PLANTED=home\\nLD_PRELOAD=${writable}/planted.so\\n' >${writable}/.config/environment.d/planted.conf
   printf 'PLANTED=pam\\n' >${writable}/.pam_environment
   printf '[Manager]\\nManagerEnvironment=PLANTED=home\\nDefaultEnvironment=PLANTED=home\\n' >${writable}/.config/systemd/user.conf
   printf 'f ${countersOnHost}/planted-tmpfiles 0644 - - - x\\n' >${writable}/.config/user-tmpfiles.d/planted.conf`,
].join("\n");

/** What the running manager itself can be told. */
const inTheManager = `export XDG_RUNTIME_DIR=${runtime} DBUS_SESSION_BUS_ADDRESS=unix:path=${runtime}/bus
  systemctl --user set-environment PLANTED=manager XDG_CONFIG_HOME=${writable}/.config XDG_DATA_HOME=${writable}/.local/share
  systemctl --user daemon-reload
  systemctl --user import-environment PATH
  systemd-run --quiet --user --on-active=2 --on-unit-inactive=1 --unit=planted-transient ${command("transient")}
  systemctl --user --runtime enable planted-runtime-0.service`;

async function plantedCounters(): Promise<string[]> {
  return [...new Set((await readCounters(host)).map(({ payload }) => payload))]
    .filter((name) => /planted/.test(name))
    .sort();
}

async function environmentOfManager(): Promise<string> {
  const pid = (await host.sh(`systemctl show -P MainPID user@${uid}.service`)).trim();
  const words = await host.sh(`tr '\\0' '\\n' </proc/${pid}/environ`);
  return words + (await host.sh("systemctl --user -M ai-tools@.host show-environment"));
}

test("units, timers, drop-ins and configuration in every place that the account can write stay where they are or are gone", async () => {
  await host.sh(`${inSessionsHome}\n${inRuntimeDirectory}`, { user: "ai-tools" });
  await host.sh(inTheManager, { user: "ai-tools" });
  // They are no blanks: a manager that is only restarted runs them.
  await host.sh(`systemctl restart user@${uid}.service`);
  await eventually(
    "the plants grow",
    async () => (await running(host)).filter((name) => /planted/.test(name)).length >= 5,
  );
  await host.sh(`${inRuntimeDirectory}`, { user: "ai-tools" });
  await host.sh(inTheManager, { user: "ai-tools" });
  expect(await environmentOfManager()).toMatch(/PLANTED=manager/);
  await startPayload(host, "3401", "deaf", "own-manager");
  await startPayload(host, "3402", "polite", "session");

  const result = await stopWatched(host, "--force", "--yes");
  const known = await trailLength(host);
  await host.sh(`rm -f ${countersOnHost}/planted-*`);
  await expectStopped(host, result);
  await expectManagerBack(host, result.report);
  expect(await environmentOfManager()).not.toMatch(/PLANTED|planted|XDG_CONFIG_HOME/);
  await expectAftermath(host, result.report);

  await new Promise((done) => setTimeout(done, watchMs));
  expect(await plantedCounters()).toEqual([]);
  expect(await host.sh(`ls ${countersOnHost}/planted-* 2>/dev/null || true`)).toBe("");
  expect(await host.sh(`find ${runtime} -name '*planted*'`)).toBe("");
  expect(await lastEntries(host, known)).toEqual([]);
}, 240_000);

test("without lingering they wait for nobody: the next manager, started by hand, runs nothing of them", async () => {
  await host.sh("loginctl disable-linger ai-tools");
  await host.sh(`systemctl start user@${uid}.service`);
  await startPayload(host, "3411", "polite", "session");
  await host.sh(inRuntimeDirectory, { user: "ai-tools" });
  const result = await stopWatched(host, "--yes");
  await expectStopped(host, result);
  await host.sh(`rm -f ${countersOnHost}/planted-*`);
  await host.sh(`systemctl start user@${uid}.service && systemctl is-active user@${uid}.service`);
  await new Promise((done) => setTimeout(done, 3_000));
  expect(await plantedCounters()).toEqual([]);
  expect(await running(host)).toEqual([...bystanders].sort());
  await expectAftermath(host, result.report);
});

test("a session that plants without pause until it is killed has planted nothing", async () => {
  const script = `while :; do ${inRuntimeDirectory}
    done`;
  await host.sh(`cat >/var/tmp/lab-planting && chmod 755 /var/tmp/lab-planting`, { input: `#!/bin/sh\n${script}\n` });
  for (const manager of [
    `systemd-run --quiet --uid=ai-tools --slice=user-${uid}.slice`,
    "systemd-run --quiet --user -M ai-tools@.host",
  ])
    await host.sh(`${manager} --collect sh -c 'trap "" TERM; exec 2>/dev/null; . /var/tmp/lab-planting'`);
  await eventually(
    "it plants",
    async () => (await host.run(["test", "-e", `${runtime}/systemd/user.conf`])).code === 0,
  );
  const result = await stopWatched(host, "--force", "--yes");
  await expectStopped(host, result);
  await host.sh(`rm -f ${countersOnHost}/planted-*`);
  await expectAftermath(host, result.report);
  expect(await host.sh(`find ${runtime} -name '*planted*' 2>/dev/null || true`)).toBe("");
  expect(await plantedCounters()).toEqual([]);
});

test.each([
  [
    "a dead file system of its own in it",
    `${tempersOnHost}/hung-files ${runtime}/files ${uid} 60`,
    `grep -q ${runtime}/files /proc/mounts`,
  ],
  [
    "a deep tree in it",
    `python3 -c 'import os
os.chdir("${runtime}")
for _ in range(3000): os.mkdir("d"); os.chdir("d")
import time; open("${runtime}/ready", "w"); time.sleep(60)'`,
    `test -e ${runtime}/ready`,
  ],
  [
    "locked directories in it",
    `sh -c 'mkdir -p ${runtime}/a/b/c && chmod 0 ${runtime}/a/b ${runtime}/a && touch ${runtime}/ready && sleep 60'`,
    `test -e ${runtime}/ready`,
  ],
])("the runtime directory goes, and the manager comes back: %s", async (what, script, isReady) => {
  const who = what.startsWith("a dead") ? "" : "--uid=ai-tools";
  await host.sh(
    `systemd-run --quiet --collect ${who} --slice=user-${uid}.slice --unit=ai-tools-claude-code-3421 ${script}`,
  );
  await eventually("it is ready", async () => (await host.run(["sh", "-c", isReady])).code === 0);
  await host.sh(unitIn(`${runtime}/systemd/user`, "deep"), { user: "ai-tools" });
  const result = await stopWatched(host, "--force", "--yes");
  await expectStopped(host, result);
  expect(await plantedCounters()).toEqual([]);
  await expectManagerBack(host, result.report);
  await expectAftermath(host, result.report);
});
