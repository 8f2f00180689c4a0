// SPDX-License-Identifier: Apache-2.0
// Promise: a person at a terminal is asked once and can still say no; whatever else happens to the question, the stop
// goes on, and the trail says how consent came.

import { beforeEach, describe, expect, test } from "vitest";

import { countersOnHost, tempersOnHost } from "../../src/tooling/tempers/build-tempers.ts";
import { startPayload, startPayloads } from "../../src/tooling/tempers/payloads.ts";
import { clearHost, eventually, readCounters, running } from "./kit/facts.ts";
import { labHost } from "./kit/host.ts";
import { entryOf, helper, lastEntries, question, results, stop, stopOnTerminal, trailLength } from "./kit/stop.ts";

const host = await labHost();
const session = "601";

beforeEach(async () => {
  await clearHost(host);
  await startPayload(host, session, "polite", "session");
});

/** Answers the question by typing this. */
function answering(text: string) {
  return stopOnTerminal(host, [helper], async (terminal) => {
    await terminal.waitFor(question);
    terminal.type(text);
  });
}

describe("at a terminal", () => {
  test.each([["n\r"], ["no\r"], ["N\r"], [" No \r"]])("%j declines: exit 4, and everything goes on", async (answer) => {
    await startPayloads(host, [
      { name: "602", temper: "polite", place: "system-unit" },
      { name: "603", temper: "stubborn", place: "exec" },
    ]);
    const { code, screen, entries } = await answering(answer);
    expect(code).toBe(4);
    expect(screen).toMatch(/nothing was touched/i);
    expect(results(entries)).toEqual(["requested", "declined"]);
    expect(await running(host)).toEqual([session, "602", "603"]);
  });

  test.each([["\r"], ["y\r"], ["yes\r"], ["nope\r"], ["never mind\r"]])(
    "%j goes on: only n and no decline",
    async (answer) => {
      const { code, entries } = await answering(answer);
      expect(code).toBe(0);
      expect(entryOf(entries, "stopped").AI_TOOLS_CONSENT).toBe("prompt");
      expect(await running(host)).toEqual([]);
    },
  );

  test("the end of the input goes on", async () => {
    const { code, entries } = await answering("\x04");
    expect(code).toBe(0);
    expect(["prompt", "unreadable"]).toContain(entryOf(entries, "stopped").AI_TOOLS_CONSENT);
    expect(await running(host)).toEqual([]);
  });

  test("what was typed before the question is no answer to it", async () => {
    const early = `stty -echo; echo ready; read held; exec ${helper}`;
    const { code } = await stopOnTerminal(host, ["sh", "-c", early], async (terminal) => {
      await terminal.waitFor(/ready/);
      terminal.type("go\rn\r");
      await terminal.waitFor(question);
      terminal.type("\r");
    });
    expect(code).toBe(0);
    expect(await running(host)).toEqual([]);
  });

  test("--yes asks nothing", async () => {
    const { code, screen, entries } = await stopOnTerminal(host, [helper, "--yes"], async () => undefined);
    expect(code).toBe(0);
    expect(screen).not.toMatch(question);
    expect(entryOf(entries, "stopped").AI_TOOLS_CONSENT).toBe("flag");
  });

  test("the question is asked there also when standard output is a file", async () => {
    const { code, screen, entries } = await stopOnTerminal(
      host,
      ["sh", "-c", `exec ${helper} >/run/report 2>/dev/null`],
      async (terminal) => {
        await terminal.waitFor(question);
        terminal.type("\r");
      },
    );
    expect(code).toBe(0);
    expect(screen).toMatch(question);
    expect(entryOf(entries, "stopped").AI_TOOLS_CONSENT).toBe("fallback-prompt");
    expect(await host.sh("cat /run/report")).toMatch(/STOPPED/);
  });

  test("a process of the account on the same terminal could answer: the question is not asked", async () => {
    const neighbour = `${tempersOnHost}/stubborn ${countersOnHost}/604 60`;
    const asAccount = "setpriv --reuid=ai-tools --regid=ai-tools --clear-groups";
    const isThere = `until [ -s ${countersOnHost}/604 ]; do sleep 0.01; done`;
    const shared = `${asAccount} ${neighbour} & ${isThere}; exec ${helper}`;
    const { code, screen, entries } = await stopOnTerminal(host, ["sh", "-c", shared], async (terminal) => {
      await eventually("SIGTERM arrives", async () =>
        (await readCounters(host)).some(({ payload, terms }) => payload === "604" && terms > 0),
      );
      // Ctrl-C, which that process could have typed as well.
      terminal.type("\x03");
    });
    expect(code).toBe(0);
    expect(screen).not.toMatch(question);
    expect(entryOf(entries, "stopped").AI_TOOLS_CONSENT).toBe("shared-terminal");
    expect(await running(host)).toEqual([]);
  });

  test("a terminal that goes away during the question does not end the stop", async () => {
    const known = await trailLength(host);
    const terminal = host.terminal([helper]);
    await terminal.waitFor(question);
    await terminal.hangUp();
    await eventually("the stop is over", async () => results(await lastEntries(host, known)).includes("stopped"));
    expect(["prompt", "unreadable"]).toContain(entryOf(await lastEntries(host, known), "stopped").AI_TOOLS_CONSENT);
    expect(await running(host)).toEqual([]);
  });

  test("a question that nobody answers says that it goes on by itself, and does after 60 s", async () => {
    const { code, screen, entries } = await stopOnTerminal(host, [helper], async (terminal) => {
      await terminal.waitFor(/goes on by itself after 60 s/);
      expect(await running(host)).toEqual([session]);
    });
    expect(code).toBe(0);
    expect(screen).toMatch(/going on/i);
    expect(entryOf(entries, "stopped").AI_TOOLS_CONSENT).toBe("prompt-timeout");
    expect(await running(host)).toEqual([]);
  });
});

describe("without a terminal", () => {
  test("a redirected input is never read", async () => {
    const known = await trailLength(host);
    const { code } = await host.run([helper], { input: "n\nno\n" });
    expect(code).toBe(0);
    expect(entryOf(await lastEntries(host, known), "stopped").AI_TOOLS_CONSENT).toBe("no-tty");
    expect(await running(host)).toEqual([]);
  });

  test("the stop goes on without asking", async () => {
    const { code, stdout, stderr, entries } = await stop(host);
    expect(code).toBe(0);
    expect(stdout + stderr).not.toMatch(question);
    expect(entryOf(entries, "stopped").AI_TOOLS_CONSENT).toBe("no-tty");
  });

  test("no other terminal is looked for behind a redirected input", async () => {
    const { code, screen, entries } = await stopOnTerminal(
      host,
      ["sh", "-c", `exec ${helper} </dev/null`],
      async () => undefined,
    );
    expect(code).toBe(0);
    expect(screen).not.toMatch(question);
    expect(entryOf(entries, "stopped").AI_TOOLS_CONSENT).toBe("no-tty");
  });
});
