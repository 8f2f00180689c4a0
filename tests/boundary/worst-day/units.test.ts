// SPDX-License-Identifier: Apache-2.0
// Promise: however a unit is set up to keep its processes or to get new ones, a stop ends them; none comes back from the
// account's own manager, and where PID 1 will start one again the stop says so or does not call it done.

import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { countersOnHost, tempersOnHost } from "../../../src/tooling/tempers/build-tempers.ts";
import { startAccountManager } from "../../../src/tooling/tempers/payloads.ts";
import {
  bystanders,
  expectAftermath,
  expectStopped,
  freshHost,
  measured,
  rounds,
  stopWatched,
} from "../kit/aftermath.ts";
import { countersOf, eventually, running } from "../kit/facts.ts";
import { labHost } from "../kit/host.ts";
import { counts, expectManagerBack, managers, runsUnit, sessionUnit, startUnit } from "../kit/units.ts";

const host = await labHost();
const uid = (await host.sh("id -u ai-tools")).trim();

beforeEach(async () => {
  await freshHost(host);
  await startAccountManager(host);
});

/** Whether PID 1 or the account's manager brings it back is seen by then: the longest RestartSec here is 2 s. */
const patience = 4_000;

// measured: `loginctl terminate-user` returned 0 with 5 of 11 such payloads alive
describe.each(managers)("a unit of %s that shall not be killed is killed", (manager) => {
  test.each([
    ["KillMode=none", "-p KillMode=none"],
    ["KillMode=process", "-p KillMode=process"],
    ["SendSIGKILL=no", "-p SendSIGKILL=no -p TimeoutStopSec=infinity"],
    [
      "both",
      "-p KillMode=none -p SendSIGKILL=no -p TimeoutStopSec=infinity -p FinalKillSignal=SIGCONT -p KillSignal=SIGCONT",
    ],
    ["RemainAfterExit=yes", "-p KillMode=none -p SendSIGHUP=yes -p RemainAfterExit=yes"],
  ])("%s", async (_, properties) => {
    await startUnit(host, { manager, name: "3201", temper: "scattered", properties });
    const result = await stopWatched(host, "--force", "--yes");
    await expectStopped(host, result, { outcomes: { [sessionUnit("3201")]: "killed" } });
    await expectAftermath(host, result.report);
  });

  // In the own manager too: it must not be asked before its units.
  test("with a grace, in which it is asked like all others", async () => {
    const properties = "-p KillMode=none -p SendSIGKILL=no -p KillSignal=SIGCONT";
    await startUnit(host, { manager, name: "3202", temper: "polite", properties });
    await startUnit(host, { manager, name: "3203", temper: "stubborn", properties });
    const result = await stopWatched(host, "--yes");
    await expectStopped(host, result, {
      outcomes: { [sessionUnit("3202")]: "terminated", [sessionUnit("3203")]: "killed" },
    });
    expect((await countersOf(host, "3203")).map(({ terms }) => terms)).toEqual([1]);
    await expectAftermath(host, result.report);
  });
});

/** With a grace it is one that ends when it is asked to: what comes again in the grace is a newcomer, which nobody asks. */
const ways = [
  ["at once", ["--force"], "deaf"],
  ["with a grace", [], "polite"],
] as const;

describe("a unit of the account's own manager that comes again by itself does not", () => {
  const run = runsUnit("own manager");
  const noLimit = "-p Restart=always -p RestartSec=0 -p StartLimitIntervalSec=0";
  const command = (temper: string, name: string) => `${tempersOnHost}/${temper} ${countersOnHost}/${name} 60`;
  // claude-code 25963
  const restarting = (temper: string) => `${run} --unit=lab-again ${noLimit} ${command(temper, "3211")}`;

  async function expectItStaysAway(script: string, options: readonly string[]): Promise<void> {
    await host.sh(script);
    await counts(host, "3211");
    const { code, report } = await stopWatched(host, ...options, "--yes");
    expect(code).toBe(0);
    await expectManagerBack(host, report);
    await new Promise((done) => setTimeout(done, patience));
    expect(await running(host)).toEqual([...bystanders]);
    await expectAftermath(host, report, { managerMayBeLate: "expectManagerBack looks after it" });
  }

  test.each(rounds())("Restart=always, at once, round %i", () => expectItStaysAway(restarting("deaf"), ["--force"]));

  describe.each(ways)("%s:", (_, options, temper) => {
    const again = command(temper, "3211");
    test.each([
      ["Restart=always", restarting(temper)],
      ["Restart=always after a while", `${run} --unit=lab-again -p Restart=always -p RestartSec=2 ${again}`],
      [
        "a timer",
        `${run} --unit=lab-again --on-active=0 --on-unit-inactive=100ms --timer-property=AccuracySec=1ms ${again}`,
      ],
      ["a path that exists", `${run} --unit=lab-again --path-property=PathExists=/ ${again}`],
      [
        "a socket, and a session that connects to it all the time",
        `${run} --unit=lab-again --socket-property=ListenStream=/run/user/${uid}/lab-again ${again}
         ${run} --unit=lab-poker ${noLimit} ${pokes(`/run/user/${uid}/lab-again`)}`,
      ],
      [
        "what it runs when something else has ended",
        `${run} --unit=lab-again -p RemainAfterExit=no --property=ExecStopPost="${command(temper, "3219")}" ${again}`,
      ],
    ])("%s", (_, script) => expectItStaysAway(script, options));
  });
});

/** A command that connects to a socket all the time, whoever listens there. */
function pokes(socket: string): string {
  return `python3 -c '
import socket, time
while True:
    try:
        s = socket.socket(socket.AF_UNIX); s.connect("${socket}")
    except OSError: pass
    time.sleep(0.05)'`;
}

describe.each(ways)(
  "a unit that PID 1 starts again is told of, or the stop does not call it done, %s:",
  (_, options, temper) => {
    const command = `${tempersOnHost}/${temper} ${countersOnHost}/3221 60`;
    const unit = sessionUnit("3221");
    const inSlice = `${runsUnit("PID 1")} --unit=${unit}`;
    const clear = `systemctl stop --no-block 'ai-tools-claude-code-3221.*' 'lab-again.*' 2>/dev/null
    systemctl kill -s KILL ${unit} lab-again.service lab-poker.service 2>/dev/null
    rm -f /etc/systemd/system/lab-again.*; systemctl daemon-reload; systemctl reset-failed; true`;

    async function startAgain(script: string): Promise<void> {
      await host.sh(script);
      await counts(host, "3221");
    }

    test.each([
      [
        "at once, without end",
        `${inSlice} -p Restart=always -p RestartSec=0 -p StartLimitIntervalSec=0 ${command}`,
        "comes back",
      ],
      ["at once, until its limit", `${inSlice} -p Restart=always -p RestartSec=0 ${command}`, "may come back"],
      ["after 2 s, whatever happened", `${inSlice} -p Restart=always -p RestartSec=2 ${command}`, "comes back"],
      [
        "after 2 s, since it was killed",
        `${inSlice} -p Restart=on-failure -p RestartSec=2 ${command}`,
        "may come back",
      ],
      [
        "after 2 s, outside the slice, User=",
        `systemd-run --quiet --uid=ai-tools --unit=lab-again -p Restart=always -p RestartSec=2 ${command}`,
        "comes back",
      ],
      [
        "after 2 s, outside the slice, of root's that changes to the account",
        `systemd-run --quiet --unit=lab-again -p Restart=always -p RestartSec=2 setpriv --reuid=ai-tools --regid=ai-tools --clear-groups ${command}`,
        "comes back",
      ],
      [
        "by a timer, 2 s after it ended",
        `${inSlice} --on-active=0 --on-unit-inactive=2 --timer-property=AccuracySec=1ms ${command}`,
        "comes back",
      ],
      [
        "by a path that exists",
        `${inSlice} -p StartLimitIntervalSec=0 --path-property=PathExists=/ --path-property=TriggerLimitIntervalSec=0 ${command}`,
        "comes back",
      ],
      ["by a path that exists, until its limit", `${inSlice} --path-property=PathExists=/ ${command}`, "may come back"],
      [
        "by a socket that an operator connects to all the time",
        `${inSlice} -p StartLimitIntervalSec=0 --socket-property=ListenStream=/run/lab/again --socket-property=TriggerLimitIntervalSec=0 ${command}
         systemd-run --quiet --collect --uid=olga --unit=lab-poker ${pokes("/run/lab/again")}`,
        "comes back",
      ],
    ])("%s", async (_, script, wanted) => {
      await startAgain(script);
      const { code, report } = await stopWatched(host, ...options, "--yes");
      const said = [...report.hints, ...report.remarks].filter((text) => names.test(text));
      await new Promise((done) => setTimeout(done, patience));
      const back = (await running(host)).includes("3221");
      await host.sh(clear);
      measured("comes again", { code, verdict: report.verdict, said: said.length, back });
      if (wanted === "comes back") expect(back).toBe(true);
      if (back) expect({ code, said: said.length }).not.toEqual({ code: 0, said: 0 });
      if (code !== 0) {
        expect(report.verdict).toMatch(/^(incomplete|reappeared)$/);
        const alive = report.rows.filter(({ outcome }) => outcome === "alive" || outcome === "reappeared");
        expect(JSON.stringify([alive, report.survivors]), "the unit is named").toMatch(names);
      }
      // The advice that was given holds: with the unit stopped a stop is one.
      await eventually("it is stopped", async () => !(await running(host)).includes("3221"));
      const again = await stopWatched(host, "--force", "--yes");
      expect(again.code).toBe(0);
      await expectAftermath(host, again.report);
    });
  },
);

describe("a unit that PID 1 will start, and that has no process when the stop is asked for, is told of with what prevents it", () => {
  const unit = "ai-tools-claude-code-3231";
  const inSlice = `${runsUnit("PID 1")} --unit=${unit}`;
  const command = `${tempersOnHost}/deaf ${countersOnHost}/3231 60`;
  const never = "/run/lab/never";
  afterEach(() =>
    host.sh(
      `systemctl stop --no-block '${unit}.*' 2>/dev/null; systemctl kill -s KILL ${unit}.service 2>/dev/null; true`,
    ),
  );

  test.each([
    [
      "a service that was killed and waits for its restart",
      `${inSlice} -p Restart=always -p RestartSec=100 ${command}; systemctl kill -s KILL ${unit}.service
       until [ "$(systemctl show -P SubState ${unit}.service)" = auto-restart ]; do sleep 0.1; done`,
      `${unit}.service`,
    ],
    [
      "outside the slice, a service with User= that waits for its restart",
      `${runsUnit("PID 1 outside the slice")} --unit=${unit} -p Restart=on-failure -p RestartSec=100 ${command}
       systemctl kill -s KILL ${unit}.service
       until [ "$(systemctl show -P SubState ${unit}.service)" = auto-restart ]; do sleep 0.1; done`,
      `${unit}.service`,
    ],
    ["the service of a timer", `${inSlice} --on-active=100 ${command}`, `${unit}.timer`],
    ["the service of a socket", `${inSlice} --socket-property=ListenStream=${never} ${command}`, `${unit}.socket`],
    ["the service of a path", `${inSlice} --path-property=PathExists=${never}-there ${command}`, `${unit}.path`],
  ])("%s", async (_, script, culprit) => {
    await host.sh(script);
    const { code, report } = await stopWatched(host, "--force", "--yes");
    expect(code).toBe(0);
    const advice = report.hints.map((hint) => /To prevent it, as root: (.*)$/.exec(hint)?.[1]);
    expect(advice).toEqual([`systemctl stop ${culprit}`]);
    await host.sh(advice[0] ?? "false");
    const again = await stopWatched(host, "--force", "--yes");
    expect({ code: again.code, hints: again.report.hints }).toEqual({ code: 0, hints: [] });
    await expectAftermath(host, again.report);
  });
});

/** Units that PID 1 starts again here. */
const names = /ai-tools-claude-code-3221|lab-again/;
