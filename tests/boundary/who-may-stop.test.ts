// SPDX-License-Identifier: Apache-2.0
// Promise: an operator stops everything without a password by the bare form alone; nobody else can, and nothing can be
// added to it.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";

import { startPayload } from "../../src/tooling/tempers/payloads.ts";
import { clearHost, running } from "./kit/facts.ts";
import { labHost } from "./kit/host.ts";
import { entryOf, frontDoor, helper, question, results, stopBy, stopByScript, stopOnTerminal } from "./kit/stop.ts";

const host = await labHost();
const session = "501";

beforeEach(async () => {
  await clearHost(host);
  await startPayload(host, session, "polite", "session");
});

describe("an operator", () => {
  test("stops everything by the bare form through sudo, without a password", async () => {
    const { code, entries } = await stopBy(host, ["sudo", "-n", helper], { user: "olga" });
    expect(code).toBe(0);
    expect(await running(host)).toEqual([]);
    expect(entryOf(entries, "stopped")).toMatchObject({ AI_TOOLS_CALLER: "olga", AI_TOOLS_CONSENT: "no-tty" });
    expect(entryOf(entries, "stopped").AI_TOOLS_CALLER_UID).toBe((await host.sh("id -u olga")).trim());
  });

  test.each([[[]], [["--all"]], [["--yes"]], [["-y"]], [["--yes", "--all"]]])(
    "stops everything by the front door with %j, without a terminal",
    async (options) => {
      const { code, entries } = await stopBy(host, [frontDoor, "--stop", ...options], { user: "olga" });
      expect(code).toBe(0);
      expect(entryOf(entries, "stopped")).toMatchObject({ AI_TOOLS_CALLER: "olga", AI_TOOLS_CONSENT: "no-tty" });
      expect(await running(host)).toEqual([]);
    },
  );

  test("stops everything by the front door on a terminal, with Enter", async () => {
    const { code, entries } = await stopOnTerminal(
      host,
      [frontDoor, "--stop"],
      async (terminal) => {
        await terminal.waitFor(question, 15_000);
        terminal.type("\r");
      },
      { user: "olga" },
    );
    expect(code).toBe(0);
    expect(entryOf(entries, "stopped")).toMatchObject({ AI_TOOLS_CALLER: "olga", AI_TOOLS_CONSENT: "prompt" });
    expect(await running(host)).toEqual([]);
  });

  const refused = [
    ["--force"],
    ["--dry-run"],
    ["--yes"],
    ["-y"],
    ["--all"],
    ["--json"],
    ["--help"],
    ["--version"],
    [""],
    ["", ""],
    ["/"],
    ["*"],
  ];
  test.each(refused.map((words) => [words]))(
    "is refused by sudo without a password for the helper with %j",
    async (words) => {
      const { code, stderr, entries } = await stopBy(host, ["sudo", "-n", helper, ...words], { user: "olga" });
      expect(code).toBe(1);
      expect(stderr).toMatch(/password is required/);
      expect(results(entries)).toEqual([]);
      expect(await running(host)).toEqual([session]);
    },
  );

  test.each([["--force"], ["--dry-run"], ["--json"]])(
    "is told that nothing was stopped where sudo cannot ask for the password that %s needs",
    async (option) => {
      const { code, stderr, entries } = await stopBy(host, [frontDoor, "--stop", option], { user: "olga" });
      expect(code).toBe(5);
      expect(stderr).toMatch(/nothing was stopped/i);
      expect(results(entries)).toEqual([]);
      expect(await running(host)).toEqual([session]);
    },
  );

  test("may use every option with a password", async () => {
    const { code, screen, entries } = await stopOnTerminal(
      host,
      [frontDoor, "--stop", "--force", "--yes"],
      async (terminal) => {
        await terminal.waitFor(/password/i, 15_000);
        terminal.type("olga\r");
      },
      { user: "olga" },
    );
    expect({ code, screen }).toMatchObject({ code: 0 });
    expect(entryOf(entries, "stopped")).toMatchObject({ AI_TOOLS_CALLER: "olga", AI_TOOLS_CONSENT: "flag" });
    expect(await running(host)).toEqual([]);
  });

  test("cannot execute the helper without sudo", async () => {
    const { code } = await stopBy(host, ["sh", "-c", helper], { user: "olga" });
    expect(code).toBe(126);
    expect(await running(host)).toEqual([session]);
  });
});

describe.each(["ursula", "ai-tools"])("%s, who is no operator,", (user) => {
  test("is refused by sudo", async () => {
    const { code, stderr, entries } = await stopBy(host, ["sudo", "-n", helper], { user });
    expect(code).toBe(1);
    expect(stderr).toMatch(/password is required|may not run|not allowed/);
    expect(results(entries)).toEqual([]);
    expect(await running(host)).toEqual([session]);
  });

  test.each([["--stop"], ["--stop --yes"], ["--stop --force"]])(
    "is told that nothing was stopped by ai-tools %s",
    async (options) => {
      const { code, stderr, entries } = await stopBy(host, [frontDoor, ...options.split(" ")], { user });
      expect(code).toBe(5);
      expect(stderr).toMatch(/nothing was stopped/i);
      expect(results(entries)).toEqual([]);
      expect(await running(host)).toEqual([session]);
    },
  );

  test("cannot read, replace or execute the helper", async () => {
    const { stdout } = await host.run(
      ["sh", "-c", `for may in -r -w -x; do test $may ${helper} && echo $may; done; ls ${helper} 2>&1`],
      { user },
    );
    expect(stdout).toMatch(/^ls: .*Permission denied/);
  });
});

describe("root", () => {
  test.each([
    ["the helper", [helper]],
    ["the front door", [frontDoor, "--stop"]],
  ])("stops everything by %s", async (_, argv) => {
    const { code, entries } = await stopBy(host, argv);
    expect(code).toBe(0);
    expect(entryOf(entries, "stopped")).toMatchObject({ AI_TOOLS_CALLER: "root", AI_TOOLS_CONSENT: "no-tty" });
    expect(await running(host)).toEqual([]);
  });

  test("stops everything with an environment and a working directory that are good for nothing", async () => {
    const { code } = await stopByScript(
      host,
      `mkdir /tmp/gone; cd /tmp/gone; rmdir /tmp/gone; exec env -i PATH=/nowhere HOME=/nowhere ${helper}`,
    );
    expect(code).toBe(0);
    expect(await running(host)).toEqual([]);
  });

  test.each([["<&-"], [">&-"], ["2>&-"], ["<&- >&- 2>&-"]])(
    "stops everything with closed descriptors (%s)",
    async (closed) => {
      const { code, entries } = await stopByScript(host, `exec ${helper} --force ${closed}`);
      expect(code).toBe(0);
      expect(results(entries)).toContain("stopped");
      expect(await running(host)).toEqual([]);
    },
  );

  test.each([
    ["the slice itself", ""],
    ["the session's own unit", `/ai-tools-claude-code-${session}.service`],
  ])("stops everything from inside %s, and outlives that", async (_, below) => {
    const uid = (await host.sh("id -u ai-tools")).trim();
    const cgroup = `/sys/fs/cgroup/user.slice/user-${uid}.slice${below}`;
    const { code, entries } = await stopByScript(host, `echo $$ >${cgroup}/cgroup.procs && exec ${helper} --force`);
    expect(code).toBe(0);
    expect(results(entries)).toContain("stopped");
    expect(await running(host)).toEqual([]);
  });
});

// A rule that comes later wins: the grant is gone, and the operator must learn that nothing happened.
describe("where a later rule takes the grant away", () => {
  beforeAll(() =>
    host.sh("echo '%ai-ops ALL = (root) ALL' >/etc/sudoers.d/zz-local && chmod 440 /etc/sudoers.d/zz-local"),
  );
  afterAll(() => host.sh("rm /etc/sudoers.d/zz-local"));

  test("the front door says without a terminal that nothing was stopped, and how to do it", async () => {
    const { code, stderr, entries } = await stopBy(host, [frontDoor, "--stop"], { user: "olga" });
    expect(code).toBe(5);
    expect(stderr).toMatch(/nothing was stopped/i);
    expect(stderr).toMatch(/cgroup\.kill|systemctl kill|pkill/);
    expect(results(entries)).toEqual([]);
    expect(await running(host)).toEqual([session]);
  });

  test("the front door lets sudo ask where there is a terminal", async () => {
    const { code, entries } = await stopOnTerminal(
      host,
      [frontDoor, "--stop"],
      async (terminal) => {
        await terminal.waitFor(/password/i);
        terminal.type("olga\r");
        await terminal.waitFor(question);
        terminal.type("\r");
      },
      { user: "olga" },
    );
    expect(code).toBe(0);
    expect(entryOf(entries, "stopped").AI_TOOLS_CALLER).toBe("olga");
    expect(await running(host)).toEqual([]);
  });
});
