// SPDX-License-Identifier: Apache-2.0
// Promise: no session slips past a stop or a hold, and what a stop ended is never taken for a clean end.

import { beforeEach, describe, expect, test } from "vitest";

import { eventually, running } from "./kit/facts.ts";
import { labHost } from "./kit/host.ts";
import {
  accountsFiles,
  claimedProject,
  clearSessions,
  expectDone,
  holdRecord,
  inDirectory,
  recordsOf,
  sessionUnits,
  shellEntryPoint,
  startSession,
  temperEntryPoint,
} from "./kit/sessions.ts";
import { stop } from "./kit/stop.ts";

const host = await labHost();
const uid = (await host.sh("id -u ai-tools")).trim();

beforeEach(() => clearSessions(host));

describe("what a stop ended", () => {
  test.each([[["--yes"]], [["--yes", "--force"]]])(
    "a polite session leaves no marker and nothing is handed back: %j",
    async (options) => {
      const path = await claimedProject(host);
      const shell = await shellEntryPoint(host);
      const script = "trap 'touch saved; exit 0' TERM; touch made; while :; do sleep 0.1; done";
      const { ended } = await startSession(host, path, [shell, "--", "-c", script]);
      await eventually("it works", async () => (await accountsFiles(host, path)).length === 1);
      expect((await stop(host, ...options)).code).toBe(0);
      await ended;
      const force = options.includes("--force");
      await eventually("it is recorded", async () => (await recordsOf(host))[0]?.ended !== undefined);
      expect(await recordsOf(host)).toMatchObject([{ ended: { clean: false } }]);
      expect(await accountsFiles(host, path)).toEqual(force ? ["ai-tools made"] : ["ai-tools made", "ai-tools saved"]);
    },
  );

  test("a session that ends by itself after a declined question and a dry run is a clean one", async () => {
    const path = await claimedProject(host);
    const shell = await shellEntryPoint(host);
    const { ended } = await startSession(host, path, [shell, "--", "-c", "touch made; sleep 4"]);
    expect((await stop(host, "--dry-run")).code).toBe(0);
    await expectDone(await ended);
    expect(await accountsFiles(host, path)).toEqual([]);
  });
});

/** Holds `systemd-run` back until a file stands: whatever started it has checked, and has not started anything yet. */
async function holdStarts(work: () => Promise<void>): Promise<void> {
  await host.sh(`cp /usr/bin/systemd-run /run/lab/systemd-run.real
    cat >/run/lab/systemd-run <<'END'
#!/bin/sh
touch /run/lab/held
while ! test -e /run/lab/go; do sleep 0.05; done
exec /run/lab/systemd-run.real "$@"
END
    chmod 755 /run/lab/systemd-run; rm -f /run/lab/held /run/lab/go; mount --bind /run/lab/systemd-run /usr/bin/systemd-run`);
  try {
    await work();
  } finally {
    await host.sh("touch /run/lab/go; umount /usr/bin/systemd-run");
  }
}

describe("a launcher held between its check and the start", () => {
  test.each([
    ["a whole stop runs", () => stop(host, "--force", "--yes")],
    ["a hold is set", () => inDirectory(host, "/", ["--hold", "incident"])],
  ])("while %s: the session is ended again, and the caller is told", async (_what, meanwhile) => {
    const path = await claimedProject(host);
    const temper = await temperEntryPoint(host, "deaf", "7101");
    await holdStarts(async () => {
      const run = inDirectory(host, path, ["--run", temper]);
      await eventually("it is held", async () => (await host.run(["test", "-e", "/run/lab/held"])).code === 0);
      await meanwhile();
      await host.sh("touch /run/lab/go");
      const { code, stderr } = await run;
      expect(stderr).toMatch(/stop|hold|held/);
      expect(code).toBe(125);
      expect(await sessionUnits(host)).toEqual([]);
      expect(await running(host)).toEqual([]);
    });
  });
});

describe("a caller's limits", () => {
  const counted = async () => Number(await host.sh("stat -c %s /run/ai-tools/stop/count 2>/dev/null || echo 0"));
  const limited = (limits: string, ...words: string[]) =>
    host.run(["sh", "-c", `${limits}; exec sudo -n /usr/libexec/ai-tools/ai-tools-${words.join(" ")}`], {
      user: "olga",
    });

  test("do not keep a stop from being counted, nor a hold from being written", async () => {
    const before = await counted();
    expect((await limited("ulimit -S -f 0; ulimit -n 16", "stop")).code).toBe(0);
    expect(await counted()).toBe(before + 1);
    await expectDone(await limited("ulimit -S -f 0", "hold", "hold", "why"));
    expect(JSON.parse(await host.sh(`cat ${holdRecord}`))).toMatchObject({ operator: "olga", reason: "why" });
  });

  // A lab host's root may not raise a hard limit, as root of most hosts may.
  test("that root cannot raise are told: a stop that was not counted, a hold that is not there", async () => {
    const before = await counted();
    const { code, stdout } = await limited("ulimit -f 0", "stop");
    expect(code).toBe(0);
    if ((await counted()) === before) expect(stdout).toMatch(/counter of stops could not be raised/);
    const held = await limited("ulimit -f 0", "hold", "hold", "why");
    const isThere = (await host.run(["test", "-e", holdRecord])).code === 0;
    expect(held.code).toBe(isThere ? 0 : 1);
  });
});

describe("the gate", () => {
  test("while a stop runs no session is started; after it one is, at once", async () => {
    const path = await claimedProject(host);
    const temper = await temperEntryPoint(host, "deaf", "7102");
    const { ended } = await startSession(host, path, [temper]);
    const stopping = stop(host, "--yes");
    const begun = async () => (await host.sh("ls /run/ai-tools/stop")).match(/^(\d+)-\d+$/m)?.[1];
    await eventually("it runs", async () => (await begun()) !== undefined);
    // However slow the host is, the stop is not over before the start has come.
    const helper = await begun();
    const shell = await shellEntryPoint(host);
    await host.sh(`kill -STOP ${helper}`);
    const refused = await inDirectory(host, path, ["--run", shell, "--", "-c", "true"]).finally(() =>
      host.sh(`kill -CONT ${helper}`),
    );
    expect(refused.code).toBe(125);
    expect(refused.stderr).toMatch(/stop/);
    expect((await stopping).code).toBe(0);
    await ended;
    await expectDone(await inDirectory(host, path, ["--run", shell, "--", "-c", "true"]));
  });

  test("right after a stop, ten times", async () => {
    const path = await claimedProject(host);
    const shell = await shellEntryPoint(host);
    for (let round = 0; round < 10; round++) {
      const { ended } = await startSession(host, path, [shell, "--", "-c", "sleep 60"]);
      expect((await stop(host, "--force", "--yes")).code).toBe(0);
      await expectDone(await inDirectory(host, path, ["--run", shell, "--", "-c", "true"]));
      await ended;
    }
  });
});

describe("a PAM session of the account", () => {
  test("opened and closed while a session runs leaves it alone", async () => {
    const path = await claimedProject(host);
    const temper = await temperEntryPoint(host, "polite", "7103");
    const { unit } = await startSession(host, path, [temper]);
    await host.sh("systemd-run --quiet --wait -p PAMName=login -p User=ai-tools true");
    expect(await sessionUnits(host)).toEqual([unit]);
    expect(await running(host)).toEqual(["7103"]);
    expect((await stop(host, "--force", "--yes")).code).toBe(0);
  });

  test("the operator's logout leaves a session to itself, visible, and a stop ends it", async () => {
    const path = await claimedProject(host);
    const temper = await temperEntryPoint(host, "polite", "7104");
    // A login of olga's that ends as a whole: the command, its sudo and what they started.
    const login = "systemd-run --quiet --unit=lab-login -p PAMName=login -p User=olga -p KillMode=control-group";
    await host.sh(`${login} -p WorkingDirectory=${path} /usr/bin/ai-tools --run ${temper}`);
    await eventually("it counts", async () => (await running(host)).includes("7104"));
    await host.sh("systemctl stop lab-login.service; loginctl terminate-user olga || true");
    const [unit] = await sessionUnits(host);
    if (unit !== undefined) expect((await inDirectory(host, "/", ["--status"])).stdout).toContain(unit);
    expect((await stop(host, "--force", "--yes")).code).toBe(0);
    expect(await running(host)).toEqual([]);
    expect(await host.sh(`ls /sys/fs/cgroup/user.slice/user-${uid}.slice 2>/dev/null || true`)).not.toMatch(
      /ai-tools-/,
    );
  });
});
