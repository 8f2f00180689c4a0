// SPDX-License-Identifier: Apache-2.0
// Promise: a dry run shows what a stop would end, and changes nothing on the host but the trail.

import { beforeAll, expect, test } from "vitest";

import { look } from "../../src/tooling/drill/observer.ts";
import { startAccountManager, startBystanders, startPayloads } from "../../src/tooling/tempers/payloads.ts";
import { clearHost, readCounters, running } from "./kit/facts.ts";
import { labHost } from "./kit/host.ts";
import { entryOf, helper, question, results, rowOf, stop, stopOnTerminal, stopWithReport } from "./kit/stop.ts";

const host = await labHost();
const uid = Number(await host.sh("id -u ai-tools"));

beforeAll(async () => {
  await clearHost(host);
  await startAccountManager(host);
  await host.sh("mkdir -p /srv/projects/shop");
  await startPayloads(host, [
    { name: "901", temper: "stubborn", place: "session", workingDirectory: "/srv/projects/shop" },
    { name: "902", temper: "stubborn", place: "own-manager", workingDirectory: "/srv/projects/shop" },
    { name: "903", temper: "stubborn", place: "exec" },
  ]);
  await startBystanders(host, ["root-acting-for-account", "container"]);
});

/** Everything that a stop could change, except the trail. */
async function stateOfHost(): Promise<unknown> {
  const { processes, sliceMembers, manager } = await look(host, uid);
  const slice = `/sys/fs/cgroup/user.slice/user-${uid}.slice`;
  const files = await host.sh(`
    find ${slice} -type d | sort
    cat ${slice}/cgroup.freeze ${slice}/cgroup.max.descendants
    find /run/ai-tools /run/user /etc/ai-tools /var/lib/ai-tools -printf '%p %m %U %T@\\n' 2>/dev/null | sort
    systemctl show user@${uid}.service -p MainPID -p ActiveEnterTimestampMonotonic`);
  const stable = processes.map(({ pid, name, cgroup }) => `${pid} ${name} ${cgroup}`).sort();
  return { stable, members: sliceMembers.map(({ pid }) => pid).sort(), manager, files };
}

test("the table names every unit with its project, and nothing has changed afterwards", async () => {
  const before = await stateOfHost();
  const { code, stdout, entries } = await stop(host, "--dry-run");
  expect(code).toBe(0);
  expect(stdout).toMatch(/ai-tools-claude-code-901\.service +1 +\/srv\/projects\/shop/);
  expect(stdout).toMatch(/ai-tools-claude-code-902\.service +1 +\/srv\/projects\/shop \(the account's word\)/);
  expect(stdout).toMatch(/nothing was touched/i);
  expect(results(entries)).toEqual(["requested", "dry-run"]);
  expect(entryOf(entries, "requested").AI_TOOLS_DRY_RUN).toBe("true");
  expect(await stateOfHost()).toEqual(before);
  expect((await readCounters(host)).map(({ terms }) => terms)).toEqual((await readCounters(host)).map(() => 0));
  expect(await running(host)).toEqual(["901", "902", "903", "container", "root-acting-for-account"]);
});

test("at a terminal it asks nothing", async () => {
  const { code, screen } = await stopOnTerminal(host, [helper, "--dry-run"], async () => undefined);
  expect(code).toBe(0);
  expect(screen).not.toMatch(question);
  expect(await running(host)).toContain("901");
});

test("with every other option it is still a dry run", async () => {
  const before = await stateOfHost();
  const { code, report } = await stopWithReport(host, "--force", "--yes", "--all", "--dry-run", "--dry-run");
  expect(code).toBe(0);
  expect(report).toMatchObject({ verdict: "dry-run", exitCode: 0 });
  expect(rowOf(report, "ai-tools-claude-code-901.service")).toMatchObject({
    kind: "session",
    outcome: null,
    project: "/srv/projects/shop",
  });
  expect(report.rows.filter(({ kind }) => kind === "stray")).toHaveLength(1);
  expect(await stateOfHost()).toEqual(before);
});
