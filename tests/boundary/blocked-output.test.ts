// SPDX-License-Identifier: Apache-2.0
// Promise: nobody has to read what a stop says for it to happen: a full pipe, a closed one, a held terminal or a socket
// costs at most its own limit.

import { beforeEach, describe, expect, test } from "vitest";

import { startPayload } from "../../src/tooling/tempers/payloads.ts";
import { clearHost, running } from "./kit/facts.ts";
import { labHost } from "./kit/host.ts";
import { entryOf, helper, stopByScript, stopOnTerminal } from "./kit/stop.ts";

const host = await labHost();

beforeEach(async () => {
  await clearHost(host);
  await startPayload(host, "1601", "deaf", "session");
});

/** A program that runs the helper with these two lines of Python before and after; `out` is what becomes its output. */
function python(open: string, after = "pass"): string {
  return `cat >/run/runs.py <<'END'
import fcntl, os, socket, subprocess, sys
${open}
code = subprocess.call(["${helper}", "--force", "--yes"], stdin=subprocess.DEVNULL, stdout=out, stderr=out)
${after}
sys.exit(code)
END
exec python3 /run/runs.py`;
}

const fullPipe = `read, out = os.pipe()
fcntl.fcntl(out, 1031, 4096)
os.write(out, b"x" * 4096)`;

describe("the stop happens and ends with 0 when its output is", () => {
  test.each([
    ["a full pipe that nobody reads", python(fullPipe)],
    ["a pipe that is closed at its other end", python("read, out = os.pipe()\nos.close(read)")],
    ["a socket that nobody reads", python("out, other = socket.socketpair()")],
    [
      "a full socket that nobody reads",
      python(
        "out, other = socket.socketpair()\nout.setblocking(False)\ntry:\n    while True: out.send(b'x' * 4096)\nexcept BlockingIOError: pass\nout.setblocking(True)",
      ),
    ],
    ["a full device", `exec ${helper} --force --yes >/dev/full 2>&1`],
  ])("%s", async (_, script) => {
    const { code, entries } = await stopByScript(host, script);
    expect(code).toBe(0);
    expect(entryOf(entries, "stopped").AI_TOOLS_CONSENT).toBe("flag");
    expect(await running(host)).toEqual([]);
  });

  test("a terminal that is held with Ctrl-S", async () => {
    const { code, entries } = await stopOnTerminal(
      host,
      ["sh", "-c", `stty ixon -echo; echo ready; read go; exec ${helper} --force`],
      async (terminal) => {
        await terminal.waitFor(/ready/);
        terminal.type("go\r\x13");
      },
    );
    expect(code).toBe(0);
    expect(entryOf(entries, "stopped").AI_TOOLS_CONSENT).toBe("unreadable");
    expect(await running(host)).toEqual([]);
  });

  test("the terminal of a shell in whose background it runs, which stops whoever writes", async () => {
    const script = `stty tostop; set -m; ${helper} --force --yes & wait $!; echo code $?`;
    const { screen, entries } = await stopOnTerminal(host, ["bash", "-c", script], async () => undefined);
    expect(screen).toMatch(/code 0/);
    expect(entryOf(entries, "stopped")).toBeDefined();
    expect(await running(host)).toEqual([]);
  });
});

test("what a socket's reader gets is the whole report", async () => {
  const after = `out.close()
text = b""
while True:
    piece = other.recv(65536)
    if not piece: break
    text += piece
sys.stdout.write(text.decode())`;
  const { code, stdout } = await stopByScript(host, python("out, other = socket.socketpair()", after));
  expect(code).toBe(0);
  expect(stdout).toMatch(/KILLED +ai-tools-claude-code-1601\.service[\s\S]*STOPPED/);
});

test("a file that takes output and errors together gets both, one after the other", async () => {
  const { code } = await stopByScript(
    host,
    `echo before >/run/both; ${helper} --force --yes >>/run/both 2>&1; code=$?; echo after >>/run/both; exit $code`,
  );
  expect(code).toBe(0);
  expect(await host.sh("cat /run/both")).toMatch(/^before\n[\s\S]*STOPPED[\s\S]*\nafter\n$/);
});
