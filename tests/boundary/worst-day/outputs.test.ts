// SPDX-License-Identifier: Apache-2.0
// Promise: a stop needs no descriptor, no reader and no terminal: whatever the caller's are, it is done and gives its
// own code, and no file of the helper lands where one of them was.

import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { tempersOnHost } from "../../../src/tooling/tempers/build-tempers.ts";
import { startPayload } from "../../../src/tooling/tempers/payloads.ts";
import { calmHost, closeWith, expectCalm } from "../kit/calm.ts";
import { eventually, readCounters } from "../kit/facts.ts";
import { labHost } from "../kit/host.ts";
import {
  frontDoor,
  helper,
  lastEntries,
  question,
  results,
  stopByScript,
  stopOnTerminal,
  trailLength,
} from "../kit/stop.ts";

const host = await labHost();
closeWith(host);

beforeEach(async () => {
  await calmHost(host);
  await startPayload(host, "3601", "polite", "session");
});

describe("with descriptors closed:", () => {
  const combinations = ["0<&-", "1>&-", "2>&-", "0<&- 1>&-", "0<&- 2>&-", "1>&- 2>&-", "0<&- 1>&- 2>&-"];
  test.each(combinations)("%s", async (closed) => {
    const { code, entries } = await stopByScript(host, `exec ${helper} --force --yes ${closed}`);
    expect(code).toBe(0);
    expect(results(entries)).toEqual(["requested", "killed", "stopped"]);
    await expectCalm(host);
  });

  test("all of them, at the front door of an operator", async () => {
    const { code, entries } = await stopByScript(
      host,
      `exec setpriv --reuid=olga --regid=olga --init-groups ${frontDoor} --stop 0<&- 1>&- 2>&-`,
    );
    expect(code).toBe(0);
    expect(results(entries)).toContain("stopped");
    await expectCalm(host);
  });
});

describe("a terminal that goes away", () => {
  test.each([
    ["at the question", [helper]],
    ["at the question of an operator", ["runuser", "-u", "olga", "--", frontDoor, "--stop"]],
  ])("%s: the stop goes on", async (_, argv) => {
    const known = await trailLength(host);
    const terminal = host.terminal(argv);
    await terminal.waitFor(question);
    await terminal.hangUp();
    await eventually(
      "the stop is over",
      async () => results(await lastEntries(host, known)).includes("stopped"),
      60_000,
    );
    await expectCalm(host);
  });

  test("before the helper starts: the stop is done", async () => {
    const script = `import os, pty, subprocess, sys
pid, master = pty.fork()
if pid == 0:
    import signal, time
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    time.sleep(2)
    code = subprocess.call(["${helper}", "--force"])
    open("/run/lab/code", "w").write(str(code))
    os._exit(0)
import time
time.sleep(1)
os.close(master)
os.waitpid(pid, 0)`;
    await host.sh(`rm -f /run/lab/code; python3 -c '${script}'`);
    expect(await host.sh("cat /run/lab/code")).toBe("0");
    await expectCalm(host);
  });
});

test("a terminal whose other side nobody reads costs its limit, and the stop is done", async () => {
  const script = `import os, pty, sys
pid, master = pty.fork()
if pid == 0:
    os.set_blocking(1, False)
    try:
        while True: os.write(1, b"x" * 1000)
    except BlockingIOError: pass
    os.set_blocking(1, True)
    os.execv("${helper}", ["${helper}", "--force"])
_, status = os.waitpid(pid, 0)
sys.exit(os.waitstatus_to_exitcode(status))`;
  const { code, entries } = await stopByScript(host, `exec python3 -c '${script}'`);
  expect(code).toBe(0);
  expect(results(entries)).toContain("stopped");
  await expectCalm(host);
});

describe("a terminal that is held with Ctrl-S in the grace shows no more, and the stop is done:", () => {
  const ctrlS = "\x13";

  test.each([
    ["the helper's", [helper], {}],
    ["an operator's, at the front door", [frontDoor, "--stop"], { user: "olga" }],
  ])("%s", async (_, argv, options) => {
    await startPayload(host, "3602", "stubborn", "exec");
    const { code, screen, entries } = await stopOnTerminal(
      host,
      argv,
      async (terminal) => {
        await terminal.waitFor(question);
        terminal.type("\r");
        await eventually("SIGTERM arrives", async () => {
          return (await readCounters(host)).some(({ payload, terms }) => payload === "3602" && terms > 0);
        });
        terminal.type(ctrlS);
      },
      options,
    );
    expect(code).toBe(0);
    expect(results(entries)).toContain("stopped");
    expect(screen).not.toMatch(/STOPPED/);
    await expectCalm(host);
  });
});

describe("an output on a disk that answered when it was opened, and hangs now,", () => {
  const place = "/run/lab/hanging-files";
  afterEach(() =>
    host.sh(`systemctl kill -s KILL lab-hanging-files.service; umount -l ${place}; rm -f /run/lab/hang; true`),
  );

  test.each([
    ["standard output", ">&8"],
    ["standard error", "2>&8"],
    ["both", ">&8 2>&8"],
    ["standard input", "<&8"],
  ])("%s: the stop is done all the same", async (_, redirection) => {
    await host.sh(`rm -f /run/lab/hang
      systemd-run --quiet --collect --unit=lab-hanging-files ${tempersOnHost}/hanging-files ${place} /run/lab/hang 100
      until grep -q " ${place} fuse" /proc/mounts; do sleep 0.1; done`);
    // Opened and closed once before, so that the kernel learns that a close asks nobody (as with other file systems).
    const open = `: <${place}/file; exec 8<>${place}/file; : >/run/lab/hang`;
    const script = `${open}; exec ${helper} --force --yes ${redirection}`;
    const { code, entries } = await stopByScript(host, script);
    expect(code).toBe(0);
    expect(results(entries)).toContain("stopped");
    await expectCalm(host);
  });
});
