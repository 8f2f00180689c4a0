// SPDX-License-Identifier: Apache-2.0
// Promise: whoever administers a host can see for themselves that a stop does what it says: the checks change nothing, the
// drill goes by the kernel and believes no helper, and what it made is gone afterwards in every case.

import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { buildVariant } from "../../src/tooling/mutants/edit.ts";
import { mutants } from "../../src/tooling/mutants/list.ts";
import { accountProcesses, eventually } from "./kit/facts.ts";
import { labHost } from "./kit/host.ts";
import {
  claimedProject,
  clearSessions,
  holdRecord,
  sessionUnits,
  shellEntryPoint,
  startSession,
} from "./kit/sessions.ts";
import { helper } from "./kit/stop.ts";

const script = "/usr/share/ai-tools/verify-live-flows.sh";
const kept = "/var/log/ai-tools/drills";
const configuration = "/etc/ai-tools/drill.conf";
const unit = "ai-tools-drill.service";
/** A drill has a grace of 10 s in it and starts six sessions, one after the other; on an emulated processor that is slow. */
const drillLimitMs = 400_000;

const host = await labHost();
await host.sh(`cp -p ${helper} /root/helper; cp -p ${configuration} /root/drill.conf`);

interface Evidence {
  format: string;
  verdict: string;
  problems: string[];
  operator: string;
  by: string;
  sessions: { name: string; place: string; outcome: string }[];
  samples: { atMs: number; alive: number[] }[];
  marks: { name: string; atMs: number }[];
  stop: { exitCode: number; output: string } | null;
  checks: { verdict: string; says: string; seen: string }[];
}

beforeEach(async () => {
  await clearSessions(host);
  await host.sh(`rm -rf ${kept} /root/evidence`);
});
afterEach(() =>
  host.sh(`cp -p /root/helper ${helper}; cp -p /root/drill.conf ${configuration}; systemctl reset-failed`),
);

const verify = (...words: string[]) => host.run([script, ...words], { timeoutMs: drillLimitMs });
const drill = (...words: string[]) =>
  verify("--operator", "olga", "--stop-all-drill", "--evidence", "/root/evidence", ...words);

/** The findings with this verdict. */
function findings(verdict: string, stdout: string): string[] {
  return stdout.split("\n").filter((line) => line.startsWith(`${verdict}  `));
}

async function evidenceIn(folder: string): Promise<Evidence[]> {
  const names = (await host.sh(`ls ${folder}/*.json`)).trim().split("\n");
  return Promise.all(names.map(async (name) => JSON.parse(await host.sh(`cat ${name}`)) as Evidence));
}

/** What a drill makes on a host, by all the places in which it does. */
function leftovers(): Promise<string> {
  return host.sh(`ls -d /etc/ai-tools/entrypoints.d/drill-* /home/olga/ai-tools-drill.* /run/ai-tools-drill/notes ${holdRecord} \
      /var/lib/ai-tools/claims/*.json /var/lib/ai-tools/sessions/*.json 2>/dev/null
    systemctl list-units --no-legend --plain '*drill-*'; true`);
}

/** A foreign session that runs until somebody ends it. */
async function foreignSession(): Promise<string> {
  const project = await claimedProject(host);
  const entry = await shellEntryPoint(host);
  const { unit: session, ended } = await startSession(host, project, [entry, "--", "-c", "exec sleep 600"]);
  void ended;
  return session;
}

describe("the checks", () => {
  test("pass on a host that is as installed, and change nothing", async () => {
    const session = await foreignSession();
    const records = () =>
      host.sh("cd / && find etc/ai-tools var/lib/ai-tools etc/sudoers.d | sort | xargs stat -c '%n %a %U %s %Y'");
    const before = await records();
    const { code, stdout, stderr } = await verify("--operator", "olga");
    expect({ stderr, failed: findings("FAIL", stdout) }).toEqual({ stderr: "", failed: [] });
    expect(code).toBe(0);
    expect(findings("PASS", stdout).length).toBeGreaterThan(40);
    expect(await sessionUnits(host)).toEqual([session]);
    expect(await records()).toBe(before);
  });

  test.each([
    [
      "a helper that others may execute",
      `chmod 755 ${helper}`,
      `chmod 700 ${helper}`,
      /ai-tools-stop is a regular file, 700/,
    ],
    [
      "an account that is an operator",
      "usermod -aG ai-ops ai-tools",
      "gpasswd -d ai-tools ai-ops",
      /no group but its own/,
    ],
    [
      "a sudo rule for the account",
      "echo 'ai-tools ALL=(ALL) NOPASSWD: /bin/true' >/etc/sudoers.d/zz; chmod 440 /etc/sudoers.d/zz",
      "rm /etc/sudoers.d/zz",
      /the account has no sudo rule/,
    ],
    [
      "cron that is open to the account",
      "cp -p /etc/cron.deny /root/; : >/etc/cron.deny",
      "mv /root/cron.deny /etc/cron.deny",
      /not use crontab/,
    ],
    [
      "a trail that others read",
      "touch /var/log/ai-tools/stop.log; chmod 644 /var/log/ai-tools/stop.log",
      "chmod 600 /var/log/ai-tools/stop.log",
      /the trail is root's alone/,
    ],
  ])("fail on %s", async (_, breakIt, mend, says) => {
    await host.sh(breakIt);
    const { code, stdout } = await verify("--operator", "olga");
    await host.sh(mend);
    expect(findings("FAIL", stdout).join("\n")).toMatch(says);
    expect(code).toBe(1);
  });

  test.each([
    ["nobody is named", [], /name an operator/],
    ["somebody who is no operator", ["--operator", "ursula"], /ursula is not in the group ai-ops.*in it are: .*olga/],
    ["root", ["--operator", "root"], /root is no operator/],
    ["an unknown option", ["--operator", "olga", "--all"], /--all is no option/],
  ])("are refused for %s: 2", async (_, words, says) => {
    const { code, stdout, stderr } = await verify(...words);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(says);
  });

  test("are refused to whoever is not root: 2", async () => {
    const { code, stderr } = await host.run([script, "--operator", "olga"], { user: "olga" });
    expect(code).toBe(2);
    expect(stderr).toMatch(/only root/);
  });
});

describe("a drill", () => {
  test("passes on a host whose stop works, and keeps what it saw", { timeout: drillLimitMs }, async () => {
    await host.enableLinger();
    const { code, stdout } = await drill();
    expect(findings("FAIL", stdout)).toEqual([]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/manager is back, as another process\n/);
    const [evidence] = await evidenceIn("/root/evidence");
    expect(evidence).toMatchObject({ format: "ai-tools-drill", verdict: "passed", problems: [], operator: "olga" });
    const outcomes = Object.fromEntries(evidence?.sessions.map(({ name, outcome }) => [name, outcome]) ?? []);
    expect(outcomes).toEqual({
      ...{ polite: "terminated", stopped: "terminated", deaf: "killed", forking: "killed" },
      ...{ "own-manager": "killed", stray: "killed", "operator-process": "", "other-process": "" },
    });
    const [first, last] = [evidence?.samples[0]?.alive ?? [], evidence?.samples.at(-1)?.alive ?? []];
    expect(Math.min(...first)).toBeGreaterThan(0);
    const living = evidence?.sessions.filter((_, i) => (last[i] ?? 0) > 0).map(({ place }) => place);
    expect(living).toEqual(["bystander", "bystander"]);
    expect(evidence?.marks.map(({ name }) => name)).toEqual(
      expect.arrayContaining(["request", "sigterm", "kill", "gone", "verified", "looked", "second"]),
    );
    expect(await leftovers()).toBe("");
    const page = await host.sh("cat /root/evidence/*.html");
    const inPage = /<script type="application\/json" id="evidence">\n(.*?)<\/script>/s.exec(page)?.[1] ?? "";
    expect(JSON.parse(inPage)).toEqual(evidence);
    expect(await host.sh("stat -c '%a %U' /root/evidence /root/evidence/*")).toBe("700 root\n600 root\n600 root\n");
  });

  test("is red with a helper that only says that it stopped", { timeout: drillLimitMs }, async () => {
    const liar = mutants.find(({ name }) => name === "claims-success");
    await host.copyIn(await buildVariant("drill-claims-success", liar?.edits ?? []), helper, "0700");
    const { code, stdout } = await drill();
    // It lies well: its code, its report and its trail are those of a stop.
    for (const lie of ["PASS  the stop by olga says 0", "PASS  it has deaf, killed"]) expect(stdout).toContain(lie);
    const failed = findings("FAIL", stdout).join("\n");
    expect(failed).toMatch(/no process of the account is alive after the stop.*drill-stray/);
    for (const name of ["deaf", "forking", "stray"]) expect(failed).toContain(`${name} is gone`);
    expect(code).toBe(1);
    const [evidence] = await evidenceIn("/root/evidence");
    expect(evidence).toMatchObject({ verdict: "failed", stop: { exitCode: 0 } });
    // What the helper left alive, the drill has ended by itself.
    expect(await accountProcesses(host)).toEqual([]);
    expect(await leftovers()).toBe("");
  });

  test("is refused while a session of others runs, 3, and touches nothing; told to, it ends that as well", {
    timeout: drillLimitMs,
  }, async () => {
    const session = await foreignSession();
    const { code, stdout, stderr } = await drill();
    expect({ code, stdout }).toEqual({ code: 3, stdout: "" });
    expect(stderr).toContain(session);
    expect(stderr).toMatch(/no drill now: something of the account runs/);
    expect(await sessionUnits(host)).toEqual([session]);
    const told = await drill("--include-running-sessions");
    expect(findings("FAIL", told.stdout)).toEqual([]);
    expect(told.code).toBe(0);
    expect(await sessionUnits(host)).toEqual([]);
  });

  test("is refused while new sessions are held: 3", async () => {
    await host.run(["ai-tools", "--hold", "incident"], { user: "olga" });
    const { code, stderr } = await drill();
    expect(code).toBe(3);
    expect(stderr).toMatch(/held/);
    expect(await host.sh(`cat ${holdRecord}`)).toContain("incident");
  });

  test.each([
    ["SIGTERM", "by itself"],
    ["SIGKILL", "by --clean-up"],
  ])("that %s ends in its middle leaves nothing: it cleans up %s", { timeout: drillLimitMs }, async (signal, by) => {
    const ended = host.run(
      [
        "sh",
        "-c",
        `echo $$ >/root/drill.pid; exec ${script} --operator olga --stop-all-drill --evidence /root/evidence`,
      ],
      {
        timeoutMs: drillLimitMs,
      },
    );
    await eventually("sessions of the drill run", async () => (await sessionUnits(host)).length >= 2, 120_000);
    await host.sh(`kill -${signal.slice(3)} $(cat /root/drill.pid)`);
    const { code } = await ended;
    expect(code).toBe(signal === "SIGTERM" ? 143 : 137);
    if (by === "by itself") expect(await evidenceIn("/root/evidence")).toMatchObject([{ verdict: "interrupted" }]);
    else {
      expect(await leftovers()).not.toBe("");
      expect(await verify("--clean-up")).toMatchObject({ code: 0, stdout: "" });
    }
    expect(await leftovers()).toBe("");
    expect(await accountProcesses(host)).toEqual([]);
  });
});

describe("the drill as a habit", () => {
  const start = () => host.run(["systemctl", "start", unit], { timeoutMs: drillLimitMs });
  const said = (since: string) => host.sh(`journalctl --sync; journalctl -u ${unit} -o cat --after-cursor='${since}'`);
  const now = async () =>
    (await host.sh("journalctl -n 1 --show-cursor -q | tail -n 1")).replace(/^-- cursor: /, "").trim();

  test("is off until somebody turns it on, whatever the policy of the host is", async () => {
    const enabled = "systemctl is-enabled ai-tools-drill.timer || true";
    expect(await host.sh(enabled)).toBe("disabled\n");
    expect(await host.sh(`systemctl preset ai-tools-drill.timer; ${enabled}`)).toBe("disabled\n");
    await host.sh("systemctl enable --now ai-tools-drill.timer");
    expect(await host.sh("systemctl show -p NextElapseUSecRealtime --value ai-tools-drill.timer")).toMatch(/Sun/);
    await host.sh("systemctl disable --now ai-tools-drill.timer");
  });

  test("names the file to an administrator who has named no operator, and fails", async () => {
    const since = await now();
    expect((await start()).code).toBe(1);
    expect(await said(since)).toMatch(/name an operator: .*\/etc\/ai-tools\/drill\.conf/);
  });

  test("is left out while sessions run, which is told and is no failure", async () => {
    await host.sh(`echo OPERATOR=olga >>${configuration}`);
    const session = await foreignSession();
    const since = await now();
    expect((await start()).code).toBe(0);
    expect(await said(since)).toMatch(/no drill now: something of the account runs/);
    expect(await sessionUnits(host)).toEqual([session]);
  });

  test("keeps the newest of its evidence, for root alone", { timeout: drillLimitMs }, async () => {
    await host.sh(`printf 'OPERATOR=olga\\nKEEP=2\\n' >>${configuration}; install -d -m 700 ${kept}
      for day in 01 02 03; do touch ${kept}/drill-202601$day''T043000Z-passed.json ${kept}/drill-202601$day''T043000Z-passed.html; done`);
    const since = await now();
    const { code } = await start();
    const text = await said(since);
    expect(findings("FAIL", text)).toEqual([]);
    expect(code).toBe(0);
    const names = (await host.sh(`ls ${kept}`)).trim().split("\n");
    expect(names).toHaveLength(4);
    expect(names.slice(0, 2)).toEqual(["drill-20260103T043000Z-passed.html", "drill-20260103T043000Z-passed.json"]);
    const evidence = JSON.parse(await host.sh(`cat ${kept}/${names[3]}`)) as Evidence;
    expect(evidence).toMatchObject({ verdict: "passed", by: unit });
    expect(await host.sh(`stat -c '%a %U' ${kept} ${kept}/${names[3]}`)).toBe("700 root\n600 root\n");
    expect(await leftovers()).toBe("");
  });
});
