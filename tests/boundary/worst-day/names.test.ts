// SPDX-License-Identifier: Apache-2.0
// Promise: whatever a session calls its cgroups, commands and directories, nothing of it escapes a stop, and what a person
// or a program is told of it is printable and cannot be taken for the words of the stop.

import { beforeEach, describe, expect, test } from "vitest";

import { tempersOnHost } from "../../../src/tooling/tempers/build-tempers.ts";
import { startAccountManager } from "../../../src/tooling/tempers/payloads.ts";
import { bystanders, expectAftermath, expectStopped, freshHost, stopWatched } from "../kit/aftermath.ts";
import { startCommand, startCounting, temper } from "../kit/commands.ts";
import { eventually, readCounters, running } from "../kit/facts.ts";
import { labHost } from "../kit/host.ts";
import { helper, journalOf, question, rowOf, stopOnTerminal, type TerminalStop, trailLog } from "../kit/stop.ts";
import { everywhere, type Manager, sessionUnit, startUnit } from "../kit/units.ts";

const host = await labHost();
const uid = (await host.sh("id -u ai-tools")).trim();
const delegated = `/sys/fs/cgroup/user.slice/user-${uid}.slice/user@${uid}.service`;
const directories = "/var/tmp/lab-names";
/** The parent and one process for each name, see src/tooling/tempers/strangely-named.c. */
const processes = 40;
/** Of the names those that are not printable in the fifteen bytes that a command's name has, or have a backslash. */
const escapedNames = 16;

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

test.each(everywhere)("no name of a cgroup keeps a process from its end: unit of %s", async (manager) => {
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
  expectPrintable(result.report);
  await expectAftermath(host, result.report);
});

/**
 * Command names that a screen could take for something else, as printf writes them; the kernel keeps 15 bytes, and shows
 * a line break as a backslash and `n`.
 */
const forgingCommands = [
  "\\nSTOPPED: every",
  "\\r  stopped  all ",
  "\\033[2J\\033[HSTOPP",
  "a\\nNothing was ru",
  "\\233\\061m\\302\\205red",
];

/** Starts a deaf process with each of these names: strays without any unit. */
async function startForgingStrays(): Promise<void> {
  for (const [number, name] of forgingCommands.entries()) {
    await startCounting(host, `314${number}`, "exec", temper("kernel-like", `314${number}`, `"$(printf '${name}')"`));
  }
}

/** Every text in it, as a program gets it, is printable ASCII: no byte that acts on a terminal is left to whoever shows it. */
function expectPrintable(value: unknown): void {
  if (typeof value === "string") expect(value).toMatch(/^[\x20-\x7e]*$/);
  else if (typeof value === "object" && value !== null) {
    for (const [name, inner] of Object.entries(value)) {
      expectPrintable(name);
      expectPrintable(inner);
    }
  }
}

describe("what is shown and written", () => {
  /** The beginnings of lines on terminals of this width: each line's own, and wherever it wraps. */
  function lineStarts(screen: string, width: number): string[] {
    return screen.split(/[\r\n]+/).flatMap((line) => line.match(new RegExp(`.{1,${width}}`, "g")) ?? []);
  }

  /** Of all line beginnings that sound like a verdict there is only the stop's own, on terminals of every usual width. */
  function expectOneVerdict(screen: string, verdict: RegExp): void {
    expect(screen.replaceAll(/[\r\n]/g, "")).toMatch(/^[\x20-\x7e]*$/);
    // Padding put a line of it at the left edge of a narrow terminal.
    for (let width = 60; width <= 140; width++) {
      const verdicts = lineStarts(screen, width).filter((line) =>
        /^(STOPPED: every|NOT STOPPED|Nothing was ru| {2}stopped {2}all)/.test(line),
      );
      expect({ width, verdicts }).toEqual({ width, verdicts: [expect.stringMatching(verdict)] });
    }
  }

  /** Runs the helper as root on a terminal, with Enter at the question. */
  function stopThere(): Promise<TerminalStop> {
    return stopOnTerminal(host, [helper, "--force"], async (terminal) => {
      await terminal.waitFor(question);
      terminal.type("\r");
    });
  }

  test("is printable, and no line of any terminal, however it wraps, says what the stop did not say", async () => {
    await startNamed("own manager", "3111", delegated);
    await startNamed("PID 1", "3112");
    await startNamed("PID 1 outside the slice", "3113");
    await startForgingStrays();
    const { code, screen } = await stopThere();
    expect(code).toBe(0);
    expectOneVerdict(screen, /^STOPPED: everything that was found/);
    // The names did reach the screen.
    expect(screen).toContain("(\\\\nSTOPPED:\\x20every)");
    expect(screen).toContain("(\\x1b[2J\\x1b[HSTOPP)");
    expect(screen).toMatch(/stray pid .* in \/system\.slice\/ai-tools-claude-code-3113\.service: /);
    expect(await host.sh(`find / -xdev -name owned; find ${directories} -mindepth 1 -printf . | wc -c`)).toBe(
      `${processes - 1}\n`,
    );
  });

  test("is so of a survivor as well", async () => {
    const [name = ""] = forgingCommands;
    await startCounting(host, "3151", "session", temper("kernel-like", "3151", `"$(printf '${name}')"`));
    const [survivor] = (await readCounters(host)).filter(({ payload }) => payload === "3151");
    const pid = survivor?.pid ?? 0;
    await startCommand(host, "3152", "root", `${tempersOnHost}/tracing ${pid} 100`);
    await eventually("it is traced", async () => /TracerPid:\t[1-9]/.test(await host.sh(`cat /proc/${pid}/status`)));
    const { code, screen, entries } = await stopThere();
    const json = await stopWatched(host, "--force", "--yes");
    await host.sh("systemctl kill -s KILL lab-command-3152.service");
    expect(code).toBe(1);
    expectOneVerdict(screen, /^NOT STOPPED: something of the account is alive/);
    expect(screen).toContain(`  ALIVE       pid ${pid} (\\\\nSTOPPED:\\x20every): state t, waiting in ptrace_stop`);
    expectPrintable(entries);
    await expectStopped(host, json, {
      code: 1,
      survivors: [{ pid, command: "\\\\nSTOPPED: every" }],
      running: [],
    });
    expectPrintable(json.report);
    expectPrintable(json.entries);
    const again = await stopWatched(host, "--force", "--yes");
    expect(again.code).toBe(0);
    await expectAftermath(host, again.report);
  });

  test("is the same in the log, the journal and the JSON document: printable text only", async () => {
    await startNamed("own manager", "3121", delegated);
    await startNamed("PID 1 outside the slice", "3122");
    await startForgingStrays();
    const { report, entries, stdout } = await stopWatched(host, "--force", "--yes");
    expect(stdout.replaceAll("\n", "")).toMatch(/^[\x20-\x7e]*$/);
    expectPrintable(report);
    const { strays } = JSON.parse(stdout) as { strays: { command: string }[] };
    const commands = strays.map(({ command }) => command);
    expect(commands).toContain("\\\\nSTOPPED: every");
    expect(commands.filter((command) => command.includes("\\"))).toHaveLength(escapedNames + forgingCommands.length);
    expect((await host.sh(`cat ${trailLog}`)).replaceAll("\n", "")).toMatch(/^[\x20-\x7e]*$/);
    expectPrintable(entries);
    const journal = await journalOf(host, report.run);
    expect(journal).toHaveLength(entries.length);
    for (const { MESSAGE, AI_TOOLS_UNIT, AI_TOOLS_CGROUP, AI_TOOLS_WORKING_DIRECTORY } of journal) {
      expectPrintable({ MESSAGE, AI_TOOLS_UNIT, AI_TOOLS_CGROUP, AI_TOOLS_WORKING_DIRECTORY });
    }
  });

  // The directory is one that an agent made earlier and an operator then starts a session in.
  describe.each([
    [
      "of a directory that imitates PID 1's record of another unit",
      "p\n\nId=cron.service\nRestart=always\nUser=ai-tools",
      "p\\x0a\\x0aId=cron.service\\x0aRestart=always\\x0aUser=ai-tools",
      // systemctl shows no line break of a value.
      null,
    ],
    [
      "of a directory that wraps into a verdict",
      `${" ".repeat(40)}STOPPED: everything that was found is verified gone (0.1 s).`,
      `${" ".repeat(40)}STOPPED: everything that was found is verified gone (0.1 s).`,
      `${" ".repeat(40)}STOPPED: everything that was found is verified gone (0.1 s).`,
    ],
  ])("is only that session's project: %s", (_, name, shown, byInit) => {
    const project = `${directories}/${name}`;
    beforeEach(async () => {
      await startNamed("PID 1", "3131");
      expect((await host.run(["mkdir", "-p", project])).code).toBe(0);
    });

    async function expectOnlyItsProject(shown: string | null): Promise<void> {
      const { code, report } = await stopWatched(host, "--dry-run");
      expect(code).toBe(0);
      expect(report.hints).toEqual([]);
      expectPrintable(report);
      const said = report.rows.filter((row) => row.kind === "session" && row.project !== null && row.project !== "/");
      const only = shown === null ? [] : [[sessionUnit("3132"), `${directories}/${shown}`]];
      expect(said.map((row) => [row.unit, row.project])).toEqual(only);
      const { code: stopped, screen } = await stopThere();
      expect(stopped).toBe(0);
      expectOneVerdict(screen, /^STOPPED: everything that was found/);
      expect(screen).not.toMatch(/cron\.service again/);
      expect(await running(host)).toEqual([...bystanders]);
    }

    test("of a unit of PID 1", async () => {
      const argv = ["systemd-run", "--quiet", "--collect", "--uid=ai-tools", `--slice=user-${uid}.slice`];
      const directory = `WorkingDirectory=${project}`;
      const started = await host.run([...argv, `--unit=${sessionUnit("3132")}`, "-p", directory, "sleep", "60"]);
      expect(started).toMatchObject({ code: 0 });
      await expectOnlyItsProject(byInit);
    });

    test("of a unit of the account's own manager, which goes there itself", async () => {
      const argv = ["systemd-run", "--quiet", "--collect", "--user", "-M", "ai-tools@.host"];
      const goes = ["sh", "-c", 'cd "$1" && exec sleep 60', "sh", project];
      expect(await host.run([...argv, `--unit=${sessionUnit("3132")}`, ...goes])).toMatchObject({ code: 0 });
      await eventually("it is there", async () => {
        const cwd = await host.sh(`for pid in $(pgrep -u ai-tools -x sleep); do readlink /proc/$pid/cwd; done; true`);
        return cwd.includes(name);
      });
      await expectOnlyItsProject(shown);
    });
  });
});
