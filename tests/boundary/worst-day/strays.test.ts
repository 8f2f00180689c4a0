// SPDX-License-Identifier: Apache-2.0
// Promise: by whatever way a process of the account came to be outside the account's slice, a stop ends it, names it with
// the place where it was, leaves that place's owner alone, and tells of what will start it again.

import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { countersOnHost, tempersOnHost } from "../../../src/tooling/tempers/build-tempers.ts";
import { expectAftermath, expectStopped, freshHost, stopWatched } from "../kit/aftermath.ts";
import { accountProcesses } from "../kit/facts.ts";
import { labHost } from "../kit/host.ts";
import { entryOf, frontDoor, type Report, results, stopBy } from "../kit/stop.ts";
import { counts } from "../kit/units.ts";

const host = await labHost();
const olga = (await host.sh("id -u olga")).trim();
const temper = (name: string, word = "deaf") => `${tempersOnHost}/${word} ${countersOnHost}/${name} 60`;

beforeEach(() => freshHost(host));

function strayOf(report: Report) {
  const strays = report.rows.filter(({ kind }) => kind === "stray");
  expect(strays).toHaveLength(1);
  return strays[0];
}

describe("from an operator's login, whose own work goes on", () => {
  afterEach(() => host.sh("loginctl terminate-user olga 2>/dev/null; systemctl kill -s KILL lab-login.service; true"));

  /** A login of the operator's, registered with logind, in which her own process and this command line run. */
  async function login(command: string): Promise<void> {
    const script = `${temper("login", "polite")} & ${command} & wait`;
    const asOlga = "systemd-run --quiet --collect --unit=lab-login --uid=olga -p PAMName=login -p StandardInput=null";
    const { code, stderr } = await host.run(["sh", "-c", `exec ${asOlga} sh -c "$0"`, script]);
    expect({ code, stderr }).toMatchObject({ code: 0 });
    await counts(host, "login");
    await counts(host, "3301");
  }

  const sudo = "echo olga | sudo -S";
  test.each([
    ["sudo -u", `${sudo} -u ai-tools ${temper("3301")}`],
    ["sudo -b -u", `${sudo} -b -u ai-tools ${temper("3301")}`],
    ["sudo -u with the account's group alone", `${sudo} -u ai-tools -g ai-tools setsid ${temper("3301")}`],
    ["sudo runuser -u", `${sudo} runuser -u ai-tools -- ${temper("3301")}`],
    ["sudo runuser -l", `${sudo} runuser -l -s /bin/sh -c "${temper("3301").replaceAll('"', "")}" ai-tools`],
    ["sudo su", `${sudo} su -s /bin/sh -c "exec ${temper("3301")}" ai-tools`],
    ["sudo su -", `${sudo} su - -s /bin/sh -c "exec ${temper("3301")}" ai-tools`],
    ["sudo setpriv", `${sudo} setpriv --reuid=ai-tools --regid=ai-tools --clear-groups ${temper("3301")}`],
    [
      "sudo start-stop-daemon",
      `${sudo} start-stop-daemon --start --background --chuid ai-tools --exec ${temper("3301").replace(" ", " -- ")}`,
    ],
    ["sudo setpriv, the real uid alone", `${sudo} setpriv --ruid=ai-tools ${temper("3301")}`],
  ])("%s", async (_, command) => {
    await login(command);
    const result = await stopWatched(host, "--force", "--yes");
    await expectStopped(host, result, { running: ["login"] });
    expect(await accountProcesses(host)).toEqual([]);
    const stray = strayOf(result.report);
    expect(stray).toMatchObject({ outcome: "killed", unit: expect.stringMatching(/^session-.*\.scope$/) });
    expect(entryOf(result.entries, "stray-ended").AI_TOOLS_CGROUP).toMatch(
      new RegExp(`^/user.slice/user-${olga}.slice/session-[^/]+.scope$`),
    );
    expect(result.report.hints).toEqual([]);
    await host.sh("loginctl terminate-user olga; rm -f /run/lab/counters/login");
    await expectAftermath(host, result.report);
  });

  test("it is named on the operator's own screen with the place where it was", async () => {
    await login(`${sudo} -u ai-tools ${temper("3301")}`);
    const { code, stdout, entries } = await stopBy(host, [frontDoor, "--stop"], { user: "olga" });
    expect(code).toBe(0);
    expect(stdout).toMatch(new RegExp(`KILLED +stray pid \\d+ \\(deaf\\) in /user.slice/user-${olga}.slice/session-`));
    expect(results(entries)).toContain("stray-ended");
  });
});

describe("from the host itself", () => {
  // The package closes both to the account; an administrator may have opened them again.
  beforeEach(() => host.sh("sed -i '/^ai-tools$/d' /etc/cron.deny /etc/at.deny"));
  afterEach(() =>
    host.sh(`rm -f /run/crond.reboot; crontab -r -u ai-tools; rm -f /var/spool/cron/atjobs/[a=]*
      echo ai-tools | tee -a /etc/cron.deny >>/etc/at.deny`),
  );

  // PMSS 579
  test("a crontab's job is ended, cron goes on, and the crontab is told of", async () => {
    await host.sh(
      `echo '@reboot ${temper("3311")}' | crontab -u ai-tools - && rm -f /run/crond.reboot && systemctl restart cron`,
    );
    await counts(host, "3311");
    const result = await stopWatched(host, "--force", "--yes");
    await expectStopped(host, result);
    expect(strayOf(result.report)).toMatchObject({ unit: "cron.service", outcome: "killed" });
    expect(result.report.hints).toEqual([expect.stringMatching(/has a crontab .*crontab -r -u ai-tools/)]);
    expect(await host.sh("systemctl is-active cron.service")).toBe("active\n");
    await expectAftermath(host, result.report);
  });

  test("an at job is ended, atd goes on, and the one that is still to come is told of", async () => {
    await host.sh(`cd / && echo '${temper("3312")}' | at now && echo true | at now + 1 hour`, { user: "ai-tools" });
    await counts(host, "3312");
    const result = await stopWatched(host, "--force", "--yes");
    await expectStopped(host, result);
    expect(strayOf(result.report)).toMatchObject({ unit: "atd.service", outcome: "killed" });
    expect(result.report.hints).toEqual([expect.stringMatching(/has at jobs.*atq/)]);
    expect(await host.sh("systemctl is-active atd.service")).toBe("active\n");
    await expectAftermath(host, result.report);
  });

  test.each([
    [
      "a system unit with User=",
      `systemd-run --quiet --collect --unit=lab-stray --uid=ai-tools ${temper("3321")}`,
      "stray",
    ],
    [
      "one in a slice of another name",
      `systemd-run --quiet --collect --unit=lab-stray --uid=ai-tools --slice=user-9${olga}.slice ${temper("3321")}`,
      "stray",
    ],
    [
      "one whose User= has DynamicUser-like hardening",
      `systemd-run --quiet --collect --unit=lab-stray --uid=ai-tools -p ProtectSystem=strict -p ProtectProc=invisible -p PrivateUsers=yes -p ProtectControlGroups=yes ${temper("3321")}`,
      "stray",
    ],
    [
      "root's runuser",
      `systemd-run --quiet --collect --unit=lab-stray runuser -u ai-tools -- ${temper("3321")}`,
      "stray",
    ],
    [
      "root's su, which logind may take into the slice",
      `systemd-run --quiet --collect --unit=lab-stray su -s /bin/sh -c "exec ${temper("3321")}" ai-tools`,
      undefined,
    ],
    [
      "root's setpriv",
      `systemd-run --quiet --collect --unit=lab-stray setpriv --reuid=ai-tools --clear-groups ${temper("3321")}`,
      "stray",
    ],
    [
      "a daemon that left its unit's main process",
      `systemd-run --quiet --collect --unit=lab-stray -p KillMode=none --uid=ai-tools sh -c "setsid ${temper("3321")} & sleep 0.5"`,
      "stray",
    ],
    [
      "the root cgroup",
      `setpriv --reuid=ai-tools --clear-groups setsid --fork ${temper("3321")} </dev/null >/dev/null 2>&1`,
      "stray",
    ],
  ])("%s", async (_, script, kind) => {
    await host.sh(script);
    await counts(host, "3321");
    const result = await stopWatched(host, "--force", "--yes");
    await expectStopped(host, result);
    if (kind !== undefined) expect(strayOf(result.report)?.outcome).toBe("killed");
    await expectAftermath(host, result.report);
  });
});
