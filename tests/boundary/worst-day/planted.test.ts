// SPDX-License-Identifier: Apache-2.0
// Promise: nothing that a session left behind for the account's next manager runs after a stop: no unit, no timer, no
// environment, no configuration, wherever the account can write.

import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";

import { countersOnHost, tempersOnHost } from "../../../src/tooling/tempers/build-tempers.ts";
import { type Counter, movedSince } from "../../../src/tooling/tempers/counters.ts";
import { startAccountManager, startPayload } from "../../../src/tooling/tempers/payloads.ts";
import { bystanders, expectAftermath, expectStopped, freshHost, rounds, stopWatched } from "../kit/aftermath.ts";
import { eventually, readCounters, running } from "../kit/facts.ts";
import { labHost } from "../kit/host.ts";
import { expectManagerBack } from "../kit/units.ts";

const host = await labHost();
const uid = (await host.sh("id -u ai-tools")).trim();
const runtime = `/run/user/${uid}`;
const passwdHome = "/var/lib/ai-tools";
const command = (name: string) => `${tempersOnHost}/polite ${countersOnHost}/planted-${name} 90`;
/** As the account itself reaches its manager. */
const toManager = `export XDG_RUNTIME_DIR=${runtime} DBUS_SESSION_BUS_ADDRESS=unix:path=${runtime}/bus`;

/** What `expectManagerBack` looks after. */
const mayBeLate = { managerMayBeLate: "clearing the runtime directory and starting a manager take their time" };

/** How long nothing planted may run after exit 0. */
const watchMs = 60_000;

const maskedGenerator = "/etc/systemd/system-generators/ai-tools-generator";

/** The pinned unit path keeps most plants from growing at all; a stop has to do without it. */
const unpin = () =>
  host.sh(`mkdir -p $(dirname ${maskedGenerator}); ln -sf /dev/null ${maskedGenerator}; systemctl daemon-reload`);
const pin = () => host.sh(`rm -f ${maskedGenerator}; systemctl daemon-reload`);

beforeAll(unpin);
afterAll(pin);

beforeEach(async () => {
  await freshHost(host);
  await startAccountManager(host);
});

afterEach(() => host.sh(`chown root:root ${passwdHome}; rm -rf ${passwdHome}/.config`));

/** A service, started by targets of the manager, in one of the directories of units. */
function unitIn(directory: string, name: string): string {
  return `mkdir -p ${directory}/default.target.wants ${directory}/basic.target.wants
    printf '[Unit]\\nDefaultDependencies=no\\n[Service]\\nExecStart=${command(name)}\\n' >${directory}/planted-${name}.service
    ln -sf ../planted-${name}.service ${directory}/default.target.wants/
    ln -sf ../planted-${name}.service ${directory}/basic.target.wants/`;
}

/** Units that no target wants: a timer, a path and a drop-in of a unit that every manager starts bring them. */
function bringersIn(directory: string): string {
  return `mkdir -p ${directory}/timers.target.wants ${directory}/paths.target.wants ${directory}/basic.target.d
    for name in timer path dropin; do
      printf "[Service]\\nExecStart=${tempersOnHost}/polite ${countersOnHost}/planted-$name 90\\n" >${directory}/planted-$name.service
    done
    printf '[Timer]\\nOnActiveSec=1\\nOnUnitInactiveSec=1\\nAccuracySec=1ms\\n' >${directory}/planted-timer.timer
    ln -sf ../planted-timer.timer ${directory}/timers.target.wants/
    printf '[Path]\\nPathExists=/\\n' >${directory}/planted-path.path
    ln -sf ../planted-path.path ${directory}/paths.target.wants/
    printf '[Unit]\\nWants=planted-dropin.service\\n' >${directory}/basic.target.d/planted.conf`;
}

/** Everything in the runtime directory from which a new manager of systemd 252 to 257, or its bus, starts something. */
const inRuntimeDirectory = [
  unitIn(`${runtime}/systemd/user`, "user"),
  unitIn(`${runtime}/systemd/user.control`, "control"),
  bringersIn(`${runtime}/systemd/user`),
  `mkdir -p ${runtime}/dbus-1/services
   printf '[D-BUS Service]\\nName=org.freedesktop.Notifications\\nExec=${command("bus")}\\n' >${runtime}/dbus-1/services/org.freedesktop.Notifications.service`,
].join("\n");

/** What of it runs when the manager is only restarted, and, the service of the bus, when somebody calls its name. */
const growing = ["bus", "control", "dropin", "path", "timer", "user"].map((name) => `planted-${name}`);

/** Calls a name on the account's bus that a planted file offers to answer to. */
const callTheName = `${toManager}
  timeout 2 busctl --user call org.freedesktop.Notifications / org.freedesktop.DBus.Peer Ping`;

/** What the running manager itself can be told. */
const inTheManager = `${toManager}
  systemctl --user set-environment PLANTED=manager
  systemctl --user daemon-reload
  systemd-run --quiet --user --on-active=2 --on-unit-inactive=1 --timer-property=AccuracySec=1ms --unit=planted-transient ${command("transient")}`;

const planted = (names: string[]) => names.filter((name) => name.startsWith("planted"));

/** What of it runs once all that shall does, or after ten seconds. */
async function grownPlants(): Promise<string[]> {
  let grown: string[] = [];
  for (let looks = 0; looks < 20 && !growing.every((name) => grown.includes(name)); looks++) {
    await new Promise((done) => setTimeout(done, 100));
    grown = planted(await running(host));
  }
  return grown;
}

async function plantedCounters(): Promise<string[]> {
  return planted((await readCounters(host)).map(({ payload }) => payload));
}

async function environmentOfManager(): Promise<string> {
  const pid = (await host.sh(`systemctl show -P MainPID user@${uid}.service`)).trim();
  const words = await host.sh(`tr '\\0' '\\n' </proc/${pid}/environ`);
  return words + (await host.sh("systemctl --user -M ai-tools@.host show-environment"));
}

/** Nothing that was planted has moved its counter since then, and nothing does for a minute. */
async function expectNothingGrows(since: Counter[]): Promise<void> {
  await new Promise((done) => setTimeout(done, watchMs));
  const moved = movedSince(since, await readCounters(host));
  expect(planted(moved.map(({ payload }) => payload))).toEqual([]);
}

test("units, timers, drop-ins and services of the bus, wherever the account can write, do not run within a minute", async () => {
  await host.sh(`${inRuntimeDirectory}\n${inTheManager}`, { user: "ai-tools" });
  // They are no blanks: a manager that is only restarted runs them, and its bus starts the service for a caller.
  await host.sh(`systemctl restart user@${uid}.service`);
  await host.run(["sh", "-c", callTheName], { user: "ai-tools" });
  expect(await grownPlants()).toEqual(growing);
  await host.sh(`${inRuntimeDirectory}\n${inTheManager}`, { user: "ai-tools" });
  await eventually("the timer that the manager was told of", async () =>
    (await running(host)).includes("planted-transient"),
  );
  expect(await environmentOfManager()).toMatch(/PLANTED=manager/);
  await startPayload(host, "3401", "deaf", "own-manager");
  await startPayload(host, "3402", "polite", "session");

  const result = await stopWatched(host, "--force", "--yes");
  const atVerdict = await readCounters(host);
  await expectStopped(host, result);
  await expectManagerBack(host, result.report);
  expect(await environmentOfManager()).not.toMatch(/PLANTED|planted/);
  const called = await host.run(["sh", "-c", callTheName], { user: "ai-tools" });
  expect(called.stderr).toMatch(/not provided by any \.service file/);
  await expectAftermath(host, result.report, mayBeLate);
  expect(await host.sh(`find ${runtime} -name '*planted*' -o -name '*Notifications*'`)).toBe("");
  await expectNothingGrows(atVerdict);
}, 240_000);

test("with the unit path that the package pins, units and drop-ins of the account's do not even run in a manager that is restarted", async () => {
  await pin();
  try {
    await host.sh(inRuntimeDirectory, { user: "ai-tools" });
    await host.sh(`systemctl restart user@${uid}.service`);
    await new Promise((done) => setTimeout(done, 3_000));
    expect(await plantedCounters()).toEqual([]);
  } finally {
    await unpin();
  }
});

test("in a passwd home that the account may write: the manager that would run it stays down", async () => {
  await host.sh(`chown ai-tools: ${passwdHome}`);
  const configuration = `${passwdHome}/.config`;
  await host.sh(
    `${unitIn(`${configuration}/systemd/user`, "home")}
     mkdir -p ${configuration}/environment.d
     printf 'PLANTED=environment.d\\n' >${configuration}/environment.d/planted.conf
     printf '[Manager]\\nDefaultEnvironment=PLANTED_TOO=user.conf\\n' >${configuration}/systemd/user.conf`,
    { user: "ai-tools" },
  );
  await host.sh(`systemctl restart user@${uid}.service`);
  await eventually("the plant grows", async () => (await running(host)).includes("planted-home"));
  const [plant] = (await readCounters(host)).filter(({ payload }) => payload === "planted-home");
  const environment = await host.sh(`tr '\\0' '\\n' </proc/${plant?.pid}/environ`);
  expect(environment).toMatch(/^PLANTED=environment.d$/m);
  expect(environment).toMatch(/^PLANTED_TOO=user.conf$/m);

  const result = await stopWatched(host, "--force", "--yes");
  const atVerdict = await readCounters(host);
  await expectStopped(host, result);
  expect(result.report.manager).toMatchObject({ outcome: "not-restored", reason: expect.stringContaining(passwdHome) });
  await expectNothingGrows(atVerdict);
  expect((await host.sh(`systemctl is-active user@${uid}.service || true`)).trim()).not.toBe("active");
  await expectAftermath(host, result.report, { manager: "not-restored" });
}, 240_000);

test("without lingering they wait for nobody: the next manager, started by hand, runs nothing of them", async () => {
  // systemd 257: logind, once it has begun to forget the user, never answers a manager that is started meanwhile.
  await host.sh(`loginctl disable-linger ai-tools; systemctl stop user@${uid}.service
    until [ ! -e /run/systemd/users/${uid} ]; do sleep 0.1; done`);
  await host.sh(`systemctl start user@${uid}.service`);
  await startPayload(host, "3411", "polite", "session");
  await host.sh(inRuntimeDirectory, { user: "ai-tools" });
  const result = await stopWatched(host, "--yes");
  await expectStopped(host, result);
  await host.sh(`systemctl start user@${uid}.service && systemctl is-active user@${uid}.service`);
  await new Promise((done) => setTimeout(done, 3_000));
  expect(await plantedCounters()).toEqual([]);
  expect(await running(host)).toEqual([...bystanders].sort());
  await expectAftermath(host, result.report);
});

test.each(rounds())(
  "a session that plants without pause until it is killed has planted nothing, round %i",
  async () => {
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
      async () => (await host.run(["test", "-e", `${runtime}/dbus-1/services`])).code === 0,
    );
    const result = await stopWatched(host, "--force", "--yes");
    await expectStopped(host, result);
    await expectAftermath(host, result.report);
    expect(await host.sh(`find ${runtime} -name '*planted*' 2>/dev/null || true`)).toBe("");
    expect(await plantedCounters()).toEqual([]);
  },
);

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
  await expectAftermath(host, result.report, mayBeLate);
});
