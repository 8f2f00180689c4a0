// SPDX-License-Identifier: Apache-2.0
// Promise: anybody can see what runs and whether the host would pass a stop, and what cannot be seen is called unknown.

import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { startPayload } from "../../src/tooling/tempers/payloads.ts";
import { running } from "./kit/facts.ts";
import { labHost } from "./kit/host.ts";
import {
  claimedProject,
  clearSessions,
  expectDone,
  inDirectory,
  shellEntryPoint,
  startSession,
  temperEntryPoint,
} from "./kit/sessions.ts";
import { stop } from "./kit/stop.ts";

const host = await labHost();
const uid = (await host.sh("id -u ai-tools")).trim();
const slice = `/sys/fs/cgroup/user.slice/user-${uid}.slice`;

beforeEach(() => clearSessions(host));

const status = (user = "root", ...words: string[]) => inDirectory(host, "/", ["--status", ...words], { user });

describe("root sees", () => {
  test("an idle host that would pass a stop: 0", async () => {
    const { code, stdout } = await status();
    expect(stdout).not.toMatch(/BROKEN|unknown/i);
    expect(code).toBe(0);
  });

  test("sessions with project, operator, age, processes; plumbing; strays: 3", async () => {
    const path = await claimedProject(host);
    const temper = await temperEntryPoint(host, "polite", "7301");
    const { unit } = await startSession(host, path, [temper]);
    await startPayload(host, "7302", "polite", "system-unit");
    const { code, stdout } = await status();
    expect(code).toBe(3);
    for (const word of [unit, path, "olga"]) expect(stdout).toContain(word);
    expect(stdout).toMatch(/stray/);
    const json = JSON.parse((await status("root", "--json")).stdout);
    expect(json.sessions).toMatchObject([{ unit, project: path, operator: "olga", processes: 1 }]);
    expect(json.sessions[0].ageSeconds).toBeGreaterThanOrEqual(0);
    expect(await running(host)).toEqual(["7301", "7302"]);
  });
});

describe("an operator and anybody else see", () => {
  test.each(["olga", "ursula", "ai-tools"])(
    "what runs, and what only root can read as unknown, never as in order: %s",
    async (user) => {
      const path = await claimedProject(host);
      const temper = await temperEntryPoint(host, "polite", "7303");
      const { unit } = await startSession(host, path, [temper]);
      await host.sh("rm -f /run/ai-tools/last-look.json");
      const { code, stdout } = await status(user);
      expect(stdout).toContain(unit);
      expect(stdout).toMatch(/unknown/);
      expect(code).toBe(1);
      const json = JSON.parse((await status(user, "--json")).stdout);
      expect(json.sessions).toMatchObject([{ unit, processes: 1 }]);
      // Once root has looked, its verdict stands for what is hidden from them.
      expect((await status()).code).toBe(3);
      expect((await status(user)).code).toBe(3);
    },
  );
});

describe("broken, 1, with what mends it:", () => {
  const mends: string[] = [];
  afterEach(async () => {
    for (const mend of mends.splice(0)) await host.sh(mend);
  });
  const breaks = async (script: string, mend: string, says: RegExp) => {
    mends.push(mend);
    await host.sh(script);
    const { code, stdout } = await status();
    expect(stdout).toMatch(says);
    expect(code).toBe(1);
  };

  test("a later sudo rule that asks for a password", () =>
    breaks(
      "echo '%ai-ops ALL=(ALL) ALL' >/etc/sudoers.d/zz-later; chmod 440 /etc/sudoers.d/zz-later",
      "rm /etc/sudoers.d/zz-later",
      /sudo/,
    ));
  test("a drop-in that is gone", () =>
    breaks("mv /etc/sudoers.d/ai-tools /root/away", "mv /root/away /etc/sudoers.d/ai-tools", /sudo/));
  test("a drop-in that others may write, which sudo drops", () =>
    breaks("chmod 646 /etc/sudoers.d/ai-tools", "chmod 440 /etc/sudoers.d/ai-tools", /sudo/));
  test("a log that is a link", () =>
    breaks(
      "mv /var/log/ai-tools /var/log/away; ln -s /tmp /var/log/ai-tools",
      "rm /var/log/ai-tools; mv /var/log/away /var/log/ai-tools",
      /log/,
    ));
  test("cron open to the account", () =>
    breaks("cp -p /etc/cron.deny /root/deny; : >/etc/cron.deny", "mv /root/deny /etc/cron.deny", /cron/));
  test("an account whose number somebody else has", () =>
    breaks(
      `cp -p /etc/passwd /root/passwd; echo 'twin:x:${uid}:${uid}::/:/bin/false' >>/etc/passwd`,
      "mv /root/passwd /etc/passwd",
      /uid|number/,
    ));

  test("a frozen slice and one with a limit of 0, whose repair commands work", async () => {
    await startPayload(host, "7304", "polite", "session");
    await host.sh(`echo 1 >${slice}/cgroup.freeze; echo 0 >${slice}/cgroup.max.descendants`);
    const { code, stdout } = await status();
    expect(code).toBe(1);
    const repairs = stdout.match(/^ *(?:as root: )?((?:echo|sh|printf|systemctl thaw) .*)$/gm) ?? [];
    expect(repairs.length).toBeGreaterThanOrEqual(2);
    for (const line of repairs) await host.sh(line.replace(/^ *(as root: )?/, ""));
    expect((await status()).code).toBe(3);
    expect(await running(host)).toEqual(["7304"]);
  });
});

describe("also shown:", () => {
  test("a hold, who set it and why", async () => {
    await expectDone(await inDirectory(host, "/", ["--hold", "a reason"]));
    expect((await status()).stdout).toMatch(/olga.*a reason|a reason.*olga/s);
  });

  test("a stop that runs", async () => {
    const path = await claimedProject(host);
    const temper = await temperEntryPoint(host, "deaf", "7305");
    const { ended } = await startSession(host, path, [temper]);
    const stopping = stop(host, "--yes");
    await host.sh("until ls /run/ai-tools/stop | grep -q -- -; do sleep 0.05; done");
    expect((await status()).stdout).toMatch(/a stop (runs|is running)/i);
    await stopping;
    await ended;
  });

  test("a session that did not end by itself, with the line that takes its files back", async () => {
    const path = await claimedProject(host);
    const shell = await shellEntryPoint(host);
    await inDirectory(host, path, ["--run", shell, "--", "-c", "touch x; kill -KILL $$"]);
    expect((await status()).stdout).toContain(`ai-tools --reclaim ${path}`);
  });

  test("a stop afterwards passes", async () => {
    expect((await stop(host, "--force", "--yes")).code).toBe(0);
  });
});

describe("the drop-ins of the account's slice and manager", () => {
  test("name the account's real number, and nobody else's", async () => {
    const text = await host.sh(`systemctl daemon-reload; systemctl cat user-${uid}.slice user@${uid}.service`);
    expect(text).toMatch(/SYSTEMD_UNIT_PATH=\/etc\/systemd\/user:\/usr\/lib\/systemd\/user/);
    const shown = await host.sh(`systemctl show -p TasksMax,CPUWeight,CPUQuotaPerSecUSec user-${uid}.slice`);
    expect(shown).toMatch(/^TasksMax=[0-9]{2,6}$/m);
    expect(shown).toMatch(/^CPUWeight=[0-9]{1,2}$/m);
    expect(shown).not.toMatch(/infinity/);
    expect(await host.sh("systemctl cat user-0.slice user@0.service 2>&1 || true")).not.toMatch(/ai-tools/);
  });
});
