// SPDX-License-Identifier: Apache-2.0
// Projects, for display: PID 1's word for its units, the account's word marked as such, and unknown for the rest.

import { describe, expect, test } from "vitest";
import { askWhatReturns, attribute } from "./attribution.ts";
import { HandMadeHost, type Program } from "./hand-made-host.fixture.ts";
import { censusOf, found, scopeOf, slicePath } from "./hand-made-processes.fixture.ts";
import { EACCES, EAGAIN } from "./kernel.ts";
import { limits } from "./limits.ts";
import { rowsOf } from "./rows.ts";

const manager = `${slicePath}/user@990.service/app.slice`;

async function projectsOf(cgroups: readonly string[], host: HandMadeHost) {
  const census = censusOf(cgroups.map((cgroup, index) => found({ pid: 20 + index, cgroup })));
  const rows = rowsOf(scopeOf(), census);
  await attribute(host, rows);
  return Object.fromEntries(rows.map(({ unit, project }) => [unit, project]));
}

async function hintsFor(cgroups: readonly string[], host: HandMadeHost) {
  return (
    await attribute(
      host,
      rowsOf(scopeOf(), censusOf(cgroups.map((cgroup, index) => found({ pid: 20 + index, cgroup })))),
    )
  ).hints;
}

function answering(program: Program): HandMadeHost {
  const host = new HandMadeHost();
  host.program = () => program;
  return host;
}

const session = "ai-tools-claude-code-7.service";
const answer = `Id=${session}\nWorkingDirectory=/srv/shop\n\nId=other.service\nWorkingDirectory=\n`;

describe("a unit of PID 1", () => {
  test("works where PID 1 says", async () => {
    const host = answering({ code: 0, output: answer });
    expect(await projectsOf([`${slicePath}/${session}`], host)).toEqual({
      [session]: { path: "/srv/shop", byAccount: false },
    });
    expect(host.commandLines).toEqual([
      `/usr/bin/systemctl show --all --property=Id,WorkingDirectory,Restart,User,MainPID,TriggeredBy,Slice,SubState -- ${session}`,
    ]);
  });

  const recorded = "/var/lib/ai-tools/sessions/ai-tools-claude-code-7.service.json";

  test("works in the project that root recorded when it was started, whatever its directory is called", async () => {
    const host = answering({ code: 0, output: `Id=${session}\nWorkingDirectory=[unprintable]\n` });
    host.files.set(recorded, `{"unit":"${session}","project":"/srv/a\\nb\xc3\xa9"}\n`);
    expect(await projectsOf([`${slicePath}/${session}`], host)).toEqual({
      [session]: { path: "/srv/a\nb\xc3\xa9", byAccount: false },
    });
  });

  test.each(["", "{", "null", '{"project":7}', '{"project":"srv"}', EACCES])(
    "works where PID 1 says when root's record is %j",
    async (text) => {
      const host = answering({ code: 0, output: answer });
      host.files.set(recorded, text);
      expect((await projectsOf([`${slicePath}/${session}`], host))[session]?.path).toBe("/srv/shop");
    },
  );

  test("works where PID 1 says also if the directory may be missing", async () => {
    const host = answering({ code: 0, output: `WorkingDirectory=!/srv/shop\nId=${session}\n` });
    expect((await projectsOf([`${slicePath}/${session}`], host))[session]?.path).toBe("/srv/shop");
  });

  test.each<[string, Program]>([
    ["hangs", "hangs"],
    ["does not start", { errno: EAGAIN }],
    ["fails", { code: 1, output: "Failed to connect to bus\n" }],
    ["knows no directory", { code: 0, output: `Id=${session}\nWorkingDirectory=\n` }],
    ["says a relative one", { code: 0, output: `Id=${session}\nWorkingDirectory=~\n` }],
  ])("is unknown where the query %s, within its limit", async (_name, program) => {
    const host = answering(program);
    expect(await projectsOf([`${slicePath}/${session}`], host)).toEqual({
      [session]: { path: undefined, byAccount: false },
    });
    expect(host.clockMs - 1_000_000).toBeLessThanOrEqual(limits.attributionMs + limits.childPollMs);
  });

  test.each(["-p.service", "a b.service", "x;reboot.service", "\x1b.service", `${"a".repeat(260)}.service`])(
    "whose name is %j is not asked for: no name becomes an option or more than one word",
    async (name) => {
      const host = answering({ code: 0, output: "" });
      await projectsOf([`${slicePath}/${name}`], host);
      expect(host.commandLines).toEqual([]);
    },
  );
});

describe("a unit of the account's manager", () => {
  test("works where its oldest process is, as the account's word, and no program is asked", async () => {
    const host = new HandMadeHost();
    const unit = "run-1.scope";
    const rows = rowsOf(
      scopeOf(),
      censusOf([
        found({ pid: 30, startTicks: 900, cgroup: `${manager}/${unit}` }),
        found({ pid: 31, startTicks: 100, cgroup: `${manager}/${unit}` }),
        { ...found({ pid: 32, cgroup: `${manager}/${unit}` }), startTicks: undefined },
      ]),
    );
    host.links.set("/proc/31/cwd", "/srv/other");
    await attribute(host, rows);
    expect(rows[0]?.project).toEqual({ path: "/srv/other", byAccount: true });
    expect(host.commandLines).toEqual([]);
  });

  test("is unknown where the link cannot be read", async () => {
    const host = new HandMadeHost();
    host.links.set("/proc/20/cwd", EACCES);
    expect(await projectsOf([`${manager}/run-1.scope`], host)).toEqual({
      "run-1.scope": { path: undefined, byAccount: true },
    });
  });
});

test("a stray's unit is nobody's project, whatever its directory is", async () => {
  const host = answering({ code: 0, output: "Id=cron.service\nWorkingDirectory=/\nUser=ai-tools\n" });
  expect(await projectsOf(["/system.slice/cron.service"], host)).toEqual({
    "cron.service": { path: undefined, byAccount: false },
  });
});

describe("a unit that PID 1 may start again", () => {
  const inSlice = `${slicePath}/${session}`;
  const stray = "/system.slice/detector.service";

  test.each(["always", "on-failure", "on-abnormal", "on-abort"])(
    "with Restart=%s is a hint with its command",
    async (restart) => {
      const host = answering({ code: 0, output: `Id=${session}\nRestart=${restart}\nUser=root\nWorkingDirectory=\n` });
      expect(await hintsFor([inSlice], host)).toEqual([
        `PID 1 may start ${session} again (Restart=${restart}). To prevent it, as root: systemctl stop ${session}`,
      ]);
    },
  );

  test.each(["ai-tools", "990"])("is a hint outside the slice where it is the account's: User=%s", async (user) => {
    const output = `Id=detector.service\nWorkingDirectory=/\nRestart=always\nUser=${user}\n`;
    expect(await hintsFor([stray], answering({ code: 0, output }))).toEqual([
      expect.stringMatching(
        /^PID 1 may start detector\.service again \(Restart=always\).*systemctl stop detector\.service$/,
      ),
    ]);
  });

  test.each(["", "root", "olga", "ai-tools-other", "x ai-tools", "0", "1000", "9900"])(
    "is none where a stray sits in a daemon of %j: nobody is told to stop cron",
    async (user) => {
      const output = `Id=cron.service\nWorkingDirectory=/\nRestart=on-failure\nUser=${user}\n`;
      const host = answering({ code: 0, output });
      expect(await hintsFor(["/system.slice/cron.service"], host)).toEqual([]);
      expect(host.commandLines).toHaveLength(1);
    },
  );

  test.each<[string, Program]>([
    ["does not start it again", { code: 0, output: `Id=${session}\nRestart=no\nUser=ai-tools\n` }],
    ["says nothing of it", { code: 0, output: `Id=${session}\nRestart=\nUser=ai-tools\n` }],
    ["knows no such unit", { code: 0, output: "Id=other.service\nRestart=always\nUser=ai-tools\n" }],
    ["hangs", "hangs"],
    ["cannot be asked", { errno: EAGAIN }],
  ])("is none where PID 1 %s", async (_name, program) => {
    expect(await hintsFor([inSlice], answering(program))).toEqual([]);
  });

  test("is told of each, and each by its own record", async () => {
    const other = "ai-tools-codex-8.service";
    const output = [
      `Restart=always\nId=${session}\nUser=`,
      `User=ai-tools\nRestart=no\nId=${other}`,
      "Restart=on-failure\nUser=ai-tools\nId=detector.service\n",
    ].join("\n\n");
    const hints = await hintsFor([inSlice, `${slicePath}/${other}`, stray], answering({ code: 0, output }));
    expect(hints.map((hint) => /^PID 1 may start (\S+) again/.exec(hint)?.[1])).toEqual([session, "detector.service"]);
  });

  test("of the account's own manager is not asked for: asking starts it", async () => {
    const host = answering({ code: 0, output: "Id=run-1.service\nRestart=always\nUser=ai-tools\n" });
    expect(await hintsFor([`${manager}/run-1.service`], host)).toEqual([]);
    expect(host.commandLines).toEqual([]);
  });
});

describe("what a unit comes back by", () => {
  const stray = "/system.slice/respawner.service";
  const unit = "Id=respawner.service\nWorkingDirectory=/\n";

  test("a stray that is its unit's main process makes the unit the account's", async () => {
    const host = answering({ code: 0, output: `${unit}Restart=always\nUser=\nMainPID=20\n` });
    expect(await hintsFor([stray], host)).toEqual([
      expect.stringMatching(/respawner\.service again \(Restart=always\)/),
    ]);
    const other = answering({ code: 0, output: `${unit}Restart=always\nUser=\nMainPID=21\n` });
    expect(await hintsFor([stray], other)).toEqual([]);
  });

  test("a timer that starts it is named, and is what to stop", async () => {
    const output = `${unit}Restart=no\nUser=ai-tools\nTriggeredBy=respawner.timer respawner.socket\n`;
    expect(await hintsFor([stray], answering({ code: 0, output }))).toEqual([
      expect.stringMatching(/again by respawner\.timer\. .*systemctl stop respawner\.timer$/),
      expect.stringMatching(/again by respawner\.socket\. .*systemctl stop respawner\.socket$/),
    ]);
  });

  test("is asked once more where PID 1 was too slow, and no answer is told", async () => {
    const rows = rowsOf(scopeOf(), censusOf([found({ pid: 20, cgroup: stray })]));
    const late = answering({ code: 0, output: `${unit}Restart=always\nUser=ai-tools\n` });
    expect(await askWhatReturns(late, scopeOf(), rows, false)).toEqual([expect.stringMatching(/Restart=always/)]);
    expect(await askWhatReturns(answering("hangs"), scopeOf(), rows, false)).toEqual([
      expect.stringMatching(/^PID 1 did not say .*TriggeredBy respawner\.service '\*\.service'$/),
    ]);
  });
});

describe("a unit of the account's without a process", () => {
  const ask = (blocks: string[], answered = true) =>
    askWhatReturns(answering({ code: 0, output: blocks.join("\n\n") }), scopeOf(), [], answered);
  const waiting = "SubState=auto-restart\nRestart=always";

  test.each(["User=ai-tools", "User=990", "User=\nSlice=user-990.slice", "User=\nSlice=user-990-work.slice"])(
    "is told of where PID 1 waits to start it again: %j",
    async (whose) => {
      expect(await ask([`Id=a.service\n${waiting}\n${whose}`])).toEqual([
        "PID 1 may start a.service again (Restart=always). To prevent it, as root: systemctl stop a.service",
      ]);
    },
  );

  test("is told of where a timer, a socket or a path starts it", async () => {
    expect(await ask(["Id=a.service\nUser=ai-tools\nSubState=dead\nRestart=no\nTriggeredBy=a.timer"])).toEqual([
      "PID 1 may start a.service again by a.timer. To prevent it, as root: systemctl stop a.timer",
    ]);
  });

  test.each([
    ["somebody else's", `Id=a.service\n${waiting}\nUser=olga\nSlice=user-1000.slice`],
    ["in a slice that only looks like it", `Id=a.service\n${waiting}\nUser=\nSlice=user-9901.slice`],
    ["root's", `Id=a.service\n${waiting}\nUser=\nSlice=system.slice`],
    ["one that stays ended", "Id=a.service\nSubState=failed\nRestart=always\nUser=ai-tools"],
    ["the account's manager", `Id=user@990.service\n${waiting}\nUser=990\nSlice=user-990.slice`],
    ["one whose name is no word for a shell", `Id=a b;c.service\n${waiting}\nUser=ai-tools`],
  ])("is not told of where it is %s", async (_what, block) => {
    expect(await ask([block])).toEqual([]);
  });

  test("that the table had is told of once", async () => {
    const rows = rowsOf(scopeOf(), censusOf([found({ pid: 20, cgroup: `${slicePath}/a.service` })]));
    const host = answering({ code: 0, output: `Id=a.service\n${waiting}\nUser=ai-tools\n` });
    expect(await askWhatReturns(host, scopeOf(), rows, true)).toEqual([]);
    expect(await askWhatReturns(host, scopeOf(), rows, false)).toHaveLength(1);
  });
});
