// SPDX-License-Identifier: Apache-2.0
// The recorder: each sink on its own, every loss told, and a helper that died written down as interrupted.

import { describe, expect, test } from "vitest";
import { HandMadeHost, type Program } from "./hand-made-host.fixture.ts";
import { stat } from "./hand-made-processes.fixture.ts";
import { EAGAIN, EIO, ENOENT, EROFS } from "./kernel.ts";
import { limits } from "./limits.ts";
import { recordEvents } from "./recorder.ts";

const log = "/var/log/ai-tools/stop.log";
const socket = "/run/systemd/journal/socket";
const passwd = "root:x:0:0::/root:/bin/sh\nai-tools:x:990:990::/var/lib/ai-tools:/bin/false\n";

function event(result: string, message = `it was ${result}`): string {
  return `${JSON.stringify({ time: "2026-01-02T03:04:05.000Z", message, AI_TOOLS_RESULT: result, AI_TOOLS_RUN: "r1" })}\n`;
}

/** A recorder that is given these texts, a poll apart, and then the end of its input. */
async function record(texts: readonly string[], changes: (host: HandMadeHost) => void = () => undefined) {
  const host = new HandMadeHost();
  host.stats.set(socket, stat({ kind: "other" }));
  host.keys = texts.map((text, index) => ({ atMs: host.clockMs + 5 * index, text }));
  host.keys.push({ atMs: host.clockMs + 5 * texts.length, text: undefined });
  changes(host);
  const code = await recordEvents(host);
  const logged = String(host.files.get(log) ?? "").trimEnd();
  return {
    host,
    code,
    logged: logged === "" ? [] : logged.split("\n").map((line) => JSON.parse(line)),
    journal: host.children.map(({ sent }) => sent),
    told: host.printed.out.trimEnd().split("\n"),
  };
}

const results = (events: readonly { AI_TOOLS_RESULT: string }[]) => events.map((one) => one.AI_TOOLS_RESULT);
const logger = (program: Program) => (host: HandMadeHost) => {
  host.program = () => program;
};

describe("both sinks have every event", () => {
  test("as it was sent, in its order, in the log and in the journal", async () => {
    const { code, logged, journal, told, host } = await record([
      event("requested"),
      event("stopped"),
      "journal\nend\n",
    ]);
    expect(results(logged)).toEqual(["requested", "stopped"]);
    expect(journal).toEqual([
      "MESSAGE=it was requested\nSYSLOG_IDENTIFIER=ai-tools-stop\nPRIORITY=5\nAI_TOOLS_TIME=2026-01-02T03:04:05.000Z\nAI_TOOLS_RESULT=requested\nAI_TOOLS_RUN=r1\n",
      "MESSAGE=it was stopped\nSYSLOG_IDENTIFIER=ai-tools-stop\nPRIORITY=5\nAI_TOOLS_TIME=2026-01-02T03:04:05.000Z\nAI_TOOLS_RESULT=stopped\nAI_TOOLS_RUN=r1\n",
    ]);
    expect(host.commandLines).toEqual(["/usr/bin/logger --journald", "/usr/bin/logger --journald"]);
    expect([code, told]).toEqual([0, ["done"]]);
  });

  test("wherever the pipe cut the lines", async () => {
    const whole = `${event("requested")}${event("stopped")}end\n`;
    const { logged, told } = await record([...whole].map((letter) => letter));
    expect(results(logged)).toEqual(["requested", "stopped"]);
    expect(told).toEqual(["done"]);
  });

  test("what is alive is urgent in the journal", async () => {
    const { journal } = await record([
      event("alive"),
      event("incomplete"),
      event("reappeared"),
      event("refused"),
      "end\n",
    ]);
    expect(journal.map((entry) => /PRIORITY=(\d)/.exec(entry)?.[1])).toEqual(["2", "2", "2", "3"]);
  });

  test("no program runs before the helper says so: the log has the event long before", async () => {
    const host = new HandMadeHost();
    host.stats.set(socket, stat({ kind: "other" }));
    host.keys = [
      { atMs: 0, text: event("requested") },
      { atMs: host.clockMs + 60_000, text: "journal\n" },
      { atMs: host.clockMs + 60_001, text: "end\n" },
      { atMs: host.clockMs + 60_002, text: undefined },
    ];
    const startedAt: number[] = [];
    const start = host.startProgram.bind(host);
    host.startProgram = (argv) => {
      startedAt.push(host.clockMs - 1_000_000);
      return start(argv);
    };
    const loggedAt: number[] = [];
    const append = host.appendFile.bind(host);
    host.appendFile = (path, text) => {
      loggedAt.push(host.clockMs - 1_000_000);
      return append(path, text);
    };
    await recordEvents(host);
    expect(loggedAt).toEqual([0]);
    expect(startedAt).toHaveLength(1);
    expect(startedAt[0]).toBeGreaterThanOrEqual(60_000);
  });
});

describe("one sink fails alone", () => {
  test("a log that refuses is told, and the journal has everything", async () => {
    const refuse = (host: HandMadeHost) => void host.writeAnswers.set(log, EROFS);
    const { code, journal, told } = await record([event("requested"), event("stopped"), "end\n"], refuse);
    expect(journal).toHaveLength(2);
    expect(told).toEqual([`${log} could not be written (errno 30)`, "done"]);
    expect(code).toBe(1);
  });

  test("a log that refuses once is told, though it works again", async () => {
    let refused = false;
    const refuseOnce = () => {
      const errno = refused ? 0 : 28;
      refused = true;
      return errno;
    };
    const { logged, told } = await record(
      [event("requested"), event("stopped"), "end\n"],
      (host) => void host.writeAnswers.set(log, refuseOnce),
    );
    expect(results(logged)).toEqual(["stopped"]);
    expect(told[0]).toContain("errno 28");
  });

  test.each<[string, (host: HandMadeHost) => void, string]>([
    ["absent", (host) => void host.stats.set(socket, ENOENT), "journald does not run"],
    ["without a logger", logger({ errno: EAGAIN }), "logger did not start (errno 11)"],
    ["failing", logger({ code: 1 }), "logger failed (exit code 1)"],
    ["hung", logger("hangs"), "logger hung"],
  ])("a journal that is %s is told, and the log has everything", async (_name, changes, word) => {
    const { code, logged, told } = await record([event("requested"), event("stopped"), "end\n"], changes);
    expect(results(logged)).toEqual(["requested", "stopped"]);
    expect(told).toHaveLength(2);
    expect(told[0]).toContain(word);
    expect([code, told[1]]).toEqual([1, "done"]);
  });

  test("a hung logger is ended after its limit, and no other is started after it", async () => {
    const many = Array.from({ length: 50 }, () => event("killed"));
    const { host, logged } = await record([...many, "journal\n", event("stopped"), "end\n"], logger("hangs"));
    expect(host.children).toHaveLength(1);
    expect(host.children[0]?.abandoned).toBe(true);
    expect(host.clockMs).toBeLessThan(1_000_000 + limits.reportMs + 1_000);
    expect(logged).toHaveLength(51);
  });

  test("both lost are both told", async () => {
    const { told } = await record([event("requested"), "end\n"], (host) => {
      host.writeAnswers.set(log, EROFS);
      host.stats.set(socket, ENOENT);
    });
    expect(told).toEqual([expect.stringContaining(log), expect.stringContaining("journal"), "done"]);
  });
});

describe("a helper that ends without a last word", () => {
  test("is recorded as interrupted in both sinks, with the run it belongs to", async () => {
    const { logged, journal } = await record([event("requested"), event("killed")]);
    expect(results(logged)).toEqual(["requested", "killed", "interrupted"]);
    expect(logged[2]).toMatchObject({ AI_TOOLS_RUN: "r1", message: expect.stringContaining("run the stop again") });
    expect(journal.at(-1)).toContain("AI_TOOLS_RESULT=interrupted");
  });

  test("in the middle of an event loses that one and no other", async () => {
    const { logged } = await record([event("requested"), event("killed").slice(0, 40)]);
    expect(results(logged)).toEqual(["requested", "interrupted"]);
  });

  test("before any event leaves nothing", async () => {
    const { logged, host } = await record([]);
    expect([logged, host.printed.out]).toEqual([[], ""]);
  });

  test("after its verdict is not said to have had none", async () => {
    const verdict = `${JSON.stringify({ time: "t", message: "m", AI_TOOLS_RESULT: "stopped", AI_TOOLS_VERDICT: "stopped" })}\n`;
    const { logged } = await record([event("requested"), verdict]);
    expect(results(logged)).toEqual(["requested", "stopped", "interrupted"]);
    expect(logged[2].message).not.toContain("without a verdict");
  });

  test("is not told to anybody as done, also where it could not open its input at all", async () => {
    expect((await record([event("requested")])).told).not.toContain("done");
    const { host, code } = await record([], (one) => {
      one.typed = () => undefined;
    });
    expect([host.printed.out, code]).toEqual(["", 0]);
  });

  test("is not one that said its last word", async () => {
    expect(results((await record([event("stopped"), "end\n"])).logged)).toEqual(["stopped"]);
  });
});

describe("a line that was torn", () => {
  const torn = '{"time":"2026-01-02T03:04:05.000Z","mess';

  /** A log that takes only a part of its first line, then refuses so often, then works. */
  function tearing(refusals: readonly number[]) {
    return (host: HandMadeHost) => {
      const append = host.appendFile.bind(host);
      const answers = [EIO, ...refusals];
      host.appendFile = (path, text) => {
        const errno = answers.shift() ?? 0;
        if (errno === EIO) append(path, torn);
        return errno === 0 ? append(path, text) : errno;
      };
    };
  }

  async function linesAfter(refusals: readonly number[], texts: readonly string[]): Promise<string[]> {
    const host = new HandMadeHost();
    host.stats.set(socket, stat({ kind: "other" }));
    host.keys = [
      { atMs: 0, text: texts.join("") },
      { atMs: 0, text: undefined },
    ];
    tearing(refusals)(host);
    await recordEvents(host);
    return String(host.files.get(log)).trimEnd().split("\n");
  }

  test("does not swallow the next one, and no empty line follows", async () => {
    const lines = await linesAfter([], [event("requested"), event("killed"), event("stopped"), "end\n"]);
    expect(lines[0]).toBe(torn);
    expect(results(lines.slice(1).map((line) => JSON.parse(line)))).toEqual(["killed", "stopped"]);
  });

  test("does not swallow one that comes after the disk refused for a while", async () => {
    const texts = [event("requested"), event("killed"), event("stopped"), "end\n"];
    const lines = await linesAfter([28], texts);
    expect(lines[0]).toBe(torn);
    expect(results(lines.slice(1).map((line) => JSON.parse(line)))).toEqual(["stopped"]);
  });

  test("by the stop before does not swallow this one's first", async () => {
    const host = new HandMadeHost();
    host.files.set(log, torn);
    host.stats.set(socket, stat({ kind: "other" }));
    host.keys = [
      { atMs: 0, text: `${event("requested")}end\n` },
      { atMs: 0, text: undefined },
    ];
    await recordEvents(host);
    const lines = String(host.files.get(log)).trimEnd().split("\n");
    expect(lines[0]).toBe(torn);
    expect(results(lines.slice(1).map((line) => JSON.parse(line)))).toEqual(["requested"]);
  });

  test("is told", async () => {
    const host = new HandMadeHost();
    host.stats.set(socket, stat({ kind: "other" }));
    host.keys = [
      { atMs: 0, text: `${event("requested")}end\n` },
      { atMs: 0, text: undefined },
    ];
    tearing([])(host);
    expect(await recordEvents(host)).toBe(1);
    expect(host.printed.out).toContain(`${log} could not be written (errno ${EIO})\n`);
  });
});

describe("what a stop does not undo", () => {
  const crontab = "/var/spool/cron/crontabs/ai-tools";

  async function toldOn(changes: (host: HandMadeHost) => void): Promise<string[]> {
    const { told } = await record([event("stopped"), "end\n"], (host) => {
      host.files.set("/etc/passwd", passwd);
      host.stats.set(crontab, stat());
      changes(host);
    });
    return told;
  }

  test("is a hint before the last word, marked so that it is no problem of a sink", async () => {
    expect(await toldOn(() => undefined)).toEqual([expect.stringMatching(/^hint: The account has a crontab/), "done"]);
  });

  test("comes after what the sinks could not do", async () => {
    expect(await toldOn((host) => void host.writeAnswers.set(log, EROFS))).toEqual([
      `${log} could not be written (errno 30)`,
      expect.stringMatching(/^hint: /),
      "done",
    ]);
  });

  test("is not looked for before everything is in both sinks: a dead /var holds up the hints alone", async () => {
    const { logged, journal } = await (async () => {
      const seen = { logged: "", journal: 0 };
      await toldOn((host) => {
        host.stats.set(crontab, () => {
          seen.logged = String(host.files.get(log));
          seen.journal = host.children.length;
          return stat();
        });
      });
      return seen;
    })();
    expect(logged).toContain('"AI_TOOLS_RESULT":"stopped"');
    expect(journal).toBe(1);
  });

  test("is nothing where the account is not known", async () => {
    expect(await toldOn((host) => void host.files.delete("/etc/passwd"))).toEqual(["done"]);
  });
});

test("a line that is no event is told, and the next one is recorded", async () => {
  const { logged, told } = await record(["nonsense\n", event("stopped"), "end\n"]);
  expect(results(logged)).toEqual(["stopped"]);
  expect(told[0]).toContain("an event could not be read");
});
