// SPDX-License-Identifier: Apache-2.0
// Promise: no number, depth or pace of processes and cgroups, and nothing that a session does to the files of its own
// cgroups, keeps a stop from asking in time, ending everything and leaving the next session a clean place.

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { countersOnHost, tempersOnHost } from "../../../../src/tooling/tempers/build-tempers.ts";
import { startAccountManager } from "../../../../src/tooling/tempers/payloads.ts";
import { expectAftermath, expectStopped, freshHost, measured, rounds, stopWatched } from "../../kit/aftermath.ts";
import { accountProcesses, countersOf, eventually, running } from "../../kit/facts.ts";
import { labHost } from "../../kit/host.ts";
import { helper, question, rowOf, stopOnTerminal, stopWithReport } from "../../kit/stop.ts";
import { everywhere, expectManagerBack, runsUnit, sessionUnit, startUnit, stopAmid } from "../../kit/units.ts";

// The machine itself is slow with all these; the stop's own limit is asserted from its report.
vi.setConfig({ testTimeout: 600_000, hookTimeout: 300_000 });

const host = await labHost();
const uid = (await host.sh("id -u ai-tools")).trim();
const manager = `user@${uid}.service`;
const delegated = `/sys/fs/cgroup/user.slice/user-${uid}.slice/${manager}`;
const properties = "-p Delegate=yes -p TasksMax=infinity";

beforeEach(async () => {
  await freshHost(host);
  await startAccountManager(host);
});

/**
 * Takes away what the temper `crowded` dug. PID 1 cannot, since such a path has no name, and goes through all of it again
 * whenever it starts the manager: 4 to 14 s each time, on the host of whatever is tried next.
 */
afterEach(() =>
  host.sh(
    `python3 - <<'END'
import os
def is_dug(name): return set(name) == {"d"}
def remove(top):
  os.chdir(top)
  below = [top]
  while below:
    inner = next((entry.name for entry in os.scandir(".") if entry.is_dir()), None)
    if inner: os.chdir(inner)
    else: os.chdir(".."); inner = below.pop(); os.rmdir(inner); continue
    below.append(inner)
for path, names, _ in os.walk("/sys/fs/cgroup"):
  for name in filter(is_dug, names): remove(f"{path}/{name}")
  names[:] = [name for name in names if not is_dug(name)]
END`,
    { timeoutMs: 300_000 },
  ),
);

describe("processes at depth 2,000", () => {
  const deep = { name: "3501", temper: "crowded", signs: 1, seconds: 240, properties };
  const inPlaces = process.env.AI_TOOLS_FULL === "1" ? everywhere : everywhere.slice(0, 1);

  // For each that it reaps PID 1 reads the path and looks up every part of it: 0.17 s here, with whatever ended them.
  const reaped = () => eventually("PID 1 has reaped them", async () => /^0/.test(await host.sh(countZombies)), 400_000);
  const countZombies = "grep -lsE '^State:\\s+Z' /proc/[0-9]*/status | wc -l";

  test.each(inPlaces)(
    "the question about 1,000 of them is on the screen within 5 s, and they end: a unit of %s",
    async (by) => {
      await startUnit(host, { ...deep, manager: by, words: "1000 2000" });
      let shownMs = Number.POSITIVE_INFINITY;
      const begun = "/run/lab/helper-begun";
      const argv = ["sh", "-c", `date +%s%3N >${begun}; exec ${helper} --force`];
      const { code, screen } = await stopOnTerminal(host, argv, async (terminal) => {
        await terminal.waitFor(question, 60_000);
        shownMs = Date.now();
        terminal.type("\r");
      });
      const afterMs = shownMs - Number(await host.sh(`cat ${begun}`));
      measured("question on screen", { afterMs });
      measured("stop of 1,000 processes at depth 2,000", { seconds: /\(([0-9.]+) s\)/.exec(screen)?.[1] });
      // The limits of reading, asking PID 1 and showing: 2, 1 and 2 s.
      expect(afterMs).toBeLessThan(5_000);
      expect(screen).toMatch(/: 1,?0\d\d processes of the account/);
      // At this depth each change of a process's state goes through all cgroups above it: a thousand deaths alone can take
      // longer than a kill may. Then the stop says that nobody can tell, and the next one tells.
      if (code !== 0) {
        expect({ code, screen }).toEqual({ code: 1, screen: expect.stringMatching(/^ {2}UNKNOWN .*in time/m) });
        expect((await stopWithReport(host, "--force", "--yes")).code).toBe(0);
      } else expect(screen).toMatch(/^STOPPED: /m);
      expect(await running(host)).toHaveLength(4);
      await reaped();
      expect(await accountProcesses(host)).toEqual([]);
      await expectAftermath(host);
    },
  );

  // More than the reading of the table has time for, if it read the path of each.
  test.each(everywhere)("150 of them are all asked to end, and none has to be killed: a unit of %s", async (by) => {
    await startUnit(host, { ...deep, manager: by, words: "150 2000" });
    const result = await stopWithReport(host, "--yes");
    await reaped();
    await expectStopped(host, result, { outcomes: { [sessionUnit("3501")]: "terminated" } });
    await expectAftermath(host, result.report, { managerMayBeLate: "PID 1 reaps them first" });
    await expectManagerBack(host, result.report);
  });
});

describe.each(everywhere)("a unit of %s", (by) => {
  test.each([["--force"], []])("1,000 processes: %s", async (...options) => {
    await startUnit(host, { manager: by, name: "3506", temper: "crowded", words: "1000", signs: 1, properties });
    const result = await stopWatched(host, "--yes", ...options);
    await expectStopped(host, result, { outcomes: { [sessionUnit("3506")]: options[0] ? "killed" : "terminated" } });
    expect(rowOf(result.report, sessionUnit("3506")).processes).toBe(1_000);
    await expectAftermath(host, result.report);
  });

  test("a cgroup whose path is longer than PATH_MAX", async () => {
    await startUnit(host, { manager: by, name: "3502", temper: "crowded", words: "5 40 250", signs: 1, properties });
    const result = await stopWatched(host, "--yes");
    await expectStopped(host, result);
    expect(result.report.rows.reduce((sum, { processes }) => sum + processes, 0)).toBeGreaterThanOrEqual(5);
    await expectAftermath(host, result.report);
  });

  const inRounds: [how: string, round: number][] = [
    ...rounds().map((round): [string, number] => ["--force", round]),
    ["with a grace", 1],
  ];
  test.each(inRounds)("new cgroups all the while, from before the stop to its end: %s, round %i", async (how) => {
    await startUnit(host, { manager: by, name: "3503", temper: "breeding", properties });
    const result = await stopWatched(host, "--yes", ...(how === "--force" ? [how] : []));
    await expectStopped(host, result, { outcomes: { [sessionUnit("3503")]: "killed" } });
    await expectAftermath(host, result.report);
  });

  test("cgroups with unreadable files and limits of 0", async () => {
    await startUnit(host, { manager: by, name: "3504", temper: "locked", properties });
    expect((await countersOf(host, "3504"))[0]?.signs).toBeGreaterThan(10);
    const result = await stopWatched(host, "--yes");
    await expectStopped(host, result, { outcomes: { [sessionUnit("3504")]: "killed" } });
    await expectAftermath(host, result.report);
    // The same name can be used again at once.
    await startUnit(host, { manager: by, name: "3504", temper: "polite", properties });
  });

  test.each([["--force"], []])("500 processes that never rest: %s", async (...options) => {
    const spinning = { manager: by, name: "3505", temper: "spinning", words: "500", seconds: 60, properties };
    const allThere = `${tempersOnHost}/read-counters ${countersOnHost} | grep -q '^3505 1 .* 1$'`;
    const result = await stopAmid(host, spinning, allThere, ...options);
    await expectStopped(host, result, { outcomes: { [sessionUnit("3505")]: "killed" } });
    expect(rowOf(result.report, sessionUnit("3505")).processes).toBe(500);
    await expectAftermath(host, result.report);
  });
});

describe.each([
  [2_000, 1_000],
  [10_000, 20],
])("%i cgroups beside each other, %i of them with a process", (cgroups, processes) => {
  test("all end, and the report says how many it does not show", async () => {
    const words = `${cgroups} ${processes} ${delegated}`;
    await startUnit(host, { manager: "own manager", name: "3511", temper: "spread", words, signs: 1, properties });
    expect(Number(await host.sh(`find ${delegated} -name 'spread-*' | wc -l`))).toBe(cgroups);
    const { code, report, entries } = await stopWatched(host, "--force", "--yes");
    measured("stop of cgroups", { cgroups, durationMs: report.durationMs });
    expect(code).toBe(0);
    expect(report.verdict).toBe("stopped");
    // The manager's own are rows too.
    const all = report.rows.length + ((report as { rowsNotShown?: number }).rowsNotShown ?? 0);
    expect(all).toBeGreaterThanOrEqual(processes);
    expect(report.rows).toHaveLength(Math.min(all, 200));
    const told = entries.filter((entry) => entry.AI_TOOLS_RESULT === "killed");
    expect(told).toHaveLength(Math.min(all, 100));
    expect(await running(host)).toHaveLength(4);
    expect(await accountProcesses(host)).toEqual([]);
    await expectAftermath(host, report);
    expect(await host.sh(`find ${delegated} -name 'spread-*' | wc -l`)).toBe("0\n");
  });
});

describe("5,000 processes", () => {
  // Each number of the account's range has a limit of processes of its own; a session with sub-uids has several numbers.
  const numbers = [700_001, 700_002];
  beforeEach(() => host.sh("echo ai-tools:700000:65536 >>/etc/subuid"));
  afterEach(async () => {
    const units = numbers.map((_number, index) => sessionUnit(String(3522 + index)));
    await host.sh(`systemctl kill --signal=KILL ${units.join(" ")} 2>/dev/null; sed -i '/700000/d' /etc/subuid`);
  });

  test.each([["--force"], []])("all end, and PID 1 answers all the while: %s", async (...options) => {
    const crowd = { manager: "PID 1", temper: "crowded", words: "1670", signs: 1, properties } as const;
    await startUnit(host, { ...crowd, name: "3521" });
    for (const [index, number] of numbers.entries()) {
      await startUnit(host, { ...crowd, name: String(3522 + index), number });
    }
    const result = await stopWatched(host, "--yes", ...options);
    await expectStopped(host, result);
    const total = result.report.rows.reduce((sum, { processes }) => sum + processes, 0);
    measured("stop of 5,000 processes", { total, durationMs: result.report.durationMs });
    expect(total).toBeGreaterThanOrEqual(5_000);
    await expectAftermath(host, result.report);
  });
});

// PID 1 cannot remove a tree that is too deep to be named, so what is beside it could stay as well.
test("what a session leaves frozen, limited, locked and too deep to be removed does not hamper the next manager", async () => {
  await startUnit(host, {
    manager: "own manager",
    name: "3531",
    temper: "crowded",
    words: "2 40 250",
    signs: 1,
    properties,
  });
  await host.sh(
    `cd ${delegated} && for slice in app.slice session.slice background.slice; do
       mkdir -p $slice/left && for place in $slice/left $slice; do
         echo 1 >$place/cgroup.freeze; echo 0 >$place/cgroup.max.descendants; echo 0 >$place/cgroup.max.depth; chmod 0 $place/cgroup.procs
       done
     done; true`,
    { user: "ai-tools" },
  );
  const result = await stopWatched(host, "--force", "--yes");
  await expectStopped(host, result);
  measured("left behind", {
    cgroups: (
      await host.sh(`find ${delegated} -type d | wc -l; cat ${delegated}/app.slice/cgroup.freeze || true`)
    ).trim(),
  });
  await expectAftermath(host, result.report);
  await host.sh(`${runsUnit("own manager")} --wait true`);
});
