// SPDX-License-Identifier: Apache-2.0
// Promise: a person can take a stop back until the kill begins, and whatever else happens to the helper's terminal does
// not abandon it half-way.

import { beforeEach, describe, expect, test } from "vitest";

import type { LabTerminal } from "../../src/tooling/lab/host.ts";
import { startPayloads } from "../../src/tooling/tempers/payloads.ts";
import { clearHost, eventually, readCounters, running } from "./kit/facts.ts";
import { labHost } from "./kit/host.ts";
import {
  entryOf,
  frontDoor,
  helper,
  lastEntries,
  question,
  results,
  stop,
  stopOnTerminal,
  trailLength,
} from "./kit/stop.ts";

const host = await labHost();
const deaf = "701";
const stubborn = "702";

beforeEach(async () => {
  await clearHost(host);
  await startPayloads(host, [
    { name: deaf, temper: "deaf", place: "session" },
    { name: stubborn, temper: "stubborn", place: "exec" },
  ]);
});

/** Until the grace has begun: the stubborn one has got its SIGTERM. */
function graceHasBegun(): Promise<void> {
  return eventually("SIGTERM arrives", async () =>
    (await readCounters(host)).some(({ payload, terms }) => payload === stubborn && terms > 0),
  );
}

function signalHelper(...signals: string[]): Promise<string> {
  return host.sh(signals.map((signal) => `pkill -${signal} -o -x ai-tools-stop`).join(" && "));
}

describe("at the question", () => {
  test.each([
    ["Ctrl-C", 130, (type: (text: string) => void) => type("\x03")],
    ["SIGINT", 130, () => signalHelper("INT")],
    ["SIGTERM", 143, () => signalHelper("TERM")],
  ])("%s ends the run with %i and nothing touched", async (_, expected, interrupt) => {
    const { code, entries } = await stopOnTerminal(host, [helper], async (terminal) => {
      await terminal.waitFor(question);
      await interrupt((text) => terminal.type(text));
    });
    expect(code).toBe(expected);
    expect(results(entries)).toEqual(["requested", "interrupted"]);
    expect(await running(host)).toEqual([deaf, stubborn]);
    expect((await readCounters(host)).map(({ terms }) => terms)).toEqual([0, 0]);
  });
});

describe("during the grace", () => {
  test.each([
    ["Ctrl-C", 130, (type: (text: string) => void) => type("\x03")],
    ["SIGINT", 130, () => signalHelper("INT")],
    ["SIGTERM", 143, () => signalHelper("TERM")],
  ])("%s ends the run with %i, recorded as interrupted, and nothing was killed", async (_, expected, interrupt) => {
    const { code, screen, entries } = await stopOnTerminal(host, [helper, "--yes"], async (terminal) => {
      await graceHasBegun();
      await interrupt((text) => terminal.type(text));
    });
    expect(code).toBe(expected);
    expect(results(entries)).toEqual(["requested", "interrupted"]);
    expect(screen).toMatch(/run .*again/i);
    expect(await running(host)).toEqual([deaf, stubborn]);

    // Running again is the remedy.
    expect((await stop(host, "--force", "--yes")).code).toBe(0);
    expect(await running(host)).toEqual([]);
  });

  test("no other signal ends it", async () => {
    const known = await trailLength(host);
    const stopping = stop(host, "--yes");
    await graceHasBegun();
    await signalHelper(
      "HUP",
      "QUIT",
      "PIPE",
      "USR1",
      "USR2",
      "ALRM",
      "VTALRM",
      "PROF",
      "XCPU",
      "XFSZ",
      "TSTP",
      "TTIN",
      "TTOU",
    );
    expect((await stopping).code).toBe(0);
    expect(results(await lastEntries(host, known))).toContain("stopped");
    expect(await running(host)).toEqual([]);
  });

  test("a terminal that goes away does not end it", async () => {
    const known = await trailLength(host);
    const terminal = host.terminal([helper, "--yes"]);
    await graceHasBegun();
    await terminal.hangUp();
    await eventually(
      "the stop is over",
      async () => results(await lastEntries(host, known)).includes("stopped"),
      30_000,
    );
    expect(await running(host)).toEqual([]);
  });

  test("a helper that is killed leaves nothing behind that hinders the next stop or the next session", async () => {
    const known = await trailLength(host);
    const killed = stop(host, "--yes");
    await graceHasBegun();
    await signalHelper("KILL");
    expect((await killed).code).toBe(137);
    await eventually("the recorder tells of it", async () =>
      results(await lastEntries(host, known)).includes("interrupted"),
    );
    const slice = `/sys/fs/cgroup/user.slice/user-$(id -u ai-tools).slice`;
    expect(await host.sh(`cat ${slice}/cgroup.freeze ${slice}/cgroup.max.descendants`)).toBe("0\nmax\n");

    const next = await stop(host, "--force", "--yes");
    expect(next.code).toBe(0);
    expect(entryOf(next.entries, "stopped")).toBeDefined();
    expect(await running(host)).toEqual([]);
    await startPayloads(host, [{ name: "703", temper: "polite", place: "session" }]);
  });
});

describe("through the front door and sudo, on a terminal that they share with the helper,", () => {
  /** An operator's stop, while the operator does this at the question. */
  const stopByOlga = (act: (terminal: LabTerminal) => Promise<void>) =>
    stopOnTerminal(
      host,
      [frontDoor, "--stop"],
      async (terminal) => {
        await terminal.waitFor(question);
        await act(terminal);
      },
      { user: "olga" },
    );

  test("Ctrl-C at the question reaches the helper, and the operator gets its code", async () => {
    const { code, entries } = await stopByOlga(async (terminal) => terminal.type("\x03"));
    expect(code).toBe(130);
    expect(results(entries)).toEqual(["requested", "interrupted"]);
    expect(await running(host)).toEqual([deaf, stubborn]);
  });

  test("Ctrl-C in the grace does as well, and nothing was killed", async () => {
    const { code, entries, screen } = await stopByOlga(async (terminal) => {
      terminal.type("\r");
      await graceHasBegun();
      terminal.type("\x03");
    });
    expect(code).toBe(130);
    expect(results(entries)).toEqual(["requested", "interrupted"]);
    expect(screen).toMatch(/run .*again/i);
    expect(await running(host)).toEqual([deaf, stubborn]);
  });

  // Whoever of the three were suspended would never come to an end: the session on the terminal waits for all of them.
  test.each([
    ["Ctrl-\\", "\x1c"],
    ["Ctrl-Z", "\x1a"],
  ])("%s neither ends nor suspends anything, at the question and in the grace", async (_, key) => {
    const { code, entries } = await stopByOlga(async (terminal) => {
      terminal.type(key);
      terminal.type("\r");
      await graceHasBegun();
      terminal.type(key);
    });
    expect(code).toBe(0);
    expect(results(entries)).toEqual(expect.arrayContaining(["requested", "killed", "stray-ended", "stopped"]));
    expect(results(entries)).not.toContain("interrupted");
    expect(entryOf(entries, "stopped").AI_TOOLS_CONSENT).toBe("prompt");
    expect(await running(host)).toEqual([]);
  });
});
