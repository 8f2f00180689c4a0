// SPDX-License-Identifier: Apache-2.0
// The question: only `n` and `no` decline, everything else goes on, and nobody but the operator can answer or interrupt.

import { describe, expect, test } from "vitest";
import type { Census } from "./census.ts";
import { askConsent, ignoreSharedKeyboard } from "./consent.ts";
import type { StopRequest } from "./grammar.ts";
import { HandMadeHost } from "./hand-made-host.fixture.ts";
import { censusOf, found, statText } from "./hand-made-processes.fixture.ts";
import { EACCES, SIGINT, SIGTERM } from "./kernel.ts";
import { limits } from "./limits.ts";

const plain: StopRequest = { dryRun: false, yes: false, force: false, json: false };
/** `st_rdev` of /dev/pts/3, as `tty_nr` has it. */
const device = 34_819;

interface Scene {
  request?: Partial<StopRequest>;
  census?: Census;
  tableShown?: boolean;
}

function atTerminal(): HandMadeHost {
  const host = new HandMadeHost();
  host.terminals = [0, 1, 2];
  host.device = device;
  host.files.set("/proc/self/stat", statText({ pid: host.pid, terminal: device }));
  return host;
}

function ask(host: HandMadeHost, scene: Scene = {}) {
  const census = scene.census ?? censusOf([found({ pid: 50 })]);
  return askConsent(host, { ...plain, ...scene.request }, census, scene.tableShown ?? true);
}

/** Types so much time after the question came. */
function type(host: HandMadeHost, text: string | undefined, afterMs = 100): HandMadeHost {
  host.keys.push({ atMs: host.clockMs + afterMs, text });
  return host;
}

const asked = (host: HandMadeHost) => host.printed.out + host.printed.terminal + host.printed.err;

describe("an answer", () => {
  test.each(["n\n", "no\n", "N\n", "NO\n", "No\n", "  n \n", "n\r\n", "n\r", "no\r", "no\nyes\n", "n\ry\r"])(
    "%j declines",
    async (text) => {
      expect(await ask(type(atTerminal(), text))).toEqual({ kind: "declined" });
    },
  );

  test.each([
    "\n",
    "y\n",
    "yes\n",
    "nope\n",
    "not now\n",
    "nn\n",
    "n.\n",
    "never\n",
    "\x1b[D\n",
    "0\n",
    "\xff\n",
    "\nn\n",
    "y\nn\n",
    "\r",
    "y\r",
    "\rn\r",
    "y\rn\r",
  ])("%j goes on", async (text) => {
    expect(await ask(type(atTerminal(), text))).toEqual({ kind: "go on", consent: "prompt", asked: true });
  });

  test("that is typed letter by letter is read as a whole line", async () => {
    const host = atTerminal();
    type(type(type(host, "n", 100), "o", 900), "\n", 2_000);
    expect(await ask(host)).toEqual({ kind: "declined" });
  });

  test("that never comes goes on by itself after its limit, and says so", async () => {
    const host = atTerminal();
    const startMs = host.clockMs;
    expect(await ask(host)).toEqual({ kind: "go on", consent: "prompt-timeout", asked: true });
    expect(host.clockMs - startMs).toBeGreaterThanOrEqual(limits.questionMs);
    expect(host.clockMs - startMs).toBeLessThanOrEqual(limits.questionMs + limits.keyboardPollMs);
    expect(host.printed.out).toContain("going on");
  });

  test("that is begun and never ended goes on as well", async () => {
    expect(await ask(type(atTerminal(), "n"))).toMatchObject({ kind: "go on", consent: "prompt-timeout" });
  });

  test("of a flood that has no line end goes on after its limit", async () => {
    const host = atTerminal();
    host.typed = () => {
      host.clockMs += 1;
      return "x";
    };
    expect(await ask(host)).toMatchObject({ kind: "go on", consent: "prompt-timeout" });
  });

  test("end of input goes on as unreadable", async () => {
    expect(await ask(type(atTerminal(), undefined))).toEqual({ kind: "go on", consent: "unreadable", asked: true });
  });

  test.each(["n", "no", " No "])("%j and then end of input declines", async (text) => {
    expect(await ask(type(type(atTerminal(), text), undefined, 900))).toEqual({ kind: "declined" });
  });

  test.each(["y", "nope", ""])("%j and then end of input goes on as unreadable", async (text) => {
    expect(await ask(type(type(atTerminal(), text), undefined, 900))).toEqual({
      kind: "go on",
      consent: "unreadable",
      asked: true,
    });
  });
});

describe("the question", () => {
  test("stands on standard output, says what Enter does and that it goes on by itself", async () => {
    const host = type(atTerminal(), "\n");
    await ask(host);
    expect(host.printed.out).toMatch(/\[Y\/n\].*by itself after 60 s/);
  });

  test("goes to the terminal where standard output is not one, and is recorded as such", async () => {
    const host = type(atTerminal(), "\n");
    host.terminals = [0];
    expect(await ask(host)).toEqual({ kind: "go on", consent: "fallback-prompt", asked: true });
    expect([host.printed.out, host.printed.terminal !== ""]).toEqual(["", true]);
  });

  test("stays out of a JSON document", async () => {
    const host = type(atTerminal(), "n\n");
    expect(await ask(host, { request: { json: true } })).toEqual({ kind: "declined" });
    expect(host.printed.out).toBe("");
  });

  test("is not answered by what was typed before it", async () => {
    const host = atTerminal();
    host.keys.push({ atMs: host.clockMs - 5, text: "n\n" });
    expect(await ask(type(host, "\n"))).toMatchObject({ kind: "go on", consent: "prompt" });
  });
});

describe("nobody is asked", () => {
  test("with --yes", async () => {
    const host = type(atTerminal(), "n\n");
    expect(await ask(host, { request: { yes: true } })).toEqual({ kind: "go on", consent: "flag", asked: false });
    expect(asked(host)).toBe("");
  });

  test("where standard input is no terminal, and a redirected input is never read", async () => {
    const host = atTerminal();
    host.terminals = [1, 2];
    host.typed = () => expect.unreachable("a redirected input was read");
    expect(await ask(host)).toEqual({ kind: "go on", consent: "no-tty", asked: false });
    expect(asked(host)).toBe("");
  });

  test("where the table was not taken", async () => {
    const host = type(atTerminal(), "n\n");
    expect(await ask(host, { tableShown: false })).toEqual({ kind: "go on", consent: "unreadable", asked: false });
    expect(asked(host)).toBe("");
  });

  test("where the terminal could not be emptied: what was typed before could answer", async () => {
    const host = type(atTerminal(), "n\n");
    host.emptiesTerminal = false;
    expect(await ask(host)).toEqual({ kind: "go on", consent: "unreadable", asked: false });
    expect(asked(host)).toBe("");
  });

  test("for long where the question is not taken", async () => {
    const host = type(atTerminal(), "n\n");
    host.takesOutput = false;
    expect(await ask(host)).toEqual({ kind: "go on", consent: "unreadable", asked: false });
  });
});

describe("a terminal that a process to be stopped has as well", () => {
  const sharing = censusOf([found({ pid: 50 }), found({ pid: 51, terminal: device })]);

  test("asks nobody and takes no Ctrl-C: that process could answer", async () => {
    const host = type(atTerminal(), "n\n");
    expect(await ask(host, { census: sharing })).toEqual({ kind: "go on", consent: "shared-terminal", asked: false });
    expect(host.ignored).toEqual([SIGINT]);
    expect(asked(host)).toBe("");
  });

  test("counts for a process that is only held", async () => {
    const census = censusOf([], { held: [found({ pid: 51, terminal: device })] });
    expect(await ask(atTerminal(), { census })).toMatchObject({ consent: "shared-terminal" });
  });

  test("counts as the helper's own controlling terminal, not only as descriptor 0's", async () => {
    const host = type(atTerminal(), "n\n");
    host.device = 34_900;
    expect(await ask(host, { census: sharing })).toMatchObject({ consent: "shared-terminal" });
  });

  test("a Ctrl-C that came already is forgotten, another's request to end is not", async () => {
    for (const [signal, noted] of [
      [SIGINT, 0],
      [SIGTERM, SIGTERM],
    ] as const) {
      const host = atTerminal();
      host.signalArrived = { signal, arrivesMs: 0 };
      expect(ignoreSharedKeyboard(host, sharing)).toBe(true);
      expect(host.interruption()).toBe(noted);
    }
  });

  test("that nobody shares keeps its Ctrl-C", () => {
    const host = atTerminal();
    host.signalArrived = { signal: SIGINT, arrivesMs: 0 };
    expect(ignoreSharedKeyboard(host, censusOf([found({ pid: 50 })]))).toBe(false);
    expect(host.interruption()).toBe(SIGINT);
  });

  test("counts as shared where the census was cut off: whoever has it may be among the rest", () => {
    expect(ignoreSharedKeyboard(atTerminal(), censusOf([], { complete: false }))).toBe(true);
  });

  test("another terminal, or none, is not shared", async () => {
    const census = censusOf([found({ pid: 50, terminal: 0 }), found({ pid: 51, terminal: device + 1 })]);
    const host = type(atTerminal(), "n\n");
    expect(await ask(host, { census })).toEqual({ kind: "declined" });
    expect(host.ignored).toEqual([]);
  });

  test("no terminal of either is not a shared one", async () => {
    const host = type(atTerminal(), "n\n");
    host.device = 0;
    host.files.set("/proc/self/stat", EACCES);
    expect(await ask(host)).toEqual({ kind: "declined" });
  });

  test("a process whose terminal is unknown may have this one", async () => {
    const host = type(atTerminal(), "n\n");
    const census = censusOf([{ ...found({ pid: 51 }), terminal: undefined }]);
    expect(await ask(host, { census })).toMatchObject({ kind: "go on", consent: "shared-terminal" });
  });

  test.each([
    ["--yes", { yes: true }, [0, 1, 2]],
    ["a redirected standard input", {}, [1, 2]],
  ] as const)(
    "INT is ignored on a shared terminal even where nobody is asked: %s",
    async (_name, request, terminals) => {
      const host = atTerminal();
      host.terminals = [...terminals];
      expect(await ask(host, { request, census: sharing })).toMatchObject({ kind: "go on" });
      expect(host.ignored).toEqual([SIGINT]);
    },
  );
});

describe("an interruption at the question", () => {
  test.each([SIGINT, SIGTERM])("by signal %i ends it, and no later answer counts", async (signal) => {
    const host = type(atTerminal(), "\n", 10_000);
    host.signalArrived = { signal, arrivesMs: host.clockMs + 1_000 };
    expect(await ask(host)).toEqual({ kind: "interrupted" });
    expect(host.clockMs).toBeLessThan(1_000_000 + 2_000);
  });

  test("is not looked at where nobody is asked", async () => {
    const host = atTerminal();
    host.signalArrived = { signal: SIGINT, arrivesMs: 0 };
    expect(await ask(host, { request: { yes: true } })).toMatchObject({ kind: "go on" });
  });
});
