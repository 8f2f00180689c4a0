// SPDX-License-Identifier: Apache-2.0
// Promise: a session has a terminal of its own where the operator has one, pipes otherwise, and never the operator's own
// terminal; its size, its keys and its loss reach the session.

import { beforeEach, describe, expect, test } from "vitest";

import { eventually, running } from "./kit/facts.ts";
import { labHost } from "./kit/host.ts";
import {
  accountsFiles,
  claimedProject,
  clearSessions,
  inDirectory,
  onTerminal,
  recordsOf,
  sessionUnits,
  shellEntryPoint,
  temperEntryPoint,
} from "./kit/sessions.ts";

const host = await labHost();

beforeEach(() => clearSessions(host));

/** A shell's: what is typed before it is thrown away when the session's terminal is made ready. */
const prompt = /\$ $/;

describe("on a terminal", () => {
  test("the session has one of its own, of the same size, and what is typed reaches it", async () => {
    const path = await claimedProject(host);
    const terminal = onTerminal(host, path, ["--run", await shellEntryPoint(host)]);
    await terminal.waitFor(prompt, 20_000);
    terminal.type("stty size; tty; echo ready-$((1+1))\r");
    await terminal.waitFor(/ready-2/, 20_000);
    expect(terminal.text()).toMatch(/40 120/);
    const [unit = ""] = await sessionUnits(host);
    // Which terminal the session has, and which the operator's process has: by their devices.
    const devices = await host.sh(`pid=$(systemctl show -p MainPID --value ${unit})
      cut -d' ' -f7 /proc/$pid/stat; for p in /proc/[0-9]*; do
        [ "$(tr '\\0' ' ' <$p/cmdline 2>/dev/null)" != "" ] && grep -qs ai-tools-run $p/cmdline && cut -d' ' -f7 $p/stat; done; true`);
    const [own, ...operators] = devices.trim().split("\n");
    expect(own).not.toBe("0");
    expect(operators.length).toBeGreaterThan(0);
    expect(operators).not.toContain(own);
    terminal.type("exit 7\r");
    expect(await terminal.exit).toBe(7);
  });

  test("Ctrl-C reaches the session's foreground, and the session goes on", async () => {
    const path = await claimedProject(host);
    const terminal = onTerminal(host, path, ["--run", await shellEntryPoint(host)]);
    await terminal.waitFor(prompt, 20_000);
    terminal.type("echo begun-$((1+1)); sleep 60\r");
    await terminal.waitFor(/begun-2/, 20_000);
    await eventually("it sleeps", async () => /sleep/.test(await host.sh("ps -u ai-tools -o comm= || true")));
    terminal.type("\x03");
    terminal.type("echo after-$?\r");
    await terminal.waitFor(/after-130/, 20_000);
    terminal.type("exit 0\r");
    expect(await terminal.exit).toBe(0);
  });

  test("a lost terminal ends the session like a hang-up", async () => {
    const path = await claimedProject(host);
    const terminal = onTerminal(host, path, ["--run", await shellEntryPoint(host)]);
    await terminal.waitFor(prompt, 20_000);
    terminal.type("touch made; echo ready-$((1+1))\r");
    await terminal.waitFor(/ready-2/, 20_000);
    await terminal.hangUp();
    await eventually("it has ended", async () => (await sessionUnits(host)).length === 0, 20_000);
  });

  test("a session that ignores the hang-up stays visible, and its files come back when it ends by itself", async () => {
    const path = await claimedProject(host);
    // No interactive shell: that one ends itself when it cannot give its children the terminal.
    const script = "trap '' HUP; touch made; echo ready-$((1+1)); while ! test -e finish; do sleep 0.2; done; exit 3";
    const terminal = onTerminal(host, path, ["--run", await shellEntryPoint(host), "--", "-c", script]);
    await terminal.waitFor(/ready-2/, 20_000);
    await terminal.hangUp();
    await new Promise((done) => setTimeout(done, 1_000));
    const [unit = ""] = await sessionUnits(host);
    expect(unit).not.toBe("");
    const status = await inDirectory(host, "/", ["--status"]);
    expect(status.stdout).toContain(unit);
    await host.sh(`touch ${path}/finish`, { user: "olga" });
    await eventually("its files are back", async () => (await accountsFiles(host, path)).length === 0, 20_000);
    await eventually("its record is gone", async () => (await recordsOf(host)).length === 0);
  });
});

describe("without a terminal", () => {
  test("what comes in goes through, what it says comes out, each stream apart, to their ends", async () => {
    const path = await claimedProject(host);
    const shell = await shellEntryPoint(host);
    const input = `${"line of input\n".repeat(20_000)}end`;
    const script = "cat; echo apart >&2; test -t 0 || test -t 1 || test -t 2 || echo none >&2";
    const { code, stdout, stderr } = await inDirectory(host, path, ["--run", shell, "--", "-c", script], { input });
    expect(code).toBe(0);
    expect(stdout).toBe(input);
    expect(stderr).toBe("apart\nnone\n");
  });

  test.each([
    ["standard output", "| cat >/tmp/out; cat /tmp/out", "sh"],
    ["standard input", "</dev/null", "sh"],
    ["standard error", "2>/tmp/err; cat /tmp/err", "sh"],
  ])("only %s redirected: the operator's terminal is still out of the session's reach", async (_what, redirected) => {
    const path = await claimedProject(host);
    const shell = await shellEntryPoint(host);
    const operators = host.terminal(
      [
        "sh",
        "-c",
        `cd ${path}; echo op-$(tty); /usr/bin/ai-tools --run ${shell} -- -c 'for fd in 0 1 2; do echo "fd$fd $(readlink /proc/self/fd/$fd)"; done; echo done-$((1+1)) >&2; exit 0' ${redirected}; sleep 1`,
      ],
      { user: "olga" },
    );
    await operators.exit;
    const text = operators.text();
    const own = /op-(\/dev\/pts\/\d+)/.exec(text)?.[1];
    expect(own).toBeDefined();
    expect(text).toMatch(/done-2/);
    expect(text.match(/fd[012] .*/g)?.join("\n")).not.toMatch(new RegExp(`${own}\\s`));
  });

  test.each(["INT", "TERM", "HUP"])("SIG%s to the command ends the session, and it is no clean end", async (signal) => {
    const path = await claimedProject(host);
    const shell = await shellEntryPoint(host);
    const run = `timeout -s ${signal} 3 /usr/bin/ai-tools --run ${shell} -- -c 'touch made; exec sleep 60'; echo code $?`;
    const { stdout } = await host.run(["sh", "-c", `cd ${path}; ${run}`], { user: "olga" });
    expect(stdout).toMatch(/^code 124$/m);
    await eventually("it has ended", async () => (await sessionUnits(host)).length === 0);
    await eventually("it is recorded", async () => (await recordsOf(host))[0]?.ended !== undefined);
    expect(await recordsOf(host)).toMatchObject([{ ended: { clean: false } }]);
  });

  test("what a session says that goes on after a hang-up still comes to the caller's file", async () => {
    const path = await claimedProject(host);
    const shell = await shellEntryPoint(host);
    const script = "trap '' HUP; echo early; until [ -e finish ]; do sleep 0.2; done; echo late; echo later >&2";
    const run = `timeout -s HUP 3 /usr/bin/ai-tools --run ${shell} -- -c "${script}" >/tmp/said 2>&1; echo code $?`;
    const { stdout } = await host.run(["sh", "-c", `cd ${path}; ${run}`], { user: "olga" });
    expect(stdout).toMatch(/^code 124$/m);
    expect(await host.sh("cat /tmp/said")).toBe("early\n");
    await host.sh(`touch ${path}/finish; chmod 666 ${path}/finish`, { user: "olga" });
    await eventually("it has ended", async () => (await sessionUnits(host)).length === 0);
    await eventually("all is said", async () => (await host.sh("cat /tmp/said")).startsWith("early\nlate\nlater\n"));
  });

  test("the command killed outright: the session goes on or ends, but is never forgotten", async () => {
    const path = await claimedProject(host);
    const temper = await temperEntryPoint(host, "polite", "7001");
    void inDirectory(host, path, ["--run", temper]);
    await eventually("it counts", async () => (await running(host)).includes("7001"));
    await host.sh("kill -KILL $(pgrep -f '[l]ibexec/ai-tools/ai-tools-run')");
    expect(await running(host)).toEqual(["7001"]);
    const [unit = ""] = await sessionUnits(host);
    expect((await inDirectory(host, "/", ["--status"])).stdout).toContain(unit);
    await host.sh(`systemctl stop ${unit}`);
  });
});
