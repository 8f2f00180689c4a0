// SPDX-License-Identifier: Apache-2.0
// Promise: the package puts on a host exactly what it says, closed to whoever may not, and takes nothing away that
// somebody still needs: not the accounts, not the trail, not a running session.

import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RPM_VARIABLE } from "../../src/tooling/boundary/boundary-lab.ts";
import type { LabHost } from "../../src/tooling/lab/host.ts";
import { openLab } from "../../src/tooling/lab/lab.ts";
import { inProject } from "../../src/tooling/machine.ts";
import { buildPackage } from "../../src/tooling/package/package.ts";
import { labHost, whichHost } from "./kit/host.ts";
import { frontDoor, helper } from "./kit/stop.ts";

const dropIn = "/etc/sudoers.d/ai-tools";
const preferredUid = "647";
/** What `sudo -l` says of the two grants, and of no other without a password. */
const sessionHelpers = ["claim", "run", "hold"].map((name) => `/usr/libexec/ai-tools/ai-tools-${name}`);
const grants = [`(root) NOPASSWD: ${helper} ""`, `(root) NOPASSWD: ${sessionHelpers.join(", ")}`];

/** Mode, owner, group and path of everything that the package owns, without its licences. */
const installed = [
  "drwxr-xr-x root:root /etc/ai-tools",
  "-rw-r--r-- root:root /etc/ai-tools/drill.conf",
  "drwxr-xr-x root:root /etc/ai-tools/entrypoints.d",
  "-rw-r--r-- root:root /etc/ai-tools/entrypoints.d/claude-code.conf.example",
  "-rw-r--r-- root:root /etc/ai-tools/entrypoints.d/codex.conf.example",
  "-rw-r--r-- root:root /etc/ai-tools/entrypoints.d/gemini-cli.conf.example",
  "-rw-r--r-- root:root /etc/ai-tools/entrypoints.d/goose.conf.example",
  "-rw-r--r-- root:root /etc/ai-tools/entrypoints.d/opencode.conf.example",
  "-rw-r--r-- root:root /etc/ai-tools/entrypoints.d/shell.conf",
  "-rw-r--r-- root:root /etc/logrotate.d/ai-tools",
  "-r--r----- root:root /etc/sudoers.d/ai-tools",
  "drwxr-xr-x root:root /run/ai-tools",
  "drwxr-xr-x root:root /run/ai-tools/ended",
  "drwxr-xr-x root:root /run/ai-tools/stop",
  "-rwxr-xr-x root:root /usr/bin/ai-tools",
  "drwxr-xr-x root:root /usr/lib/ai-tools",
  "-rwxr-xr-x root:root /usr/lib/ai-tools/ai-tools-session",
  "-rwxr-xr-x root:root /usr/lib/systemd/system-generators/ai-tools-generator",
  "-rw-r--r-- root:root /usr/lib/systemd/system-preset/80-ai-tools.preset",
  "-rw-r--r-- root:root /usr/lib/systemd/system/ai-tools-drill.service",
  "-rw-r--r-- root:root /usr/lib/systemd/system/ai-tools-drill.timer",
  "-rw-r--r-- root:root /usr/lib/systemd/system/ai-tools-ended@.service",
  "-rw-r--r-- root:root /usr/lib/systemd/system/ai-tools-failed@.service",
  "-rw-r--r-- root:root /usr/lib/sysusers.d/ai-tools.conf",
  "-rw-r--r-- root:root /usr/lib/tmpfiles.d/ai-tools.conf",
  "drwxr-x--- root:root /usr/libexec/ai-tools",
  "-rwx------ root:root /usr/libexec/ai-tools/ai-tools-claim",
  "-rwx------ root:root /usr/libexec/ai-tools/ai-tools-ended",
  "-rwx------ root:root /usr/libexec/ai-tools/ai-tools-hold",
  "-rwx------ root:root /usr/libexec/ai-tools/ai-tools-run",
  "-rwx------ root:root /usr/libexec/ai-tools/ai-tools-stop",
  "drwxr-xr-x root:root /usr/share/ai-tools",
  "-rw-r--r-- root:root /usr/share/ai-tools/drill-page.html",
  ...["checks", "drill", "evidence", "kernel", "leftovers"].map(
    (part) => `-rw-r--r-- root:root /usr/share/ai-tools/live-${part}.sh`,
  ),
  "-rwxr-xr-x root:root /usr/share/ai-tools/verify-live-flows.sh",
  "-rw-r--r-- root:root /usr/share/man/man1/ai-tools.1",
  "-rw-r--r-- root:root /usr/share/man/man5/ai-tools-entrypoint.5",
  "-rw-r--r-- root:root /usr/share/man/man8/ai-tools-stop.8",
  "drwxr-xr-x root:root /var/lib/ai-tools",
  "drwxr-xr-x root:root /var/lib/ai-tools/claims",
  "drwx------ ai-tools:ai-tools /var/lib/ai-tools/home",
  "drwxr-xr-x root:root /var/lib/ai-tools/sessions",
  "drwx------ root:root /var/log/ai-tools",
];

/** Mode, owner, group and path of these, as the host has them; what is absent is left out. */
async function modes(host: LabHost, ...paths: string[]): Promise<string[]> {
  const { stdout } = await host.run(["stat", "--format=%A %U:%G %n", ...paths]);
  return lines(stdout);
}

function lines(text: string): string[] {
  return text.split("\n").filter((line) => line !== "");
}

/** What `sudo -l` says that somebody may do without a password. */
async function withoutPassword(host: LabHost, user: string): Promise<string[]> {
  const { stdout } = await host.run(["sudo", "-l", "-U", user]);
  return lines(stdout)
    .map((line) => line.trim())
    .filter((line) => line.includes("NOPASSWD"));
}

describe("on a host with the package", async () => {
  const host = await labHost();

  test("everything has its mode and its owner", async () => {
    const owned = lines(await host.sh("rpm -ql ai-tools")).filter(
      (path) => !/^\/usr\/share\/(licenses|doc)\//.test(path),
    );
    expect(await modes(host, ...owned)).toEqual(installed);
  });

  test("both licences are there", async () => {
    expect(await host.sh("cat /usr/share/licenses/ai-tools-*/LICENSE")).toBe(
      readFileSync(inProject("LICENSE"), "utf8"),
    );
    expect(await host.sh("cat /usr/share/licenses/ai-tools-*/LICENSE.quickjs")).toMatch(/Fabrice Bellard/);
  });

  test.each([helper, frontDoor])("%s is a static executable that knows its version", async (program) => {
    const { stdout, stderr } = await host.run(["ldd", program]);
    expect(stdout + stderr).toMatch(/not a dynamic executable|statically linked/);
    const version = (await host.sh("rpm -q --queryformat '%{VERSION}' ai-tools")).trim();
    expect(await host.sh(`${program} --version`)).toContain(version);
  });

  test.each(sessionHelpers)("%s is a static executable", async (program) => {
    const { stdout, stderr } = await host.run(["ldd", program]);
    expect(stdout + stderr).toMatch(/not a dynamic executable|statically linked/);
  });

  test("the sandbox account is a system account without password, shell or group of others", async () => {
    const [, , uid, gid, , home, shell] = (await host.sh("getent passwd ai-tools")).trim().split(":");
    expect({ uid, gid, home, shell }).toEqual({
      uid: preferredUid,
      gid: preferredUid,
      home: "/var/lib/ai-tools",
      shell: "/usr/sbin/nologin",
    });
    expect((await host.sh("id -nG ai-tools")).trim()).toBe("ai-tools");
    const [, password, , , , , , expires] = (await host.sh("getent shadow ai-tools")).trim().split(":");
    expect(password).toMatch(/^[!*]/);
    // An expired account has no user manager.
    expect(expires).toBe("");
  });

  test("the account's number is remembered in a file of root's", async () => {
    expect(await host.sh("cat /var/lib/ai-tools/uids")).toBe(`${preferredUid}\n`);
    expect(await modes(host, "/var/lib/ai-tools/uids")).toEqual(["-rw-r--r-- root:root /var/lib/ai-tools/uids"]);
  });

  test("the account writes to its sessions' home and to nothing else of the package", async () => {
    const directories = installed.filter((line) => line.startsWith("d")).map((line) => line.split(" ")[2]);
    const script = 'for path; do test -w "$path" && echo "$path"; done; true';
    const { stdout } = await host.run(["sh", "-c", script, "sh", ...(directories as string[])], { user: "ai-tools" });
    expect(lines(stdout)).toEqual(["/var/lib/ai-tools/home"]);
  });

  test("the sudo rule is the project's own, and sudo accepts it together with the host's", async () => {
    expect(await host.sh(`cat ${dropIn}`)).toBe(readFileSync(inProject("sudoers.d", "ai-tools"), "utf8"));
    expect(await host.sh("visudo -c")).toContain(`${dropIn}: parsed OK`);
  });

  test("an operator may run the bare helper and those of a session's life without a password, and nothing else", async () => {
    expect(await withoutPassword(host, "olga")).toEqual(grants);
  });

  test.each(["ursula", "ai-tools"])("%s may run nothing through sudo", async (user) => {
    expect(await host.sh(`sudo -l -U ${user}`)).toMatch(new RegExp(`User ${user} is not allowed to run sudo`));
  });
});

describe("over the life of the package", () => {
  // A host of its own: what happens here would take the package away from the other tests.
  let lab: Awaited<ReturnType<typeof openLab>>;
  let host: LabHost;
  let first: string;
  const trail = "/var/log/ai-tools/stop.log";
  const sessionUnit = "ai-tools-claude-code-900.service";
  const uidOf = async (name: string) => (await host.sh(`id -u ${name}`)).trim();
  const sessionPid = async () => (await host.sh(`systemctl show -P MainPID ${sessionUnit}`)).trim();

  beforeAll(async () => {
    first = process.env[RPM_VARIABLE] ?? (await buildPackage()).rpm;
    lab = await openLab();
    host = await lab.boot(whichHost());
    // Somebody has the preferred number already.
    await host.sh(`useradd --system --uid ${preferredUid} neighbour`);
    await host.installPackage(first);
    await host.enableLinger();
    const uid = await uidOf("ai-tools");
    await host.sh(`systemd-run --uid=ai-tools --slice=user-${uid}.slice --unit=${sessionUnit} sleep 600`);
    await host.sh(`umask 077; echo '{"kept":true}' >${trail}; echo work >/var/lib/ai-tools/home/file`);
  });

  afterAll(async () => {
    await lab?.end();
  });

  test("where the preferred number is taken, the account has another system number, and it is the remembered one", async () => {
    expect(await uidOf("neighbour")).toBe(preferredUid);
    const uid = await uidOf("ai-tools");
    expect(uid).not.toBe(preferredUid);
    expect(Number(uid)).toBeLessThan(1000);
    expect(await host.sh("cat /var/lib/ai-tools/uids")).toBe(`${uid}\n`);
    expect(await host.sh("stat --format=%U /var/lib/ai-tools/home")).toBe("ai-tools\n");
  });

  test("nothing differs from what was packaged", async () => {
    expect((await host.run(["rpm", "-V", "ai-tools"])).stdout).toBe("");
  });

  test("a rotated trail stays root's alone", async () => {
    await host.sh("logrotate --force /etc/logrotate.d/ai-tools");
    expect(await modes(host, trail, `${trail}.1`)).toEqual([
      `-rw------- root:root ${trail}`,
      `-rw------- root:root ${trail}.1`,
    ]);
    expect(await host.sh(`cat ${trail}.1`)).toBe('{"kept":true}\n');
  });

  test("the directories of /run are made again by what a boot runs", async () => {
    await host.sh("rm -r /run/ai-tools && systemd-tmpfiles --create");
    expect(await modes(host, "/run/ai-tools", "/run/ai-tools/stop")).toEqual([
      "drwxr-xr-x root:root /run/ai-tools",
      "drwxr-xr-x root:root /run/ai-tools/stop",
    ]);
  });

  test("an upgrade puts its own sudo rule in force, keeps the number, and ends neither session nor manager", async () => {
    const uid = await uidOf("ai-tools");
    const manager = async () => (await host.sh(`systemctl show -P MainPID user@${uid}.service`)).trim();
    const before = { manager: await manager(), session: await sessionPid() };
    expect(Number(before.manager)).toBeGreaterThan(1);
    expect(Number(before.session)).toBeGreaterThan(1);
    await host.sh(`echo '%ai-ops ALL = (root) NOPASSWD: /usr/bin/id' >>${dropIn}`);
    expect(await withoutPassword(host, "olga")).toContain("(root) NOPASSWD: /usr/bin/id");

    const tighter = `${readFileSync(inProject("sudoers.d", "ai-tools"), "utf8")}# Tightened.\n`;
    await host.installPackage((await buildPackage({ release: 2, replaced: { "sudoers.d/ai-tools": tighter } })).rpm);

    expect(await host.sh("rpm -q ai-tools")).toMatch(/^ai-tools-[\d.]+-2\.\w+\n$/);
    expect(await withoutPassword(host, "olga")).toEqual(grants);
    expect(await host.sh(`cat ${dropIn}`)).toBe(tighter);
    expect(await modes(host, dropIn)).toEqual([`-r--r----- root:root ${dropIn}`]);
    expect(await host.sh("cat /var/lib/ai-tools/uids")).toBe(`${uid}\n`);
    expect({ manager: await manager(), session: await sessionPid() }).toEqual(before);
    expect((await host.run(["rpm", "-V", "ai-tools"])).stdout).toBe("");
  });

  test("erasing it takes away the programs and the rule, and leaves accounts, trail, numbers and the sessions' files", async () => {
    const uid = await uidOf("ai-tools");
    await host.sh("rpm --erase ai-tools");

    expect(await modes(host, helper, frontDoor, dropIn, "/usr/libexec/ai-tools")).toEqual([]);
    expect(await withoutPassword(host, "olga")).toEqual([]);
    expect(await uidOf("ai-tools")).toBe(uid);
    expect(await host.sh("id -nG olga")).toMatch(/\bai-ops\b/);
    expect(await host.sh(`cat ${trail}.1`)).toBe('{"kept":true}\n');
    expect(await modes(host, "/var/log/ai-tools")).toEqual(["drwx------ root:root /var/log/ai-tools"]);
    expect(await host.sh("cat /var/lib/ai-tools/uids")).toBe(`${uid}\n`);
    expect(await host.sh("cat /var/lib/ai-tools/home/file")).toBe("work\n");
    expect(Number(await sessionPid())).toBeGreaterThan(1);
  });

  test("installed again, it takes up the same account", async () => {
    await host.installPackage(first);
    const uid = await uidOf("ai-tools");
    expect(await host.sh("cat /var/lib/ai-tools/uids")).toBe(`${uid}\n`);
    expect(await modes(host, "/var/lib/ai-tools/home", helper)).toEqual([
      "drwx------ ai-tools:ai-tools /var/lib/ai-tools/home",
      `-rwx------ root:root ${helper}`,
    ]);
    expect(await withoutPassword(host, "olga")).toEqual(grants);
  });
});
