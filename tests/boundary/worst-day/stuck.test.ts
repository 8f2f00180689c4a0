// SPDX-License-Identifier: Apache-2.0
// Promise: a stop never waits for what nobody can end. Who sits in the kernel is named with state and wait channel and
// exit code 1, within the limits and with everything else gone, and 0 follows once it is let go; a hung file system of the
// account's own is cut off; the dead that nobody reaps are no sessions.

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { tempersOnHost } from "../../../src/tooling/tempers/build-tempers.ts";
import { startBystanders, startPayload } from "../../../src/tooling/tempers/payloads.ts";
import { bystanders, expectAftermath, expectStopped, freshHost, stopWatched } from "../kit/aftermath.ts";
import { startCommand, startCounting, temper, unitOf, type Where } from "../kit/commands.ts";
import { accountProcesses, eventually, running } from "../kit/facts.ts";
import { lettingGoOf } from "../kit/faults.ts";
import { labHost } from "../kit/host.ts";
import { frontDoor, stopBy } from "../kit/stop.ts";

/** Two stops, of which one runs to its limits, on a busy machine. */
vi.setConfig({ testTimeout: 300_000 });

const host = await labHost();
const uid = (await host.sh("id -u ai-tools")).trim();
const olga = (await host.sh("id -u olga")).trim();

beforeEach(() => freshHost(host));

/** Waits until so many processes of this name wait in the kernel for a file system, and says where, in order. */
async function untilStuck(command: string, count = 1): Promise<string[]> {
  let channels: string[] = [];
  await eventually(`${count} ${command} stuck`, async () => {
    const text = await host.sh(`for pid in $(pgrep -x ${command}); do cat /proc/$pid/wchan; echo; done; true`);
    channels = text
      .split("\n")
      .filter((channel) => /^(percpu_rwsem_wait|request_wait_answer|fuse_lock_inode)$/.test(channel));
    return channels.length === count;
  });
  return channels.sort();
}

// moby 22802, 37886, runc 4145
describe("a process that writes to a frozen file system", () => {
  const image = "/root/lab-frozen.img";
  const place = "/run/lab/frozen";

  // The loop device of the machine goes with the mount: "-o loop" sets its autoclear flag.
  beforeEach(() =>
    host.sh(`for number in 0 1 2 3 4 5 6 7; do [ -b /dev/loop$number ] || mknod -m 600 /dev/loop$number b 7 $number; done
      [ -c /dev/loop-control ] || mknod -m 600 /dev/loop-control c 10 237
      truncate -s 8M ${image} && mkfs.ext4 -q -F ${image} && mkdir -p ${place}
      mount -o loop ${image} ${place} && chmod 1777 ${place}`),
  );
  afterEach(() => host.sh(`fsfreeze --unfreeze ${place}; pkill -KILL -x dd; umount -l ${place}; rm -f ${image}; true`));

  test.each([
    ["in the slice, after the grace", "session", ["--yes"]],
    ["outside the slice, at once", "system-unit", ["--yes", "--force"]],
  ] as const)("%s: named with D and its wait channel, and 1; 0 after the thaw", async (_, where: Where, options) => {
    await startCounting(host, "2401", "session", temper("deaf", "2401"));
    await startCounting(host, "2402", "exec", temper("polite", "2402"));
    await host.sh(`fsfreeze --freeze ${place}`);
    await startCommand(host, "2403", where, `dd if=/dev/zero of=${place}/file bs=4096 count=1`);
    const [waitChannel] = await untilStuck("dd");
    const unit = where === "session" ? unitOf("2403") : "lab-stray-2403.service";
    const first = await stopWatched(host, ...options);
    await expectStopped(host, first, {
      code: 1,
      survivors: [{ command: "dd", state: "D", waitChannel }],
      outcomes: { [unit]: "alive", [unitOf("2401")]: "killed" },
    });
    expect(await accountProcesses(host)).toHaveLength(1);

    await host.sh(`fsfreeze --unfreeze ${place}`);
    await eventually("it is gone", async () => (await accountProcesses(host)).length === 0);
    const second = await stopBy(host, [frontDoor, "--stop"], { user: "olga" });
    expect(second.code).toBe(0);
    await expectAftermath(host);
  });
});

describe("a FUSE daemon that asks its own file system and answers nobody", () => {
  const place = "/run/lab/entangled";
  const release = lettingGoOf(place);

  beforeEach(() =>
    host.sh("mountpoint -q /sys/fs/fuse/connections || mount -t fusectl fusectl /sys/fs/fuse/connections"),
  );
  afterEach(() => host.sh(`${release}; umount -l ${place}; systemctl kill -s KILL 'lab-*-24*'; true`));

  /** It works until it is killed, and then waits for itself. */
  async function startEntangled(name: string, where: Where, owner: string): Promise<void> {
    await startCounting(host, name, where, temper("entangled", name, place, owner));
  }

  test.each([
    ["inside the slice", "root-in-slice"],
    ["outside the slice", "root"],
  ] as const)("of the account's, %s: its connection is cut off, which is said, and all is gone", async (_, where) => {
    // Beside an excepted container nothing is cut off: the connection could be the container's.
    await host.sh("systemctl kill -s KILL lab-bystander-container; rm -f /run/lab/counters/container");
    await startEntangled("2411", where, uid);
    await startPayload(host, "2412", "deaf", "session");
    const { code, report } = await stopWatched(host, "--yes", "--force");
    expect({ code, verdict: report.verdict, survivors: report.survivors }).toEqual({
      code: 0,
      verdict: "stopped",
      survivors: [],
    });
    expect(report.remarks.join("\n")).toMatch(/FUSE connections of the account were cut off/);
    expect(await running(host)).toEqual(bystanders.filter((kind) => kind !== "container"));
    expect(await accountProcesses(host)).toEqual([]);
    await startBystanders(host, ["container"]);
    await expectAftermath(host, report);
  });

  test("of the account's beside a container under its number: nothing is cut off, it is named, and 1", async () => {
    await startEntangled("2413", "root-in-slice", uid);
    await startPayload(host, "2414", "deaf", "session");
    const result = await stopWatched(host, "--yes", "--force");
    await expectStopped(host, result, {
      code: 1,
      survivors: [{ command: "entangled" }],
      outcomes: { [unitOf("2413")]: "alive", [unitOf("2414")]: "killed" },
    });
    await host.sh(release);
    expect((await stopBy(host, [frontDoor, "--stop"], { user: "olga" })).code).toBe(0);
    await expectAftermath(host);
  });

  test.each([
    ["root's", "0"],
    ["an operator's", olga],
  ])(
    "%s hung one, asked by a session and a stray: both are named with D, and 1; 0 once it is let go",
    async (_, owner) => {
      await startCommand(host, "2415", "root", `${tempersOnHost}/hung-files ${place} ${owner} 100`);
      await eventually(
        "it is mounted",
        async () => (await host.run(["grep", "-q", ` ${place} fuse`, "/proc/mounts"])).code === 0,
      );
      await startCommand(host, "2416", "session", `stat ${place}/one`);
      await startCommand(host, "2417", "exec", `env stat ${place}/two`);
      await startPayload(host, "2418", "deaf", "session");
      // The second one waits for the first one's question.
      const channels = await untilStuck("stat", 2);
      expect(channels).toEqual(["fuse_lock_inode", "request_wait_answer"]);
      const stuck = { command: "stat", state: "D" };
      const result = await stopWatched(host, "--yes");
      await expectStopped(host, result, {
        code: 1,
        survivors: [stuck, stuck],
        outcomes: { [unitOf("2416")]: "alive", [unitOf("2418")]: "killed" },
      });
      expect(result.report.survivors.map((survivor) => survivor.waitChannel).sort()).toEqual(channels);
      expect(result.report.remarks.join("\n")).not.toMatch(/cut off/);

      await host.sh(release);
      expect((await stopBy(host, [frontDoor, "--stop"], { user: "olga" })).code).toBe(0);
      await expectAftermath(host);
    },
  );
});

// moby 35910, copilot-cli 4385
describe("the dead that nobody reaps", () => {
  const cgroups = ["/sys/fs/cgroup", `/sys/fs/cgroup/user.slice/user-${uid}.slice/dead.scope`];
  const negligent = `import os, sys, time
for cgroup in sys.argv[1:]:
    os.makedirs(cgroup, exist_ok=True)
    if os.fork() == 0:
        open(cgroup + "/cgroup.procs", "w").write("0")
        os.setresuid(${uid}, ${uid}, ${uid})
        os._exit(0)
time.sleep(100)
`;

  async function startNegligent(): Promise<void> {
    await host.run(["sh", "-c", "cat >/root/negligent.py"], { input: negligent });
    await startCommand(host, "2421", "root", `python3 /root/negligent.py ${cgroups.join(" ")}`);
    const dead = `grep -l '^State:.Z' $(grep -lP '^Uid:\\t${uid}\\t' /proc/[0-9]*/status) | wc -l`;
    await eventually("both are dead", async () => (await host.sh(dead)) === "2\n");
  }

  afterEach(() => host.sh(`systemctl kill -s KILL lab-command-2421; rmdir ${cgroups[1]}; true`));

  test("are none that run, in the slice and outside: they are reported, with 0", async () => {
    await startNegligent();
    const result = await stopWatched(host, "--yes", "--force");
    await expectStopped(host, result, { verdict: "nothing-running", running: [] });
    expect(result.report).toMatchObject({ rows: [], unreaped: 2 });
    await expectAftermath(host, result.report);
  });

  test("do not hold up the end of those who live beside them", async () => {
    await startNegligent();
    await startPayload(host, "2422", "polite", "session");
    const result = await stopWatched(host, "--yes");
    await expectStopped(host, result, { outcomes: { [unitOf("2422")]: "terminated" }, running: [] });
    // With the polite one, where PID 1 has not asked for it yet.
    expect([2, 3]).toContain(result.report.unreaped);
    expect(result.report.rows).toHaveLength(1);
    await expectAftermath(host, result.report);
  });
});
