// SPDX-License-Identifier: Apache-2.0
// Promise: the report tells an operator, or a program, what happened to each row, what was spared and what to do next.

import { beforeEach, describe, expect, test } from "vitest";

import { startBystanders, startPayload, startPayloads } from "../../src/tooling/tempers/payloads.ts";
import { clearHost, killOfSlice, running } from "./kit/facts.ts";
import { labHost } from "./kit/host.ts";
import {
  helper,
  question,
  type Report,
  rowOf,
  stop,
  stopByScript,
  stopOnTerminal,
  stopWithReport,
} from "./kit/stop.ts";

const host = await labHost();
const uid = (await host.sh("id -u ai-tools")).trim();

beforeEach(async () => {
  await clearHost(host);
  await host.sh("mkdir -p '/srv/projects/two words' /srv/projects/shop");
});

describe("--json is one document on standard output, and the exit code is in it", () => {
  test("of a stop", async () => {
    await startPayloads(host, [
      { name: "911", temper: "polite", place: "session", workingDirectory: "/srv/projects/shop" },
      { name: "912", temper: "deaf", place: "exec" },
    ]);
    const { code, report, stderr } = await stopWithReport(host, "--force", "--yes");
    expect(code).toBe(0);
    expect(report).toMatchObject({
      verdict: "stopped",
      exitCode: 0,
      consent: "flag",
      force: true,
      dryRun: false,
      survivors: [],
    });
    expect(report.mechanisms).toContain(await killOfSlice(host));
    expect(rowOf(report, "ai-tools-claude-code-911.service")).toMatchObject({
      kind: "session",
      processes: 1,
      project: "/srv/projects/shop",
      outcome: "killed",
    });
    expect(stderr).toMatch(/ai-tools-claude-code-911/);
  });

  test("of a stop that found nothing", async () => {
    const { code, report } = await stopWithReport(host, "--yes");
    expect(code).toBe(0);
    expect(report).toMatchObject({ verdict: "nothing-running", exitCode: 0, rows: [] });
  });

  test("of a refusal", async () => {
    const { code, stdout } = await stopByScript(
      host,
      `exec unshare --pid --mount-proc --fork --cgroup ${helper} --json`,
    );
    expect(code).toBe(5);
    expect(JSON.parse(stdout)).toMatchObject({ verdict: "refused", exitCode: 5 });
  });

  test("of a declined question, which is asked beside it", async () => {
    await startPayload(host, "913", "polite", "session");
    const { code, screen } = await stopOnTerminal(
      host,
      ["sh", "-c", `exec ${helper} --json >/run/report.json`],
      async (terminal) => {
        await terminal.waitFor(question);
        terminal.type("n\r");
      },
    );
    expect(code).toBe(4);
    expect(JSON.parse(await host.sh("cat /run/report.json"))).toMatchObject({ verdict: "declined", exitCode: 4 });
    expect(screen).toMatch(/ai-tools-claude-code-913/);
  });
});

test("for people it tells the agent sessions, the plumbing and the strays apart, and what to do next", async () => {
  await startPayloads(host, [
    { name: "921", temper: "polite", place: "session", workingDirectory: "/srv/projects/shop" },
    { name: "922", temper: "deaf", place: "session", workingDirectory: "/etc" },
    { name: "923", temper: "deaf", place: "system-unit" },
  ]);
  await host.sh(
    `systemd-run --quiet --collect --uid=ai-tools --slice=user-${uid}.slice --unit=helper-daemon sleep 100`,
  );
  await host.sh(`mkdir -p /var/spool/cron/crontabs && echo '* * * * * true' >/var/spool/cron/crontabs/ai-tools`);

  const { code, stdout } = await stop(host, "--force", "--yes");
  await host.sh("rm /var/spool/cron/crontabs/ai-tools");

  expect(code).toBe(0);
  expect(stdout).toMatch(/^2 agent sessions, 1 unit of account plumbing, 1 stray: 4 processes/m);
  expect(stdout).toMatch(/KILLED +ai-tools-claude-code-921\.service/);
  expect(stdout).toMatch(/KILLED +helper-daemon\.service \(account plumbing\)/);
  expect(stdout).toMatch(/KILLED +stray pid \d+ \(deaf\) in \/system\.slice\/lab-stray-923\.service/);
  expect(stdout).toMatch(/ai-tools --reclaim \/srv\/projects\/shop/);
  expect(stdout).not.toMatch(/--reclaim \/etc/);
  expect(stdout).toMatch(/crontab/);
  expect(stdout).toMatch(/STOPPED/);
});

test("names that the account chose reach a terminal, a log and a document as printable text only", async () => {
  await startPayload(host, "931", "polite", "session");
  const name = "$(printf 'evil\\033[31m\\007\\nred ')";
  await host.sh(
    `
    cgroup="/sys/fs/cgroup/user.slice/user-${uid}.slice/ai-tools-claude-code-931.service/${name}"
    mkdir "$cgroup" && pgrep -x -U ${uid} polite >"$cgroup/cgroup.procs"`.replace("\\n", "\\r"),
  );
  const { code, screen, entries } = await stopOnTerminal(host, [helper, "--force", "--yes"], async () => undefined);
  expect(code).toBe(0);
  expect(screen.replaceAll(/[\r\n]/g, "")).toMatch(/^[\x20-\x7e]*$/);
  expect(JSON.stringify(entries)).not.toMatch(/\\u001b|\\r|\\u0007/);
  expect(await running(host)).toEqual([]);
});

test("who is not the account's goes on, and those that look like it are named", async () => {
  await startBystanders(host, ["operator", "other-user", "root-acting-for-account", "container"]);
  await startPayload(host, "941", "deaf", "session");
  const { code, report } = await stopWithReport(host, "--yes");
  expect(code).toBe(0);
  expect(await running(host)).toEqual(["container", "operator", "other-user", "root-acting-for-account"]);
  expect(report.bystanders.map(({ command }) => command).sort()).toEqual(["acting", "polite"]);
  expect((report as Report).rows.map(({ unit }) => unit)).toEqual(["ai-tools-claude-code-941.service"]);
});

test("a sandbox of the session's own, with a pid and a user namespace, is no container: it ends", async () => {
  const temper = "/opt/lab/tempers/deaf /run/lab/counters/951 60";
  await host.sh(
    `setpriv --reuid=ai-tools --regid=ai-tools --clear-groups setsid --fork unshare --user --map-current-user --pid --fork ${temper} >/dev/null 2>&1 </dev/null`,
  );
  await startPayload(host, "952", "polite", "session");
  expect(await running(host)).toEqual(["951", "952"]);
  const { code, report } = await stopWithReport(host, "--force", "--yes");
  expect(code).toBe(0);
  expect(report.bystanders).toEqual([]);
  expect(await running(host)).toEqual([]);
});
