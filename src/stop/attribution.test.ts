// SPDX-License-Identifier: Apache-2.0
// Projects, for display: PID 1's word for its units, the account's word marked as such, and unknown for the rest.

import { describe, expect, test } from "vitest";
import { attribute } from "./attribution.ts";
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
    expect(host.commandLines).toEqual([`/usr/bin/systemctl show --property=Id,WorkingDirectory -- ${session}`]);
  });

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

test("a stray's unit is nobody's project: it is not asked for", async () => {
  const host = answering({ code: 0, output: "Id=cron.service\nWorkingDirectory=/\n" });
  expect(await projectsOf(["/system.slice/cron.service"], host)).toEqual({
    "cron.service": { path: undefined, byAccount: false },
  });
  expect(host.commandLines).toEqual([]);
});
