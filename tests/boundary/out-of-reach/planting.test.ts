// SPDX-License-Identifier: Apache-2.0
// Promise: the account can plant nothing that a privileged part later runs or reads. Every reader of ARCHITECTURE.md and
// SECURITY.md is here with the places that it goes by; what the account may write, no helper of root's opens.

import { afterAll, expect, test } from "vitest";

import {
  type Act,
  type Acts,
  attempt,
  expectAllDone,
  expectAllRefused,
  expectOutOfReach,
  insideProject,
  insiders,
} from "../kit/from-inside.ts";
import { gatedHost } from "../kit/journal-gate.ts";
import { inDirectory, shellEntryPoint } from "../kit/sessions.ts";
import { frontDoor, helper } from "../kit/stop.ts";

const { host, gate } = await gatedHost("a session tries to plant in every place");
const uid = (await host.sh("id -u ai-tools")).trim();
const passwdHome = "/var/lib/ai-tools";
const sessionsHome = `${passwdHome}/home`;

/** Who reads, with root's or an operator's power, and where: none of these may be the account's to write. */
const readers: Record<string, string[]> = {
  "the account's own manager, which a stop brings back": [
    `${passwdHome}/.config/environment.d/lab.conf`,
    `${passwdHome}/.config/systemd/user/lab.service`,
    `${passwdHome}/.config/systemd/user.conf`,
    `${passwdHome}/.local/share/systemd/user/lab.service`,
    "/etc/systemd/user/lab.service",
    "/run/systemd/user/lab.service",
    "/etc/environment.d/lab.conf",
    "/usr/lib/systemd/user-environment-generators/lab",
  ],
  "whoever becomes the account by a login": [
    `${passwdHome}/.pam_environment`,
    `${passwdHome}/.bashrc`,
    `${passwdHome}/.profile`,
    `${passwdHome}/.ssh/authorized_keys`,
    `${passwdHome}/.forward`,
    "/var/mail/ai-tools",
  ],
  "the helpers of root": [
    `${passwdHome}/uids.lab`,
    `${passwdHome}/claims/lab.json`,
    `${passwdHome}/sessions/lab.json`,
    `${passwdHome}/lab-hold.json`,
    "/run/ai-tools/stop/1",
    "/run/ai-tools/ended/lab",
    "/run/ai-tools/lab",
    "/etc/ai-tools/lab.conf",
    "/etc/ai-tools/entrypoints.d/lab.conf",
    "/usr/lib/ai-tools/lab",
    "/usr/libexec/ai-tools/lab",
  ],
  "PID 1 and what it runs": [
    "/etc/systemd/system/lab.service",
    "/run/systemd/system/lab.service",
    "/run/systemd/transient/lab.service",
    "/etc/systemd/system-generators/lab",
    "/run/systemd/system-generators/lab",
    "/etc/tmpfiles.d/lab.conf",
    "/run/tmpfiles.d/lab.conf",
    "/etc/sysusers.d/lab.conf",
    "/etc/binfmt.d/lab.conf",
    "/etc/modules-load.d/lab.conf",
    "/etc/sysctl.d/lab.conf",
    "/etc/udev/rules.d/lab.rules",
    "/etc/dbus-1/system.d/lab.conf",
    "/usr/share/dbus-1/system-services/lab.service",
  ],
  "cron, at and logrotate": [
    "/etc/cron.d/lab",
    "/etc/cron.daily/lab",
    "/var/spool/cron/crontabs/ai-tools",
    "/var/spool/cron/atjobs/a0000101lab",
    "/etc/logrotate.d/lab",
    "/var/lib/logrotate/lab",
    "/var/log/ai-tools/stop.log.1",
    "/var/log/lab",
  ],
  "sudo and PAM": [
    "/etc/sudoers.d/lab",
    "/run/sudo/ts/olga",
    "/var/lib/sudo/lectured/olga",
    "/etc/pam.d/lab",
    "/etc/security/lab.conf",
  ],
  "shells and programs of root and of operators": [
    "/root/.bashrc.lab",
    "/home/olga/.bashrc.lab",
    "/home/olga/.config/environment.d/lab.conf",
    "/etc/profile.d/lab.sh",
    "/etc/ld.so.preload",
    "/etc/ld.so.conf.d/lab.conf",
    "/usr/local/bin/sudo",
    "/usr/local/sbin/systemctl",
    "/usr/bin/lab",
    "/usr/local/lib/lab.so",
    "/opt/lab/lab-tool",
  ],
};
/** Trees that a session sees empty: what it makes there is in its own view, and gone with it. */
const isOwnView = (path: string) => ["/home/", "/root/", "/run/user/"].some((tree) => path.startsWith(tree));
const everyPlace = Object.values(readers).flat();
/** What makes root's control leave no trace, folders included. */
const takeAway = `for path in ${everyPlace.join(" ")}; do rm -f $path; done
  rm -rf ${passwdHome}/.config ${passwdHome}/.local ${passwdHome}/.ssh
  for folder in /etc/environment.d /run/systemd/user /run/systemd/system-generators /etc/systemd/system-generators /run/tmpfiles.d \
      /usr/lib/systemd/user-environment-generators /etc/udev/rules.d /etc/binfmt.d /etc/modules-load.d /run/sudo/ts \
      /home/olga/.config/environment.d /home/olga/.config /var/lib/logrotate /etc/udev /run/sudo /var/mail; do
    rmdir $folder 2>/dev/null
  done; true`;

afterAll(() => host.sh(takeAway));

test.each(Object.entries(readers))("nothing in the places of %s", async (_reader, paths) => {
  const acts: Acts = Object.fromEntries(paths.map((path) => [`plant ${path}`, ["plant", path, "\n"] as Act]));
  // Never for longer than the control itself: PID 1, cron and the dynamic linker read some of these. The folders go as
  // well, since those that root made would keep everybody else out.
  const before = takeAway;
  try {
    const seen = Object.fromEntries(Object.entries(acts).filter(([, [, path = ""]]) => !isOwnView(path)));
    await expectOutOfReach(host, acts, { before, outOfReachFor: ["account", "unit"] });
    await host.sh(before);
    expectAllRefused(await attempt(host, "session", seen), "session");
    // What it makes in trees of its own, it makes for itself.
    await attempt(host, "session", acts);
    expect(await host.sh(`ls -d ${paths.join(" ")} 2>/dev/null; true`)).toBe("");
  } finally {
    await host.sh(takeAway);
  }
});

test("what a session makes in /run/user, /home, /root, /tmp and /var/tmp is nowhere on the host, nor in the next session", async () => {
  const paths = [
    `/run/user/${uid}/systemd/user/lab.service`,
    "/root/.bashrc.lab",
    "/home/olga/lab/x",
    "/tmp/lab-left",
    "/var/tmp/lab-left",
  ];
  const acts: Acts = Object.fromEntries(paths.map((path) => [path, ["plant", path, "\n"] as Act]));
  expectAllDone(await attempt(host, "root", acts), "control: possible for root, on the host");
  await host.sh(`rm -rf ${paths.join(" ")} /run/user/${uid} /home/olga/lab/x`);
  const first = await attempt(host, "session", acts);
  expect([first["/tmp/lab-left"], first["/var/tmp/lab-left"]]).toEqual(["done", "done"]);
  expect(await host.sh(`ls -d ${paths.join(" ")} 2>/dev/null; true`)).toBe("");
  expect(await attempt(host, "session", acts)).toEqual(first);
});

/** Names under which programs are often tripped up; any other name is in the trace as well. */
const traps = [
  "/tmp/ai-tools",
  "/tmp/ai-tools-stop",
  "/var/tmp/ai-tools",
  "/dev/shm/ai-tools",
  `${sessionsHome}/.gitconfig`,
];

test("with all that the account can plant in place, no helper of root's opens or executes anything of the account's", async () => {
  const project = await insideProject(host);
  const writable = ["/tmp", "/var/tmp", "/dev/shm", "/run/lock", "/run/user", sessionsHome];
  await host.sh(
    traps
      .map((path) => `mkfifo -m 666 ${path} 2>/dev/null`)
      .join("; ")
      .concat("; true"),
    { user: "ai-tools" },
  );
  const shell = await shellEntryPoint(host);
  await inDirectory(host, project, [
    "--run",
    shell,
    "--",
    "-c",
    "mkfifo trap; ln -s /etc/shadow link; mkdir -p .config; echo '[core]' >.gitconfig",
  ]);
  /** The files that a command of root's, and all that it starts, opens, executes or connects to. */
  const opened = async (command: string): Promise<string[]> => {
    await host.run(
      [
        "sh",
        "-c",
        `cd ${project}; timeout 60 strace -f -qq -s 400 -e trace=open,openat,openat2,execve,connect,chdir -o /run/lab/planted ${command} </dev/null`,
      ],
      {
        timeoutMs: 90_000,
      },
    );
    const text = await host.sh("cat /run/lab/planted");
    expect(text).toMatch(/execve\(/);
    const paths = [...text.matchAll(/(?:open|openat|openat2|execve|connect|chdir)\([^"]*"([^"]*)"/g)].map(
      ([, path = ""]) => path,
    );
    return paths.filter(
      (path) =>
        writable.some((place) => path === place || path.startsWith(`${place}/`)) ||
        (!path.startsWith("/") && path.includes("lab")),
    );
  };
  // Control: the trace sees what is opened there.
  expect(await opened(`cat ${sessionsHome}/nothing`)).toEqual([`${sessionsHome}/nothing`]);
  const seen: Record<string, string[]> = {};
  for (const command of [
    `${helper} --dry-run`,
    `${helper} --yes`,
    `${frontDoor} --status`,
    "/usr/libexec/ai-tools/ai-tools-hold hold lab",
    "/usr/libexec/ai-tools/ai-tools-hold release",
    `/usr/libexec/ai-tools/ai-tools-run ${shell}`,
    "/usr/libexec/ai-tools/ai-tools-ended ai-tools-lab-shell-1",
  ])
    seen[command] = await opened(command);
  expect(seen).toEqual(Object.fromEntries(Object.keys(seen).map((command) => [command, []])));
  await host.sh(`rm -f ${traps.join(" ")}`);
});

test("the kernel's own settings that name programs of root are root's", async () => {
  const paths = [
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/modprobe",
    "/proc/sysrq-trigger",
    "/proc/sys/fs/binfmt_misc/register",
  ];
  const acts: Acts = Object.fromEntries(paths.map((path) => [`open ${path}`, ["opened", path] as Act]));
  for (const who of insiders) expectAllRefused(await attempt(host, who, acts), who, ["EROFS", "ENOENT"]);
});

test("nothing was logged as an error, and nothing was denied, that is not told above", () => gate.expectQuiet());
