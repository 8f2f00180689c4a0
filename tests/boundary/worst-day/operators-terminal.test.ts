// SPDX-License-Identifier: Apache-2.0
// Promise: a session that sits on the operator's own terminal answers nothing for the operator and interrupts nothing,
// whatever it types there.

import { afterAll, beforeEach, expect, test } from "vitest";

import { countersOnHost, tempersOnHost } from "../../../src/tooling/tempers/build-tempers.ts";
import { bystanders, expectAftermath, freshHost } from "../kit/aftermath.ts";
import { accountProcesses, clearHost, countersOf, eventually, running } from "../kit/facts.ts";
import { labHost } from "../kit/host.ts";
import { entryOf, frontDoor, helper, lastEntries, question, results, trailLength } from "../kit/stop.ts";

const host = await labHost();
/** Where the kernel has no such switch, everybody may type. */
const mayType = (await host.sh("cat /proc/sys/dev/tty/legacy_tiocsti 2>/dev/null || echo 1")).trim() === "1";
const asOlga = "setpriv --reuid=olga --regid=olga --init-groups";

beforeEach(() => freshHost(host));
afterAll(() => clearHost(host));

/** TIOCSTI, where the kernel lets it; elsewhere the same keys come once from outside, when the stop runs. */
const who = mayType ? "while the session types" : "while the session's keys are typed from outside";

// What a session does that has the caller's terminal instead of one of its own. Its keys reach the shell before the
// command runs, so the shell ignores them, and the command inherits that: that the front door and sudo ignore them by
// themselves is told by interruption.test.ts.
test.each([
  ["the helper", helper, "shared-terminal"],
  ["the helper with --force", `${helper} --force`, "shared-terminal"],
  ["the helper with --yes", `${helper} --yes`, "flag"],
  ["the helper with its input redirected", `${helper} </dev/null`, "no-tty"],
  ["an operator at the front door", `${asOlga} ${frontDoor} --stop`, "shared-terminal"],
  ["an operator at the front door with --yes", `${asOlga} ${frontDoor} --stop --yes`, "no-tty"],
])(`%s: the stop goes on, ${who}`, async (_, command, consent) => {
  const known = await trailLength(host);
  const session = `setpriv --reuid=ai-tools --regid=ai-tools --clear-groups ${tempersOnHost}/typing ${countersOnHost}/101 60`;
  const typed = `until [ -e /run/typed ]; do sleep 0.05; done`;
  await host.sh("rm -f /run/typed");
  const terminal = host.terminal(["sh", "-c", `trap "" INT QUIT TSTP; ${session} & ${typed}; exec ${command}`]);
  await eventually("the session works", async () => (await running(host)).includes("101"));
  const typedKeys = (await countersOf(host, "101"))[0]?.signs ?? 0;
  expect(typedKeys > 0).toBe(mayType);
  await host.sh("touch /run/typed");
  if (!mayType) {
    await eventually("the stop runs", async () => (await lastEntries(host, known)).length > 0);
    terminal.type("n\r\x03\x1c\x1a");
  }
  const code = await terminal.exit;
  const entries = await lastEntries(host, known);
  expect(code, terminal.text()).toBe(0);
  expect(terminal.text()).not.toMatch(question);
  expect(results(entries)).not.toContain("declined");
  expect(entryOf(entries, "stopped").AI_TOOLS_CONSENT).toBe(consent);
  expect(await running(host)).toEqual([...bystanders]);
  expect(await accountProcesses(host)).toEqual([]);
  await expectAftermath(host);
});
