// SPDX-License-Identifier: Apache-2.0
// Promise: a helper that cannot do its work says so with 5 and what to do by hand, records it, and touches nothing; it
// never reports from a view of only a part of the host.

import { beforeAll, describe, expect, test } from "vitest";

import { startPayload } from "../../src/tooling/tempers/payloads.ts";
import { clearHost, running } from "./kit/facts.ts";
import { labHost } from "./kit/host.ts";
import { entryOf, helper, lastStop, results, stopBy, stopByScript } from "./kit/stop.ts";

const host = await labHost();
const uid = (await host.sh("id -u ai-tools")).trim();

beforeAll(async () => {
  await clearHost(host);
  await startPayload(host, "851", "polite", "session");
});

/** Runs the helper in a mount namespace in which a file has been replaced by what this sed script makes of it. */
function withPasswd(edit: string): string {
  return `sed '${edit}' /etc/passwd >/run/passwd && exec unshare --mount sh -c 'mount --bind /run/passwd /etc/passwd && exec ${helper} --force --yes'`;
}

describe("exit 5, nothing touched, recorded, and how to do it by hand, where", () => {
  test.each([
    [
      "the helper is in a pid namespace of its own",
      `exec unshare --pid --mount-proc --fork --cgroup ${helper} --force --yes`,
    ],
    [
      "the helper sees its own pid namespace, but all cgroups",
      `exec unshare --pid --mount-proc --fork ${helper} --force --yes`,
    ],
    [
      "the helper is in a cgroup namespace of its own",
      `mkdir -p /sys/fs/cgroup/lab && echo $$ >/sys/fs/cgroup/lab/cgroup.procs && exec unshare --cgroup --mount sh -c 'umount -l /sys/fs/cgroup && mount -t cgroup2 cgroup2 /sys/fs/cgroup && exec ${helper} --force --yes'`,
    ],
    [
      "/proc shows processes only",
      `exec unshare --mount sh -c 'mount -t proc -o subset=pid proc /proc && exec ${helper} --force --yes'`,
    ],
    ...["ptraceable", "invisible,gid=26"].map((hidden) => [
      `/proc is mounted with hidepid=${hidden}, and the caller took CAP_SYS_PTRACE away`,
      `exec unshare --mount sh -c 'mount -t proc -o hidepid=${hidden} proc /proc && exec setpriv --bounding-set=-sys_ptrace ${helper} --force --yes'`,
    ]),
    [
      "no cgroup v2 hierarchy is mounted",
      `exec unshare --mount sh -c 'umount -l /sys/fs/cgroup && exec ${helper} --force --yes'`,
    ],
    ["there is no such account", withPasswd("/^ai-tools:/d")],
    ["the account has uid 0", withPasswd("s/^ai-tools:x:[0-9]*/ai-tools:x:0/")],
    ["another name has the account's uid", withPasswd(`$ a shadow:x:${uid}:${uid}::/:/bin/sh`)],
  ])("%s", async (_, script) => {
    const verdictBefore = await host.sh(`cat ${lastStop} 2>/dev/null || true`);
    const { code, stdout, stderr, entries } = await stopByScript(host, script);
    expect({ code, stdout }).toEqual({ code: 5, stdout: "" });
    expect(stderr).toMatch(/nothing was stopped/);
    expect(stderr).toMatch(/cgroup\.kill|systemctl kill|pkill/);
    expect(results(entries)).toEqual(["refused"]);
    expect(entryOf(entries, "refused").message).toMatch(/nothing was stopped: ./);
    expect(await host.sh(`cat ${lastStop} 2>/dev/null || true`)).toBe(verdictBefore);
    expect(await running(host)).toEqual(["851"]);
  });

  test("the helper is not root", async () => {
    await host.sh(`install -m 755 ${helper} /opt/lab/helper`);
    const { code, stderr, entries } = await stopBy(host, ["/opt/lab/helper", "--force", "--yes"], { user: "olga" });
    expect(code).toBe(5);
    expect(stderr).toMatch(/nothing was stopped/);
    expect(stderr).toMatch(/ai-tools --stop/);
    expect(results(entries)).toEqual([]);
    expect(await running(host)).toEqual(["851"]);
  });
});

test("a cgroup hierarchy that is mounted read-only is no reason to give up: each process is killed by itself", async () => {
  await startPayload(host, "852", "deaf", "exec");
  const { code, stdout } = await stopByScript(
    host,
    `exec unshare --mount sh -c 'mount -o remount,bind,ro /sys/fs/cgroup && exec ${helper} --force --yes --json'`,
  );
  expect(code).toBe(0);
  const report = JSON.parse(stdout) as { mechanisms: string[]; remarks: string[] };
  expect(report.mechanisms).toEqual(["per-pid"]);
  expect(report.remarks.join(" ")).toMatch(/read-only/);
  expect(await running(host)).toEqual([]);
});
