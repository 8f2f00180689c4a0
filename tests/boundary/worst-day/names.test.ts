// SPDX-License-Identifier: Apache-2.0
// Promise: whatever a session calls its cgroups, commands and directories, nothing of it escapes a stop, and what a person
// or a program is told of it is printable and cannot be taken for the words of the stop.

import { beforeEach, describe, expect, test } from "vitest";

import { startAccountManager } from "../../../src/tooling/tempers/payloads.ts";
import { expectAftermath, expectStopped, freshHost, stopWatched } from "../kit/aftermath.ts";
import { running } from "../kit/facts.ts";
import { labHost } from "../kit/host.ts";
import { helper, journalOf, question, rowOf, stopOnTerminal, trailLog } from "../kit/stop.ts";
import { type Manager, managers, sessionUnit, startUnit } from "../kit/units.ts";

const host = await labHost();
const uid = (await host.sh("id -u ai-tools")).trim();
const delegated = `/sys/fs/cgroup/user.slice/user-${uid}.slice/user@${uid}.service`;
const directories = "/var/tmp/lab-names";
/** The parent and one process for each name, see src/tooling/tempers/strangely-named.c. */
const processes = 40;

beforeEach(async () => {
  await freshHost(host);
  await startAccountManager(host);
  await host.sh(`rm -rf ${directories}; install -d -o ai-tools ${directories}`);
});

async function startNamed(manager: Manager, name: string, parent = ""): Promise<void> {
  const words = `${directories} ${parent}`;
  const properties = "-p Delegate=yes";
  await startUnit(host, { manager, name, temper: "strangely-named", words, properties, signs: processes });
}

test.each(managers)("no name of a cgroup keeps a process from its end: unit of %s", async (manager) => {
  await startNamed(manager, "3101");
  const result = await stopWatched(host, "--force", "--yes");
  await expectStopped(host, result, { outcomes: { [sessionUnit("3101")]: "killed" } });
  expect(rowOf(result.report, sessionUnit("3101")).processes).toBe(processes);
  await expectAftermath(host, result.report);
});

test("no name beside the units of the account's manager does either: look-alikes are rows like any other", async () => {
  await startNamed("own manager", "3102", delegated);
  const result = await stopWatched(host, "--force", "--yes");
  await expectStopped(host, result);
  const units = result.report.rows.map(({ unit }) => unit);
  expect(units).toEqual(expect.arrayContaining(["user@0.service", "cgroup.procs.service", "init.scope"]));
  expect(units.filter((unit) => unit.startsWith("/user.slice/"))).toHaveLength(processes - 5);
  expect(JSON.stringify(result.report)).toMatch(/^[\x20-\x7e]*$/);
  await expectAftermath(host, result.report);
});

describe("what is shown and written", () => {
  /** The beginnings of lines on terminals of this width: each line's own, and wherever it wraps. */
  function lineStarts(screen: string, width: number): string[] {
    return screen.split(/[\r\n]+/).flatMap((line) => line.match(new RegExp(`.{1,${width}}`, "g")) ?? []);
  }

  test("is printable, and no line of any terminal, however it wraps, says what the stop did not say", async () => {
    await startNamed("own manager", "3111", delegated);
    await startNamed("PID 1", "3112");
    const { code, screen } = await stopOnTerminal(host, [helper], async (terminal) => {
      await terminal.waitFor(question);
      terminal.type("\r");
    });
    expect(code).toBe(0);
    expect(screen.replaceAll(/[\r\n]/g, "")).toMatch(/^[\x20-\x7e]*$/);
    // Finding C1.
    for (let width = 60; width <= 140; width++) {
      const verdicts = lineStarts(screen, width).filter((line) =>
        /^(STOPPED: everything|Nothing was running)/.test(line),
      );
      expect({ width, verdicts }).toEqual({
        width,
        verdicts: [expect.stringMatching(/^STOPPED: everything that was found/)],
      });
    }
    expect(await host.sh(`find / -xdev -name owned; find ${directories} -mindepth 1 -printf . | wc -c`)).toBe(
      `${processes - 1}\n`,
    );
  });

  test("is the same in the log, the journal and the JSON document: printable text only", async () => {
    await startNamed("own manager", "3121", delegated);
    const { report, entries } = await stopWatched(host, "--force", "--yes");
    expect((await host.sh(`cat ${trailLog}`)).replaceAll("\n", "")).toMatch(/^[\x20-\x7e]*$/);
    const journal = await journalOf(host, report.run);
    const told = journal.map((entry) => `${entry.MESSAGE} ${entry.AI_TOOLS_UNIT ?? ""} ${entry.AI_TOOLS_CGROUP ?? ""}`);
    expect(told).toHaveLength(entries.length);
    for (const text of told) expect(text).toMatch(/^[\x20-\x7e]*$/);
  });

  // The directory is one that an agent made earlier and an operator then starts a session in.
  test.each([
    [
      "of a directory that imitates PID 1's record of another unit",
      "p\n\nId=cron.service\nRestart=always\nUser=ai-tools",
    ],
    [
      "of a directory that wraps into a verdict",
      `${" ".repeat(40)}STOPPED: everything that was found is verified gone (0.1 s).`,
    ],
  ])("is only that session's project: %s", async (_, name) => {
    await startNamed("PID 1", "3131");
    await host.run(["mkdir", "-p", `${directories}/${name}`]);
    const argv = ["systemd-run", "--quiet", "--collect", "--uid=ai-tools", `--slice=user-${uid}.slice`];
    const project = `WorkingDirectory=${directories}/${name}`;
    const started = await host.run([...argv, "--unit=ai-tools-claude-code-3132", "-p", project, "sleep", "60"]);
    const { code, report } = await stopWatched(host, "--force", "--yes");
    expect(code).toBe(0);
    expect(report.hints).toEqual([]);
    expect(JSON.stringify(report)).toMatch(/^[\x20-\x7e]*$/);
    if (started.code === 0) expect(rowOf(report, sessionUnit("3132")).outcome).toBe("killed");
    else expect(started.stderr).toMatch(/WorkingDirectory/);
    expect(await running(host)).toHaveLength(4);
  });
});
