// SPDX-License-Identifier: Apache-2.0
// Promise: on a host that is set up in another way (/proc, cgroup layout, numbers of the account, a helper in a
// container), the stop either sees everything and does its work, or refuses with 5 and touches nothing.
//
// The layout with cgroup v1 alone is one without a v2 mount here. A clock that jumps for the helper alone is tried in
// clock.test.ts; one that jumps for PID 1 as well would be the machine's.

import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { countersOnHost, tempersOnHost } from "../../../src/tooling/tempers/build-tempers.ts";
import { startAccountManager, startPayload, startPayloads } from "../../../src/tooling/tempers/payloads.ts";
import { bystanders } from "../kit/aftermath.ts";
import { calmHost, closeWith, expectCalm, lookForCalm } from "../kit/calm.ts";
import { inOwnMounts, whereHelperSees } from "../kit/faults.ts";
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
closeWith(host);
const uid = (await host.sh("id -u ai-tools")).trim();
const options = ["--force", "--yes", "--json"];

beforeEach(async () => {
  await calmHost(host);
  await startAccountManager(host);
  await startPayloads(host, [
    { name: "3801", temper: "deaf", place: "session" },
    { name: "3802", temper: "headless", place: "exec" },
  ]);
});

/** The helper as the only process of a unit of root's with these properties. */
function fromUnit(properties: string): string {
  return `systemd-run --quiet --wait --pipe --collect ${properties} ${helper} ${options.join(" ")}`;
}

function reportOf({ stdout }: StopResult): Report {
  return JSON.parse(stdout) as Report;
}

describe("everything is ended and the manager is back where", () => {
  const hybrid = `umount -l /sys/fs/cgroup; mount -t tmpfs tmpfs /sys/fs/cgroup
    mkdir /sys/fs/cgroup/unified /sys/fs/cgroup/systemd /sys/fs/cgroup/pids; mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified`;

  test.each([
    ["/proc hides other people's processes", whereHelperSees("mount -t proc -o hidepid=2 proc /proc", ...options)],
    ["/proc shows what may be traced", whereHelperSees("mount -t proc -o hidepid=4 proc /proc", ...options)],
    ["the layout is hybrid", whereHelperSees(hybrid, ...options)],
    [
      "the hierarchy is mounted elsewhere",
      whereHelperSees(
        "mkdir -p /run/lab/cgroup2; umount -l /sys/fs/cgroup; mount -t cgroup2 cgroup2 /run/lab/cgroup2",
        ...options,
      ),
    ],
    [
      "the hierarchy is mounted twice",
      whereHelperSees("mkdir -p /run/lab/cgroup2; mount -t cgroup2 cgroup2 /run/lab/cgroup2", ...options),
    ],
    [
      "a part of the hierarchy is mounted over it too",
      whereHelperSees(
        "mkdir -p /run/lab/cgroup2; mount --bind /sys/fs/cgroup/system.slice /run/lab/cgroup2",
        ...options,
      ),
    ],
    // The helper asks for a priority: this filter would end it with SIGSYS, and that limit in the middle of a look.
    ["a detector's unit may not ask for priorities", fromUnit("-p SystemCallFilter=~@resources")],
    ["a detector's unit has a limit on realtime", fromUnit("-p LimitRTTIME=1000")],
    ["the state directory is empty", whereHelperSees("mount -t tmpfs -o mode=755 tmpfs /var/lib/ai-tools", ...options)],
  ])("%s", async (_, script) => {
    const result = await stopByScript(host, script);
    expect(result.code).toBe(0);
    expect(reportOf(result).rows.map(({ unit, outcome }) => [unit, outcome])).toEqual(
      expect.arrayContaining([["ai-tools-claude-code-3801.service", "killed"]]),
    );
    await expectCalm(host, { manager: "active" });
  });

  test("the operator sees no processes but his own", async () => {
    const script = `mount -t proc -o hidepid=2 proc /proc; exec runuser -u olga -- ${frontDoor} --stop`;
    const { code, entries } = await stopByScript(host, inOwnMounts(script));
    expect(code).toBe(0);
    expect(entryOf(entries, "stopped").AI_TOOLS_CALLER).toBe("olga");
    await expectCalm(host, { manager: "active" });
  });
});

describe("5, nothing touched, where", () => {
  const v1 = "umount -l /sys/fs/cgroup; mount -t tmpfs tmpfs /sys/fs/cgroup; mkdir /sys/fs/cgroup/systemd";
  const passwd = (edit: string) =>
    `sed '${edit}' /etc/passwd >/run/lab/passwd; mount --bind /run/lab/passwd /etc/passwd`;
  const container = "unshare --pid --fork --mount --cgroup --uts --ipc --net --mount-proc";

  test.each([
    ["there is no cgroup v2", whereHelperSees(v1, ...options)],
    [
      "only a part of the hierarchy is mounted",
      whereHelperSees(
        `mkdir -p /run/lab/cgroup2; mount --bind /sys/fs/cgroup/system.slice /run/lab/cgroup2; umount -l /sys/fs/cgroup`,
        ...options,
      ),
    ],
    ["the helper is in a user namespace", `exec unshare --user --map-root-user ${helper} ${options.join(" ")}`],
    ["the helper is in a pid namespace", `exec unshare --pid --fork --mount-proc ${helper} ${options.join(" ")}`],
    [
      "the helper is in a pid namespace that sees the host's /proc",
      `exec unshare --pid --fork ${helper} ${options.join(" ")}`,
    ],
    ["the helper is in a container", `exec ${container} ${helper} ${options.join(" ")}`],
    ["the account is missing", whereHelperSees(passwd("/^ai-tools:/d"), ...options)],
    ["the account has uid 0", whereHelperSees(passwd("s/^ai-tools:x:[0-9]*/ai-tools:x:0/"), ...options)],
    ["the account has no number", whereHelperSees(passwd("s/^ai-tools:x:[0-9]*/ai-tools:x:/"), ...options)],
    ["the account's number is none", whereHelperSees(passwd("s/^ai-tools:x:[0-9]*/ai-tools:x:0x28f/"), ...options)],
    ["the account shares its number", whereHelperSees(passwd(`$ a shadow:x:${uid}:${uid}::/:/bin/sh`), ...options)],
    ["the list of accounts is empty", whereHelperSees("mount --bind /dev/null /etc/passwd", ...options)],
  ])("%s", async (_, script) => {
    const { code, stderr, entries } = await stopByScript(host, script);
    expect({ code, stderr }).toMatchObject({ code: 5, stderr: expect.stringMatching(/nothing was stopped/) });
    expect(results(entries).filter((result) => result !== "refused")).toEqual([]);
    expect((await lookForCalm(host)).running).toEqual(["3801", "3802", ...bystanders].sort());
  });

  // Without /proc no descriptor can be opened again, and nothing is written that could block.
  test.each([
    ["is not mounted", "umount -l /proc"],
    ["is something else", "mount -t tmpfs tmpfs /proc"],
  ])("/proc %s", async (_, damage) => {
    const { code, stdout, entries } = await stopByScript(host, whereHelperSees(damage, ...options));
    expect({ code, stdout }).toEqual({ code: 5, stdout: "" });
    expect(results(entries).filter((result) => result !== "refused")).toEqual([]);
    expect((await lookForCalm(host)).running).toEqual(["3801", "3802", ...bystanders].sort());
  });
});

describe("the account got another number, the old one is recorded, and sessions of both run:", () => {
  const recorded = "/var/lib/ai-tools/uids";
  afterEach(() => host.sh(`mv /run/lab/uids ${recorded}; systemctl kill -s KILL lab-renumbered.service; true`));

  test("all are ended", async () => {
    await host.sh(`cp ${recorded} /run/lab/uids; echo 70007 >>${recorded}
      systemd-run --quiet --collect --unit=lab-renumbered setpriv --reuid=70007 --clear-groups ${tempersOnHost}/deaf ${countersOnHost}/3803 60`);
    await startPayload(host, "3804", "polite", "exec");
    const result = await stopBy(host, [helper, ...options]);
    expect(result.code).toBe(0);
    await expectCalm(host);
  });
});
