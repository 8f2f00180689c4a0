// SPDX-License-Identifier: Apache-2.0
// Each thing that a stop or a session rests on, broken alone on a host that is as it should be otherwise: it is named, and
// the line that mends it stands by.

import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { HandMadeGround } from "../ground/hand-made-ground.fixture.ts";
import { enforcing } from "../ground/hand-made-selinux.fixture.ts";
import { launcherPath } from "../ground/places.ts";
import { stat } from "../stop/hand-made-processes.fixture.ts";
import { EACCES, EIO, ENOENT } from "../stop/kernel.ts";
import { counts } from "./facts.ts";
import { grant, healthyHost, slice, sliceDirectory } from "./healthy-host.fixture.ts";
import { gather } from "./status.ts";
import { expectedLines, lastRuleFor } from "./sudo-rule.ts";

const stop = "/usr/libexec/ai-tools/ai-tools-stop";

/** The only check that did not pass. */
async function wrong(change: (host: HandMadeGround) => unknown, caller: "root" | "operator" | "other" = "root") {
  const host = healthyHost(caller);
  slice(host, 0);
  change(host);
  const { checks } = await gather(host);
  const failed = checks.filter((check) => counts(check) && (caller === "root" || check.verdict === "broken"));
  expect(failed.map(({ name }) => name)).toHaveLength(1);
  return failed[0];
}

const directory = (mode: number, uid = 0) => stat({ kind: "directory", mode, uid });
const file = (mode: number, uid = 0) => stat({ mode, uid });
const sudoers = "/etc/sudoers.d/ai-tools";
const generated = "/run/systemd/generator";

type Row = [string, (host: HandMadeGround) => unknown, string, RegExp, string | undefined];

const rows: Row[] = [
  [
    "a hierarchy that is not there",
    (h) => h.files.set("/proc/self/mountinfo", "22 28 0:20 / /proc rw - proc proc rw\n"),
    "cgroup v2",
    /exit 5/,
    undefined,
  ],
  [
    "an account in ai-ops",
    (h) => h.files.set("/etc/group", "ai-ops:x:980:olga,ai-tools\n"),
    "account",
    /no operator/,
    "gpasswd -d ai-tools ai-ops",
  ],
  [
    "a home that others write",
    (h) => h.stats.set("/var/lib/ai-tools", directory(0o777)),
    "account",
    /planted/,
    "chown root:root /var/lib/ai-tools",
  ],
  [
    "a home of the account's",
    (h) => h.stats.set("/var/lib/ai-tools", directory(0o755, 990)),
    "account",
    /planted/,
    "chown root:root /var/lib/ai-tools",
  ],
  [
    "a number that is not recorded",
    (h) => h.files.set("/var/lib/ai-tools/uids", "9901\n"),
    "account",
    /not recorded/,
    "echo 990 >> /var/lib/ai-tools/uids",
  ],
  [
    "a launcher that is missing",
    (h) => h.stats.delete(launcherPath),
    "launcher",
    /not there/,
    "dnf reinstall ai-tools",
  ],
  [
    "a launcher that others write",
    (h) => h.stats.set(launcherPath, file(0o757)),
    "launcher",
    /to write/,
    "dnf reinstall ai-tools",
  ],
  [
    "a launcher that the account cannot execute",
    (h) => h.stats.set(launcherPath, file(0o700)),
    "launcher",
    /executed/,
    `chmod 0755 ${launcherPath}`,
  ],
  [
    "SELinux that enforces and knows no sessions",
    (h) => enforcing(h, { knows: [] }),
    "SELinux",
    /enforcing, and its policy has no domain for sessions: none is started/,
    "dnf install ai-tools-selinux",
  ],
  [
    "a launcher with another label",
    (h) => h.fileContexts.set(launcherPath, "system_u:object_r:bin_t:s0"),
    "SELinux",
    /^enforcing, .*bin_t:s0 and not ai_tools_exec_t: no session is started/,
    "restorecon -RFv /usr/lib/ai-tools",
  ],
  [
    "a launcher with another label while nothing is enforced",
    (h) => {
      h.fileContexts.set(launcherPath, "system_u:object_r:bin_t:s0");
      h.files.set("/sys/fs/selinux/enforce", "0");
    },
    "SELinux",
    /^permissive, .*bin_t:s0 and not ai_tools_exec_t$/,
    "restorecon -RFv /usr/lib/ai-tools",
  ],
  [
    "a domain that is permissive by itself",
    (h) => enforcing(h, { flags: 1 }),
    "SELinux",
    /permissive for ai_tools_t/,
    "semanage permissive -d ai_tools_t",
  ],
  ["SELinux that cannot be asked", (h) => (h.answers = () => EACCES), "SELinux", /cannot be told/, undefined],
  ["a launcher without a label", (h) => h.fileContexts.clear(), "SELinux", /errno 61/, undefined],
  ["a helper that is missing", (h) => h.stats.delete(stop), "helpers", /not there/, "dnf reinstall ai-tools"],
  [
    "a helper that others write",
    (h) => h.stats.set(stop, file(0o722)),
    "helpers",
    /to write/,
    "dnf reinstall ai-tools",
  ],
  [
    "a helper that is not executable",
    (h) => h.stats.set(stop, file(0o600)),
    "helpers",
    /executed/,
    `chmod 0700 ${stop}`,
  ],
  [
    "a log folder that is missing",
    (h) => h.stats.delete("/var/log/ai-tools"),
    "log",
    /not there/,
    "install -d -o root -g root -m 0700 /var/log/ai-tools",
  ],
  [
    "a log folder that others read",
    (h) => h.stats.set("/var/log/ai-tools", directory(0o755)),
    "log",
    /open/,
    "install -d -o root -g root -m 0700 /var/log/ai-tools",
  ],
  [
    "a log that is a link",
    (h) => h.stats.set("/var/log/ai-tools/stop.log", stat({ kind: "link" })),
    "log",
    /not a file/,
    "rm /var/log/ai-tools/stop.log",
  ],
  [
    "a log that others read",
    (h) => h.stats.set("/var/log/ai-tools/stop.log", file(0o644)),
    "log",
    /open/,
    "chown root:root /var/log/ai-tools/stop.log",
  ],
  [
    "cron without its files",
    (h) => h.files.delete("/etc/cron.deny"),
    "cron",
    /open/,
    "printf '\\n%s\\n' ai-tools >> /etc/cron.deny",
  ],
  [
    "cron with others denied",
    (h) => h.files.set("/etc/cron.deny", "ai-tools2\n#ai-tools\n ai-tools\n"),
    "cron",
    /open/,
    "printf '\\n%s\\n' ai-tools >> /etc/cron.deny",
  ],
  [
    "cron with the account allowed",
    (h) => h.files.set("/etc/cron.allow", "olga\n ai-tools \n"),
    "cron",
    /open/,
    "sed -i '/^ *ai-tools *$/d' /etc/cron.allow",
  ],
  [
    "a crontab of the account",
    (h) => h.stats.set("/var/spool/cron/crontabs/ai-tools", file(0o600, 990)),
    "cron",
    /starts things/,
    "crontab -r -u ai-tools",
  ],
  [
    "at with others denied",
    (h) => h.files.set("/etc/at.deny", ""),
    "at",
    /open/,
    "printf '\\n%s\\n' ai-tools >> /etc/at.deny",
  ],
  [
    "at with the account allowed",
    (h) => h.files.set("/etc/at.allow", "ai-tools\n"),
    "at",
    /open/,
    "sed -i '/^ *ai-tools *$/d' /etc/at.allow",
  ],
  [
    "an at job of the account",
    (h) => {
      h.directories.set("/var/spool/at", ["a0001"]);
      h.stats.set("/var/spool/at/a0001", file(0o700, 990));
    },
    "at",
    /starts? things|start things/,
    "atq",
  ],
  [
    "a frozen slice",
    (h) => h.files.set(`${sliceDirectory}/cgroup.freeze`, "1\n"),
    "slice",
    /frozen/,
    `echo 0 > ${sliceDirectory}/cgroup.freeze`,
  ],
  [
    "a frozen parent",
    (h) => h.files.set(`${sliceDirectory}/cgroup.events`, "populated 0\nfrozen 1\n"),
    "slice",
    /above/,
    "systemctl thaw user.slice",
  ],
  [
    "no new cgroups",
    (h) => h.files.set(`${sliceDirectory}/cgroup.max.descendants`, "0\n"),
    "slice",
    /limited/,
    `echo max > ${sliceDirectory}/cgroup.max.descendants`,
  ],
  [
    "no processes",
    (h) => h.files.set(`${sliceDirectory}/pids.max`, "0\n"),
    "slice",
    /no process/,
    `echo max > ${sliceDirectory}/pids.max`,
  ],
  [
    "no limits",
    (h) => h.files.delete(`${generated}/user-990.slice.d/50-ai-tools.conf`),
    "limits",
    /starve/,
    "systemctl daemon-reload",
  ],
  [
    "a limit of tasks not in force",
    (h) => h.files.set(`${sliceDirectory}/pids.max`, "max\n"),
    "limits",
    /not in force/,
    "systemctl daemon-reload",
  ],
  [
    "a limit of memory not in force",
    (h) => h.files.set(`${sliceDirectory}/memory.high`, "max\n"),
    "limits",
    /not in force/,
    "systemctl daemon-reload",
  ],
  [
    "a quota not in force",
    (h) => h.files.set(`${sliceDirectory}/cpu.max`, "max 100000\n"),
    "limits",
    /not in force/,
    "systemctl daemon-reload",
  ],
  [
    "a weight not in force",
    (h) => h.files.set(`${sliceDirectory}/cpu.weight`, "100\n"),
    "limits",
    /not in force/,
    "systemctl daemon-reload",
  ],
  [
    "a controller that was taken away",
    (h) => h.files.delete(`${sliceDirectory}/pids.max`),
    "limits",
    /is not there/,
    "systemctl daemon-reload",
  ],
  [
    "a manager without its pin",
    (h) => h.files.set(`${generated}/user@990.service.d/50-ai-tools.conf`, "[Service]\n"),
    "manager",
    /pin/,
    "systemctl daemon-reload",
  ],
  ["no drop-in for sudo", (h) => h.stats.delete(sudoers), "sudo rule", /not there/, "dnf reinstall ai-tools"],
  [
    "a drop-in that sudo refuses for its mode",
    (h) => h.stats.set(sudoers, file(0o644)),
    "sudo rule",
    /mode 644/,
    `chmod 0440 ${sudoers}`,
  ],
  [
    "a drop-in that sudo refuses for its owner",
    (h) => h.stats.set(sudoers, file(0o440, 7)),
    "sudo rule",
    /not root's/,
    `chown root:root ${sudoers}`,
  ],
  [
    "a drop-in that was edited",
    (h) => h.files.set(sudoers, expectedLines.slice(0, 2).join("\n")),
    "sudo rule",
    /lacks "%ai-ops/,
    `rm ${sudoers}`,
  ],
  [
    "a later rule with a password",
    (h) => (h.program = () => ({ code: 0, output: `${grant}    (ALL : ALL) ALL\n` })),
    "sudo rule",
    /from olga: "\(ALL : ALL\) ALL"/,
    "grep -rn ALL /etc/sudoers /etc/sudoers.d",
  ],
  [
    "an operator without the rule",
    (h) => (h.program = () => ({ code: 0, output: "User olga is not allowed to run sudo on host.\n" })),
    "sudo rule",
    /does not grant olga the stop/,
    "dnf reinstall ai-tools",
  ],
  [
    "an operator with an older grant",
    (h) => {
      h.program = () => ({ code: 0, output: grant.split("\n").slice(0, 2).join("\n") });
    },
    "sudo rule",
    /does not grant olga --run/,
    "dnf reinstall ai-tools",
  ],
  [
    "a slice that cannot be read",
    (h) => h.files.set(`${sliceDirectory}/cgroup.freeze`, EIO),
    "slice",
    /cannot be read/,
    undefined,
  ],
  ["a sudo that hangs", (h) => (h.program = () => "hangs"), "sudo rule", /does not say/, undefined],
];

describe("as root", () => {
  test.each(rows)("%s", async (_name, change, name, says, repair) => {
    const check = await wrong(change);
    expect(check?.name).toBe(name);
    expect(check?.says).toMatch(says);
    expect(check?.repair[0]).toBe(repair);
  });

  test.each<[string, (host: HandMadeGround) => unknown]>([
    ["cron that only lets others in", (h) => h.files.set("/etc/cron.allow", "olga\n")],
    ["at without its files: root alone", (h) => h.files.delete("/etc/at.deny")],
    ["no cron", (h) => h.stats.set("/usr/bin/crontab", ENOENT) && h.files.delete("/etc/cron.deny")],
    ["no at", (h) => h.stats.set("/usr/bin/at", ENOENT) && h.files.set("/etc/at.deny", "")],
    ["no operators", (h) => h.files.set("/etc/group", "ai-ops:x:980:\n")],
    ["no controllers", (h) => h.files.set("/sys/fs/cgroup/cgroup.controllers", "hugetlb\n")],
    ["another limit of tasks, by an administrator", (h) => h.files.set(`${sliceDirectory}/pids.max`, "512\n")],
    ["no SELinux", (h) => h.files.delete("/sys/fs/selinux/enforce")],
    ["SELinux that is permissive", (h) => h.files.set("/sys/fs/selinux/enforce", "0")],
    [
      "SELinux that is permissive and knows no sessions",
      (h) => {
        enforcing(h, { knows: [] });
        h.files.set("/sys/fs/selinux/enforce", "0");
      },
    ],
    [
      "a later rule for another command",
      (h) => (h.program = () => ({ code: 0, output: `${grant}    (ALL) /bin/ls\n` })),
    ],
  ])("%s is nothing that is wrong", async (_name, change) => {
    const host = healthyHost();
    slice(host, 0);
    change(host);
    expect((await gather(host)).checks.filter(counts)).toEqual([]);
  });
});

describe("as an operator", () => {
  test("a later rule is seen in sudo's own list", async () => {
    const later = (h: HandMadeGround) => (h.program = () => ({ code: 0, output: `${grant}    (ALL) ALL\n` }));
    expect((await wrong(later, "operator"))?.says).toContain("takes the stop without a password away from you");
  });

  test("what only root may read is unknown", async () => {
    const { checks } = await gather(healthyHost("operator"));
    const unknown = checks.filter(({ verdict }) => verdict === "unknown").map(({ name }) => name);
    expect(unknown).toEqual(["helpers", "log", "cron", "at"]);
  });

  test.each(["/etc/cron.deny", "/etc/cron.allow", "/etc/at.deny", "/etc/at.allow"])("so is %s", async (path) => {
    const host = healthyHost();
    host.files.set(path, EACCES);
    const { checks } = await gather(host);
    expect(checks.filter(counts)).toMatchObject([{ verdict: "unknown", says: `${path} is readable for root only` }]);
  });
});

describe("the last rule that fits decides", () => {
  const rule = (...lines: string[]) => lastRuleFor(lines.map((line) => `    ${line}\n`).join(""), stop)?.passwordless;

  test.each<[string[], boolean | undefined]>([
    [[], undefined],
    [[`(root) NOPASSWD: ${stop} ""`], true],
    [[`(root) NOPASSWD: ${stop}`], true],
    [[`(root) ${stop} ""`], false],
    [[`(root) NOPASSWD: ${stop} --force`], undefined],
    [[`(root) NOPASSWD: ${stop} ""`, "(ALL : ALL) ALL"], false],
    [["(ALL : ALL) ALL", `(root) NOPASSWD: ${stop} ""`], true],
    [[`(root) NOPASSWD: ${stop} ""`, "(ALL) NOPASSWD: ALL"], true],
    [[`(root) NOPASSWD: ${stop} ""`, "(postgres) ALL"], true],
    [[`(root) NOPASSWD: ${stop} ""`, "(root : root) ALL"], false],
    [[`(root) NOPASSWD: ${stop} ""`, `(ALL) NOPASSWD: ALL, !${stop}`], false],
    [[`(root) NOPASSWD: ${stop} ""`, "(root) /usr/libexec/ai-tools/"], false],
    [[`(root) NOPASSWD: ${stop} ""`, "(root) /usr/libexec/*/ai-tools-*"], false],
    [[`(root) NOPASSWD: ${stop} ""`, "(root) /usr/libexec/*"], true],
    [[`(root) NOPASSWD: ${stop} ""`, "(root) ^/usr/libexec/.*$"], false],
    [[`(root) NOPASSWD: ${stop} ""`, "(root) SETENV: /bin/a\\, b, ALL"], false],
    [[`(root) NOPASSWD: /bin/x, ${stop} ""`], true],
    [[`(root) NOPASSWD: /bin/x, PASSWD: ${stop} ""`], false],
    [[`(root) NOEXEC: NOPASSWD: ${stop} ""`], true],
  ])("%j", (lines, passwordless) => {
    expect(rule(...lines)).toBe(passwordless);
  });

  test("the lines that are expected are those of the drop-in", () => {
    const lines = readFileSync("sudoers.d/ai-tools", "utf8").split("\n");
    for (const line of expectedLines) expect(lines).toContain(line);
  });
});
