// SPDX-License-Identifier: Apache-2.0
// Promise: nobody of the account starts a unit outside its slice, now or later: not by PID 1, not by cron or at, not by a
// login that stays; and a session reaches no socket through which something outside would act for it.

import { afterAll, beforeAll, expect, test } from "vitest";

import {
  type Act,
  type Acts,
  attempt,
  expectAllDone,
  expectAllRefused,
  expectOutOfReach,
  insiders,
} from "../kit/from-inside.ts";
import { gatedHost } from "../kit/journal-gate.ts";

const { host, gate } = await gatedHost("a session tries to have units started, and every socket");
const marker = "/opt/lab/lab-was-here";
const unitFile = "/opt/lab/lab-planted.service";
const crontab = "/opt/lab/lab-crontab";
const bus = [
  "ran",
  "busctl",
  "call",
  "org.freedesktop.systemd1",
  "/org/freedesktop/systemd1",
  "org.freedesktop.systemd1.Manager",
];

beforeAll(() =>
  host.sh(`printf '[Service]\\nExecStart=/bin/touch ${marker}\\n[Install]\\nWantedBy=multi-user.target\\n' >${unitFile}
    printf '0 0 1 1 * /bin/touch ${marker}\\n' >${crontab}; chmod 644 ${unitFile} ${crontab}`),
);
afterAll(() =>
  host.sh(`systemctl disable lab-planted.service; rm -f ${unitFile} ${crontab} /etc/systemd/system/lab-planted.service
    for job in $(atq | cut -f1); do atrm $job; done; crontab -r -u ursula; systemctl stop 'lab-asked*'; systemctl daemon-reload; true`),
);

/** What an unprivileged caller of PID 1 hears: no, or, from a session, that there is nobody to ask. */
const refusals = [
  /^exit \d+: .*(Access denied|authentication (is )?required|not privileged|Permission denied|Operation not permitted)/i,
];
const nobodyThere = [/^exit \d+: .*(connect to|No such file|not been booted|Host is down|Permission denied)/];

test("PID 1 starts, links, enables and reloads nothing for it", async () => {
  const acts: Acts = {
    "start a command": ["ran", "systemd-run", "--quiet", "--collect", "--wait", "true"],
    "start a command in the system's slice": [
      "ran",
      "systemd-run",
      "--quiet",
      "--collect",
      "--wait",
      "--slice=system.slice",
      "true",
    ],
    "start a command as root": ["ran", "systemd-run", "--quiet", "--collect", "--wait", "--uid=0", "true"],
    "start a timer": ["ran", "systemd-run", "--quiet", "--unit=lab-asked", "--on-active=1h", "true"],
    "start a unit that is there": ["ran", "systemctl", "--no-ask-password", "start", "systemd-tmpfiles-clean.service"],
    "link a unit of its own": ["ran", "systemctl", "--no-ask-password", "link", unitFile],
    "enable it": ["ran", "systemctl", "--no-ask-password", "enable", "lab-planted.service"],
    "read the units again": ["ran", "systemctl", "--no-ask-password", "daemon-reload"],
    "change PID 1's environment": ["ran", "systemctl", "--no-ask-password", "set-environment", "LAB_PLANTED=1"],
    "ask by the bus": [...bus, "StartUnit", "ss", "systemd-tmpfiles-clean.service", "replace"] as unknown as Act,
  };
  expectAllDone(await attempt(host, "root", acts), "control: possible for root");
  await host.sh(
    "systemctl stop lab-asked.timer; systemctl disable lab-planted.service; systemctl unset-environment LAB_PLANTED",
  );
  for (const who of ["account", "unit"] as const) expectAllRefused(await attempt(host, who, acts), who, refusals);
  expectAllRefused(await attempt(host, "session", acts), "session", nobodyThere);
  expect(await host.sh("systemctl show-environment; systemctl list-units --all 'lab-asked*' --no-legend")).not.toMatch(
    /lab|LAB_/,
  );
});

test("cron and at take nothing from it, as they do from others", async () => {
  const cron: Acts = { "install a crontab": ["ran", "crontab", crontab] };
  const at: Acts = { "leave a job": ["ran", "at", "-f", crontab, "now", "+", "300", "days"] };
  const notAllowed = [
    /^exit 1: .*not allowed to use this program/,
    /^exit 1: You do not have permission to use at/,
    ...nobodyThere,
  ];
  await expectOutOfReach(host, cron, { possibleFor: "ursula", refusedBy: notAllowed });
  await expectOutOfReach(host, at, { possibleFor: "root", refusedBy: notAllowed });
  await expectOutOfReach(host, {
    "leave a crontab by hand": ["create", "/var/spool/cron/crontabs"],
    "leave a job by hand": ["create", "/var/spool/cron/atjobs"],
    "leave a job for every hour": ["create", "/etc/cron.hourly"],
    "leave a table of the system": ["create", "/etc/cron.d"],
    "write the system's table": ["opened", "/etc/crontab"],
    "let itself in again": ["opened", "/etc/cron.deny"],
  });
});

test("it cannot make its logins stay, nor anybody else's", async () => {
  const acts: Acts = {
    "let olga linger": ["ran", "loginctl", "--no-ask-password", "enable-linger", "olga"],
    "leave the mark by hand": ["create", "/var/lib/systemd/linger"],
  };
  expectAllDone(await attempt(host, "root", acts), "control: possible for root");
  await host.sh("loginctl disable-linger olga");
  for (const who of insiders)
    expectAllRefused(await attempt(host, who, acts), who, who === "session" ? nobodyThere : refusals);
});

/**
 * Sockets that every program may use, and what stands behind them: the journal's take messages; PID 1's notifications
 * are believed only from units that have NotifyAccess=, which a session has not; the user database answers who is who.
 */
const everybodys = [
  /^\/run\/systemd\/journal\/(dev-log|socket|stdout|syslog)$/,
  /^\/run\/systemd\/notify$/,
  /^\/run\/systemd\/userdb\//,
];

test("of all sockets of the host a session reaches those of the journal and of names alone", async () => {
  const found = (await host.sh("find / -xdev -type s 2>/dev/null; find /run -type s 2>/dev/null; true")).split("\n");
  const sockets = [...new Set(found)].filter((path) => path !== "" && !path.startsWith("/proc"));
  for (const wanted of ["/run/systemd/private", "/run/dbus/system_bus_socket", "/run/systemd/journal/socket"])
    expect(sockets).toContain(wanted);
  const acts: Acts = Object.fromEntries(sockets.map((path) => [path, ["connect", path] as const]));
  const ofRoot = await attempt(host, "root", acts);
  expect([ofRoot["/run/systemd/private"], ofRoot["/run/dbus/system_bus_socket"]]).toEqual(["done", "done"]);
  const answers = await attempt(host, "session", acts);
  const reached = Object.keys(answers).filter((path) => answers[path]?.startsWith("done"));
  expect(reached.filter((path) => !everybodys.some((one) => one.test(path)))).toEqual([]);
});

test("nothing was logged as an error, and nothing was denied, that is not told above", () => gate.expectQuiet());
