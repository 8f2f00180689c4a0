// SPDX-License-Identifier: Apache-2.0
// Rows of the table: a session chooses its names, and no name makes it disappear or pass for something else.

import { describe, expect, test } from "vitest";
import { censusOf, found, scopeOf, sliceAt, slicePath } from "./hand-made-processes.fixture.ts";
import { notRead, placeOf, rowsOf } from "./rows.ts";

const manager = `${slicePath}/user@990.service`;

function placed(cgroup: string | undefined) {
  const { key, unit, kind, owner } = placeOf(sliceAt(), 990, cgroup);
  return [key, unit, kind, owner];
}

describe("the unit of a process", () => {
  test("is the first service or scope below slices", () => {
    const session = `${slicePath}/ai-tools-claude-code-7.service`;
    expect(placed(session)).toEqual([session, "ai-tools-claude-code-7.service", "session", "system"]);
    expect(placed(`${session}/tools/shell.scope`)).toEqual([
      session,
      "ai-tools-claude-code-7.service",
      "session",
      "system",
    ]);
    const scope = `${slicePath}/a.slice/a-b.slice/run-1.scope`;
    expect(placed(`${scope}/x`)).toEqual([scope, "run-1.scope", "plumbing", "system"]);
  });

  test("is looked for below the account's manager, which is no row itself", () => {
    const run = `${manager}/app.slice/ai-tools-codex-12.service`;
    expect(placed(`${run}/child`)).toEqual([run, "ai-tools-codex-12.service", "session", "account"]);
    expect(placed(`${manager}/init.scope`)).toEqual([`${manager}/init.scope`, "init.scope", "plumbing", "account"]);
    expect(placed(manager)).toEqual([manager, manager, "plumbing", "account"]);
  });

  test("the manager is known by its exact name and place: look-alikes are units like others", () => {
    for (const name of [
      "user@0.service",
      "user@990.service-x.service",
      "user@0990.service",
      "user@990.service.service",
    ]) {
      const path = `${slicePath}/${name}`;
      expect(placed(`${path}/app.slice/ai-tools-x-1.service`)).toEqual([path, name, "plumbing", "system"]);
    }
    const nested = `${slicePath}/x.slice/user@990.service`;
    expect(placed(`${nested}/app.slice/a.service`)).toEqual([nested, "user@990.service", "plumbing", "system"]);
    const outside = "/user.slice/user-1000.slice/user@990.service";
    expect(placed(`${outside}/a.service`)).toEqual([outside, "user@990.service", "stray", "system"]);
    const twice = `${manager}/user@990.service`;
    expect(placed(`${twice}/a.service`)).toEqual([twice, "user@990.service", "plumbing", "account"]);
  });

  test("a cgroup that is no unit is a row of its own, by its path", () => {
    for (const path of [
      slicePath,
      `${slicePath}/x.slice`,
      `${slicePath}/.service.d`,
      `${slicePath}/plain/a.service`,
      `${slicePath}/memory.max`,
    ]) {
      expect(placed(path).slice(0, 3)).toEqual([path, path, "plumbing"]);
    }
    expect(placed("/")).toEqual(["/", "/", "stray", "system"]);
  });

  test.each([
    ".service",
    "..scope",
    "-x.service",
    " .scope",
    "\x1b[2K.service",
    "a\tb.scope",
    "\xff\xfe.service",
    "init.scope",
  ])("the name %j hides nobody", (name) => {
    const path = `${slicePath}/${name}`;
    expect(placed(`${path}/below`)).toEqual([path, name, "plumbing", "system"]);
  });

  test("only the exact form of a session's name is called an agent session, and only inside the slice", () => {
    for (const name of [
      "ai-tools-x-1.scope",
      "ai-tools-1.service",
      "xai-tools-a-1.service",
      "ai-tools-A-1.service",
      "ai-tools-a-1.service.service",
      "ai-tools-a-.service",
      "ai-tools-a-1\n.service",
    ]) {
      expect(placed(`${slicePath}/${name}`)[2], name).toBe("plumbing");
    }
    expect(placed("/system.slice/ai-tools-claude-code-7.service")[2]).toBe("stray");
  });

  test("a process whose place was not read has a row that says so", () => {
    expect(placed(undefined)).toEqual([notRead, notRead, "plumbing", "account"]);
    expect(notRead).toBe("(not read)");
  });
});

describe("the rows of a census", () => {
  const at = (pid: number, cgroup: string) => found({ pid, cgroup });

  test("hold every process that counts exactly once, held ones too, and no other", () => {
    const alive = [
      at(10, `${slicePath}/b.service`),
      at(11, `${slicePath}/b.service/x`),
      at(12, "/system.slice/cron.service"),
    ];
    const unread = { ...at(13, ""), cgroup: undefined };
    const census = censusOf([...alive, unread], {
      held: [at(14, `${slicePath}/b.service`)],
      unreaped: [at(15, `${slicePath}/dead.service`)],
      bystanders: [{ found: at(16, "/system.slice/smbd.service"), reason: "root" }],
    });
    const rows = rowsOf(scopeOf(), census).map(({ unit, processes }) => [unit, processes.map(({ pid }) => pid)]);
    expect(rows).toEqual([
      ["(not read)", [13]],
      ["b.service", [10, 11, 14]],
      ["cron.service", [12]],
    ]);
  });

  test("come as agent sessions, then plumbing, then strays, each by name", () => {
    const paths = [
      "/system.slice/a.service",
      `${slicePath}/z.service`,
      `${slicePath}/ai-tools-x-2.service`,
      `${slicePath}/a.service`,
      `${slicePath}/ai-tools-x-1.service`,
    ];
    const rows = rowsOf(scopeOf(), censusOf(paths.map((path, index) => at(20 + index, path))));
    expect(rows.map(({ unit }) => unit)).toEqual([
      "ai-tools-x-1.service",
      "ai-tools-x-2.service",
      "a.service",
      "z.service",
      "a.service",
    ]);
    expect(rows.map(({ kind }) => kind)).toEqual(["session", "session", "plumbing", "plumbing", "stray"]);
  });

  test("units of the same name at two places are two rows", () => {
    const rows = rowsOf(scopeOf(), censusOf([at(10, `${slicePath}/a.scope`), at(11, `${slicePath}/x.slice/a.scope`)]));
    expect(rows.map(({ key }) => key).sort()).toEqual([`${slicePath}/a.scope`, `${slicePath}/x.slice/a.scope`]);
  });
});
