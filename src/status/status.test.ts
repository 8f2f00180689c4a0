// SPDX-License-Identifier: Apache-2.0
// The status on a host made by hand: what each caller may be told, the exit code, and that unknown is never ok or idle.

import { describe, expect, test } from "vitest";
import { pastedPath } from "../claim/paths.ts";
import type { HandMadeGround } from "../ground/hand-made-ground.fixture.ts";
import { encodeUtf8 } from "../ground/records.ts";
import { EACCES, EIO, ENOENT } from "../stop/kernel.ts";
import { cgroup, healthyHost, list, manager, processes, session, slice } from "./healthy-host.fixture.ts";
import { showStatus } from "./status.ts";

async function status(host: HandMadeGround, ...words: string[]): Promise<{ code: number; text: string }> {
  host.printed.out = "";
  host.printed.err = "";
  const code = await showStatus(host, words);
  return { code, text: host.printed.out };
}

const firstLine = ({ text }: { text: string }) => text.split("\n")[0];

function running(host: HandMadeGround): HandMadeGround {
  slice(host, 1);
  const { unit } = session(host);
  cgroup(host, unit, 3);
  host.files.set(`/sys/fs/cgroup/user.slice/user-990.slice/${unit}/memory.current`, "536870912\n");
  return host;
}

describe("a host as it should be", () => {
  test("is idle for root, in one line", async () => {
    expect(await status(healthyHost())).toEqual({
      code: 0,
      text: "IDLE: nothing at work; all 13 checks of the host passed\n",
    });
  });

  test("is running with a session, shown with operator, age, processes, memory and project", async () => {
    const { code, text } = await status(running(healthyHost()));
    expect(code).toBe(3);
    expect(text).toBe(
      "RUNNING: 1 session at work; all 13 checks of the host passed\n\n" +
        "SESSION                     OPERATOR    AGE  PROCESSES  MEMORY  PROJECT\n" +
        "ai-tools-claude-41.service  olga      1h02m          3    512M  /srv/shop\n",
    );
  });

  test("is running with a session that is being started: its launcher is at work, no process is there yet", async () => {
    const host = healthyHost();
    slice(host, 1);
    const { unit } = session(host);
    host.files.set(`/run/ai-tools/ended/${unit}`, "launcher 60 5060\n");
    processes(host, [{ pid: 60, uids: [0, 0, 0, 0], cgroup: "/user.slice/user-1001.slice/session-1.scope" }]);
    expect(await status(host)).toMatchObject({ code: 3, text: expect.stringContaining(unit) });
  });

  test("is idle with a manager that has started nothing, and running with one that has", async () => {
    const host = healthyHost();
    slice(host, 1);
    manager(host);
    expect((await status(host)).code).toBe(0);
    cgroup(host, "user@990.service", 0, { below: 2 });
    cgroup(host, "user@990.service/app.slice", 1);
    expect(await status(host)).toMatchObject({
      code: 3,
      text: expect.stringMatching(/user@990.service +3 +\? {2}at work/),
    });
  });

  test("is running with a stray, which is named", async () => {
    const host = healthyHost();
    processes(host, [{ pid: 60, command: "evil one\u001b", cgroup: "/system.slice/cron.service" }]);
    const { code, text } = await status(host);
    expect(code).toBe(3);
    expect(text).toContain("1 stray at work");
    expect(text).toMatch(/^60 +S +evil\\x20one\\x1b +\/system.slice\/cron.service$/m);
  });

  test("is told an operator once root has looked, and not before", async () => {
    const asRoot = healthyHost();
    await status(asRoot);
    const host = healthyHost("operator");
    const before = await status(host);
    expect(before.code).toBe(1);
    expect(firstLine(before)).toBe("UNKNOWN: nothing at work; 4 of 13 checks of the host did not pass");
    expect(before.text).toContain("as root:\n           ai-tools --status\n");
    const look = "/run/ai-tools/last-look.json";
    host.files.set(look, asRoot.files.get(look) as string);
    host.stats.set(look, { kind: "file", mode: 0o644, uid: 0, nlink: 1, rdev: 0, size: 9 });
    expect(await status(host)).toEqual({
      code: 0,
      text: "IDLE: nothing at work; all 13 checks of the host passed\n",
    });
    expect((await status(host, "--json")).text).toContain("(root looked at 2026-01-02T03:20Z)");
  });

  test.each([
    ["of the day before yesterday", 0o644, 0, 48],
    ["of tomorrow", 0o644, 0, -24],
    ["that others may write", 0o646, 0, 0],
    ["of somebody else", 0o644, 990, 0],
  ])("is not told by a look of root's %s", async (_what, mode, uid, hours) => {
    const asRoot = healthyHost();
    await status(asRoot);
    const host = healthyHost("operator");
    host.clockMs += hours * 3_600_000;
    const look = "/run/ai-tools/last-look.json";
    host.files.set(look, asRoot.files.get(look) as string);
    host.stats.set(look, { kind: "file", mode, uid, nlink: 1, rdev: 0, size: 9 });
    expect((await status(host)).code).toBe(1);
  });

  test("asks sudo for nobody but operators: a refusal would be logged, or mailed", async () => {
    const host = healthyHost("other");
    expect((await status(host)).code).toBe(1);
    expect(host.commandLines).toEqual([]);
    const operator = healthyHost("operator");
    await status(operator);
    expect(operator.commandLines).toEqual([list]);
  });
});

describe("what cannot be seen is unknown, and never idle", () => {
  const blind: Record<string, (host: HandMadeGround) => unknown> = {
    "hidden processes": (host) => host.files.set("/proc/1/cgroup", ENOENT),
    "hidden processes, and nobody in the slice": (host) => {
      slice(host, 0);
      host.files.set("/proc/1/cgroup", ENOENT);
    },
    "a process whose status cannot be read": (host) => {
      processes(host, [{ pid: 60 }]);
      host.files.set("/proc/60/status", EIO);
    },
    "no list of processes": (host) => host.directories.set("/proc", 5),
    "a slice that cannot be listed": (host) => host.directories.set("/sys/fs/cgroup/user.slice/user-990.slice", 13),
    "stops that cannot be listed": (host) => host.directories.set("/run/ai-tools/stop", 13),
    "a hold that cannot be read": (host) => host.files.set("/var/lib/ai-tools/hold.json", "{"),
    "records of sessions that cannot be listed": (host) => host.directories.set("/var/lib/ai-tools/sessions", 13),
    "a record that is none": (host) => host.files.set("/var/lib/ai-tools/sessions/ai-tools-x-1.service.json", "{}"),
  };

  test.each(Object.entries(blind))("%s", async (_name, hide) => {
    for (const caller of ["root", "operator"] as const) {
      const host = healthyHost(caller);
      hide(host);
      const { code, text } = await status(host);
      expect(code).toBe(1);
      expect(text).toMatch(/^(UNKNOWN|BROKEN)/);
    }
  });

  test("but sessions are still counted where only the processes are hidden", async () => {
    const host = running(healthyHost("operator"));
    host.files.set("/proc/1/cgroup", ENOENT);
    const { text } = await status(host);
    expect(text).toContain("1 session at work in the slice, strays CANNOT BE TOLD");
    expect(text).toMatch(/ai-tools-claude-41.service +olga/);
    expect(text).toContain("whether a stop is running cannot be told");
  });

  test("also where root has looked: who runs is not among what it may tell others", async () => {
    const asRoot = healthyHost();
    await status(asRoot);
    const host = healthyHost("operator");
    const look = "/run/ai-tools/last-look.json";
    host.files.set(look, asRoot.files.get(look) as string);
    host.stats.set(look, { kind: "file", mode: 0o644, uid: 0, nlink: 1, rdev: 0, size: 9 });
    host.files.set("/proc/1/cgroup", ENOENT);
    const { code, text } = await status(host);
    expect(code).toBe(1);
    expect(text).toMatch(/^UNKNOWN: nothing at work in the slice, strays CANNOT BE TOLD; 1 of 13 checks/);
    expect(text).toContain("processes are hidden from you (hidepid): only root sees who runs\n         as root:\n");
  });

  test("and a count that met a name that does not open is a least one", async () => {
    const host = healthyHost();
    slice(host, 1);
    cgroup(host, "ai-tools-claude-41.service", 2, { below: 1 });
    expect((await status(host)).text).toMatch(/ai-tools-claude-41.service +\? +\? +2\+ /);
  });
});

test("a claim in a place that the caller may not look into is unknown", async () => {
  const host = healthyHost();
  const claim = { path: "/home/olga/shop", device: 1, inode: 7, since: "now", hadLists: false };
  const operator = { name: "olga", uid: 1001, gid: 1001 };
  host.files.set("/var/lib/ai-tools/claims/0a.json", encodeUtf8(JSON.stringify({ ...claim, operator })));
  host.pathStats.set(claim.path, EACCES);
  expect(await status(host)).toMatchObject({
    code: 1,
    text: expect.stringMatching(/^unknown {2}records +of 1 claimed/m),
  });
});

describe("what else a person must know", () => {
  test("a stop that runs is not idle, and stands at the top", async () => {
    const host = healthyHost();
    processes(host, [{ pid: 60, uids: [0, 0, 0, 0], cgroup: "/init.scope", startTicks: 9 }]);
    host.files.set("/run/ai-tools/stop/60-9", String(host.clockMs));
    const { code, text } = await status(host);
    expect(code).toBe(3);
    expect(text.split("\n")[2]).toBe("STOP     a stop is running: every session is being ended");
  });

  test("a hold is told with who, when, why and what lifts it; the host is idle all the same", async () => {
    const host = healthyHost();
    host.files.set("/var/lib/ai-tools/hold.json", '{"operator":"olga","since":"NOW","reason":"incident 7"}');
    const { code, text } = await status(host);
    expect(code).toBe(0);
    expect(text).toContain(
      "HOLD     new sessions are held since NOW by olga: incident 7\n         to lift it: ai-tools --release\n",
    );
  });

  test("a session that did not end by itself is told with the line that gives its files back", async () => {
    const host = healthyHost();
    session(host, { project: "/srv/a b/\u00fc'", boot: "an earlier boot" });
    session(host, {
      unit: "ai-tools-claude-42.service",
      ended: { at: "now", how: "killed by signal 9", clean: false },
    });
    const { code, text } = await status(host);
    expect(code).toBe(0);
    expect(text).toContain("nobody saw how it ended");
    expect(text).toContain("killed by signal 9\n           ai-tools --reclaim /srv/shop\n");
    expect(text).toContain(`\n           ai-tools --reclaim ${pastedPath("/srv/a b/\u00fc'")}\n`);
  });

  test.each([
    [1, false],
    [0, true],
  ])(
    "a clean session that waits for another one of its project (%i process of that one) is left: %j",
    async (alive, isLeft) => {
      const host = healthyHost();
      slice(host, alive);
      const { unit } = session(host);
      cgroup(host, unit, alive);
      session(host, { unit: "ai-tools-claude-42.service", ended: { at: "now", how: "ended with 0", clean: true } });
      expect((await status(host)).text.includes("ai-tools-claude-42.service")).toBe(isLeft);
    },
  );

  test("a claim whose directory is gone is told with the line that ends it", async () => {
    const host = healthyHost();
    const claim = { path: "/srv/gone", device: 1, inode: 7, since: "now", hadLists: false };
    const operator = { name: "olga", uid: 1001, gid: 1001 };
    host.files.set("/var/lib/ai-tools/claims/0a.json", encodeUtf8(JSON.stringify({ ...claim, operator })));
    expect((await status(host)).text).toContain("its directory is gone\n           ai-tools --unclaim /srv/gone\n");
  });

  test("nothing but printable ASCII reaches the terminal, whatever names say", async () => {
    const host = healthyHost();
    slice(host, 2);
    cgroup(host, "ai-tools-claude-41.service", 1);
    cgroup(host, "x\u001b[2J.scope", 1);
    session(host, { project: "/srv/\u001b[2J\n\u00fc", operator: { name: "o\u001b", uid: 1, gid: 1 } });
    session(host, { unit: "ai-tools-x-9.service", boot: "before", project: "/\u0007", since: "\u001b" });
    for (const words of [[], ["--json"]]) {
      const { text } = await status(host, ...words);
      expect(text).toMatch(/^[\x20-\x7e\n]+$/);
    }
  });
});

describe("the grammar", () => {
  test("--json is one document with the same facts and exit code", async () => {
    const { code, text } = await status(running(healthyHost()), "--json");
    expect(code).toBe(3);
    const document = JSON.parse(text);
    expect(document).toMatchObject({
      state: "running",
      exitCode: 3,
      stop: { running: false },
      hold: null,
      unclean: [],
    });
    expect(document.sessions).toEqual([
      {
        unit: "ai-tools-claude-41.service",
        entryPoint: "claude",
        project: "/srv/shop",
        operator: "olga",
        since: expect.any(String),
        ageSeconds: 3_720,
        processes: 3,
        atLeast: false,
        memory: 536_870_912,
      },
    ]);
  });

  test.each(["--yes", "", "/srv", "--stop", "json"])("%j is told what there is", async (word) => {
    const host = healthyHost();
    expect(await status(host, word)).toEqual({ code: 2, text: "" });
    expect(host.printed.err).toContain("--status knows --json");
  });
});
