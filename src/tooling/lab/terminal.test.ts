// SPDX-License-Identifier: Apache-2.0
// What is typed reaches the program as from a real terminal, and a hang-up is one. Tried with programs on this machine:
// on a lab host only the way there is longer.

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { LabTerminal, onTerminal, quoted } from "./terminal.ts";

function terminal(script: string): { screen: LabTerminal; folder: string } {
  const folder = mkdtempSync(join(tmpdir(), "lab-terminal-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const pidFile = join(folder, "pid");
  const command = onTerminal(["sh", "-c", script, "sh", folder], pidFile);
  const screen = new LabTerminal(["sh", "-c", command], async () => {
    process.kill(Number(readFileSync(pidFile, "utf8")), "SIGKILL");
  });
  return { screen, folder };
}

test("the program has a terminal on all three descriptors, with a size", async () => {
  const { screen } = terminal("test -t 0 && test -t 1 && test -t 2 && stty size");
  expect(await screen.exit).toBe(0);
  expect(screen.text()).toBe("40 120\r\n");
});

test("Enter is an empty line", async () => {
  const { screen } = terminal('printf "Go on? [Y/n] "; read answer; echo "got <$answer>"');
  await screen.waitFor(/\[Y\/n\] $/);
  screen.type("\r");
  expect(await screen.exit).toBe(0);
  expect(screen.text()).toContain("got <>");
});

test("Ctrl-C is SIGINT to the foreground", async () => {
  const { screen } = terminal('trap "exit 9" INT; echo ready; while :; do sleep 0.05; done');
  await screen.waitFor(/ready/);
  screen.type("\x03");
  expect(await screen.exit).toBe(9);
});

test("a hang-up is SIGHUP to the program", async () => {
  const { screen, folder } = terminal(
    'mkfifo "$1/told"; trap "echo hup >$1/told; exit" HUP; echo ready; while :; do sleep 0.05; done',
  );
  await screen.waitFor(/ready/);
  const told = readFile(join(folder, "told"), "utf8");
  await screen.hangUp();
  expect(await told).toBe("hup\n");
  expect(await screen.exit).toBe(137);
});

test("the exit code is the program's own, 128+n after a signal", async () => {
  expect(await terminal("exit 4").screen.exit).toBe(4);
  expect(await terminal("kill -TERM $$").screen.exit).toBe(143);
});

test("waiting for what will never appear ends with the program, and shows what did appear", async () => {
  const { screen } = terminal("echo something else");
  await expect(screen.waitFor(/question/)).rejects.toThrow(/the program has ended.*something else/s);
});

test.each(["", "a b", "it's", '$HOME `id` \\ "', "-n"])("the word %j stays one word, unchanged", async (word) => {
  const { screen } = terminal(`printf '<%s>' ${quoted(word)}`);
  await screen.exit;
  expect(screen.text()).toBe(`<${word}>`);
});
