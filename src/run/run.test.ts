// SPDX-License-Identifier: Apache-2.0
// The story of a session from its start to its exit code, with a stop, a hold, a signal or a failure at every point
// between: no session that must not run is left, and nothing is said to be over that nobody has seen end.

import { describe, expect, test } from "vitest";
import { claimRecordPath } from "../claim/claims.ts";
import { holdPath } from "../ground/places.ts";
import { statusText } from "../stop/hand-made-processes.fixture.ts";
import { SIGHUP, SIGINT, SIGKILL, SIGTERM } from "../stop/kernel.ts";
import { events, HandMadeSession, project, type Script, unit, word } from "./hand-made-session.fixture.ts";
import { lockPath } from "./handback-lock.ts";
import { limits } from "./places.ts";
import { notRun, run } from "./run.ts";
import { readSessions, waitingPath } from "./session-records.ts";

async function runOn(change: (ground: HandMadeSession) => void = () => undefined) {
  const ground = new HandMadeSession();
  change(ground);
  const code = await run(ground);
  // Whatever happened, the launcher is done with it.
  expect(ground.files.has(waitingPath(unit))).toBe(false);
  return { ground, code, said: ground.printed.err };
}

const scripted = (script: Script) => (ground: HandMadeSession) => {
  ground.script = script;
};
const killsOf = (ground: HandMadeSession) => ground.sentToUnit().filter((signal) => signal === SIGKILL).length;

describe("a session that ends by itself", () => {
  test.each([0, 1, 7, 125, 255])(
    "gives its code %i, by word of ai-tools-ended and not by systemd-run's",
    async (code) => {
      const { code: got, said } = await runOn(scripted({ begins: 20, ends: 100, code: 0, word: word({ code }) }));
      expect(got).toBe(code);
      expect(said).toBe("");
    },
  );

  test("is recorded before it is started", async () => {
    const { ground } = await runOn((ground) => {
      ground.stopsBegun(4);
      ground.atStart = () =>
        expect(ground.record()).toMatchObject({ unit, project, stops: 4, withGit: false, operator: { uid: 1001 } });
    });
    expect(ground.started()).toBeDefined();
  });

  test("has the account's number recorded for a stop, once", async () => {
    const { ground } = await runOn((ground) => void ground.files.set("/var/lib/ai-tools/uids", "17"));
    expect(ground.files.get("/var/lib/ai-tools/uids")).toBe("17\n990\n");
    const again = await runOn((ground) => void ground.files.set("/var/lib/ai-tools/uids", "17\n990\n"));
    expect(again.ground.files.get("/var/lib/ai-tools/uids")).toBe("17\n990\n");
  });

  test("whose handback goes on says so, and the launcher waits for it", async () => {
    const { code, said } = await runOn((ground) => {
      const { after: _after, ...first } = word({ code: 3 });
      ground.script = { begins: 20, ends: 100, code: 3, word: first };
      const sleep = ground.sleep.bind(ground);
      ground.sleep = async (ms) => {
        if (ground.clockMs > 1_010_000) ground.script = { ...ground.script, word: word({ code: 3 }) };
        await sleep(ms);
      };
    });
    expect(code).toBe(3);
    expect(said).toBe("ai-tools: handing back what the session wrote ...\n");
  });

  test("and whose files could not be handed back says which", async () => {
    const after = { changed: 1, gitLeft: 0, mounts: 0, failed: 2, failures: ["a: no", "b: no"] };
    const { code, said } = await runOn(scripted({ begins: 20, ends: 100, code: 0, word: word({ after }) }));
    expect(code).toBe(0);
    expect(said).toContain("2 files could not be handed back: a: no; b: no");
    expect(said).toContain(`ai-tools --reclaim ${project}`);
  });

  test("with a code of systemd's own says where to look", async () => {
    const { code, said } = await runOn(scripted({ ends: 30, code: 226, word: word({ code: 226 }) }));
    expect(code).toBe(226);
    expect(said).toContain(`journalctl -u ${unit}`);
  });

  test("so fast that it was never seen alive counts all the same", async () => {
    const { code, ground } = await runOn(scripted({ ends: 1, code: 1, word: word({ code: 1 }) }));
    expect(code).toBe(1);
    expect(killsOf(ground)).toBe(0);
  });
});

test("a session that was killed says that nothing was handed back", async () => {
  const killed = word({ code: 137, how: "was killed by signal 9", clean: false, after: "it did not end by itself" });
  const { code, said } = await runOn(scripted({ begins: 20, ends: 100, code: 255, word: killed }));
  expect(code).toBe(137);
  expect(said).toContain("was killed by signal 9: nothing was handed back");
});

test("a session after one that did not end by itself says so first, and hands .git back as well", async () => {
  const { ground, said } = await runOn((ground) => {
    const ended = { at: "t", how: "ended with 0 while a stop ran", clean: false };
    ground.recorded({ unit: "ai-tools-shell-7.service", ended });
    ground.atStart = () => expect(ground.record()).toMatchObject({ withGit: true });
  });
  expect(said).toContain("session ai-tools-shell-7.service of 2026-01-02T00:00:00.000Z (shell) did not end by itself");
  expect(said).toContain("ended with 0 while a stop ran");
  expect(said).toContain(`ai-tools --reclaim ${project}`);
  expect(ground.started()).toBeDefined();
});

describe("a launcher that is held between its look and the start, while", () => {
  const whole: [string, (ground: HandMadeSession) => void, string][] = [
    ["a whole stop runs", (ground) => ground.stopsBegun(1), "a stop has begun"],
    ["a stop begins and still runs", (ground) => void beginStop(ground), "a stop has begun"],
    [
      "a hold is set",
      (ground) => void ground.files.set(holdPath, '{"operator":"u","since":"s","reason":"r"}'),
      "by u: r",
    ],
    [
      "the counter becomes unreadable",
      (ground) => void ground.stats.set("/run/ai-tools/stop/count", 13),
      "cannot be told",
    ],
  ];
  const beginStop = (ground: HandMadeSession) => {
    ground.launcher(700);
    ground.files.set("/run/ai-tools/stop/700-1700", "999000");
    ground.stopsBegun(1);
  };

  test.each(whole)("%s, ends its session", async (_name, change, sentence) => {
    const { ground, code, said } = await runOn((ground) => {
      ground.script = { begins: 20 };
      ground.atStart = () => change(ground);
    });
    expect(code).toBe(notRun);
    expect(said).toContain(sentence);
    expect(said).toContain("ai-tools: the session was ended: ");
    expect(killsOf(ground)).toBeGreaterThan(0);
    expect(ground.files.get(events)).toBeTypeOf("function");
    // It did not end by itself: the record stays.
    expect(ground.record()).toBeDefined();
  });

  test.each(whole)("%s, says so of a session that is over already", async (_name, change, sentence) => {
    const { code, said } = await runOn((ground) => {
      ground.script = { ends: 5, code: 0, word: word() };
      ground.atStart = () => change(ground);
    });
    expect(code).toBe(notRun);
    expect(said).toContain(sentence);
  });

  test.each(whole)("%s, does not call it ended where it will not end", async (_name, change) => {
    const { ground, code, said } = await runOn((ground) => {
      ground.script = { begins: 20 };
      ground.isMortal = false;
      ground.atStart = () => change(ground);
    });
    expect(code).toBe(notRun);
    expect(said).toContain("could NOT be proved");
    expect(ground.isServed).toBe(false);
  });

  test("a stop runs, does not take systemd-run's end for the session's", async () => {
    const { code, said } = await runOn((ground) => {
      ground.script = { begins: 20, returns: 40, code: 1 };
      ground.isMortal = false;
      ground.atStart = () => ground.stopsBegun(1);
    });
    expect(code).toBe(notRun);
    expect(said).toContain("could NOT be proved");
  });

  test("a stop runs, calls off a start that PID 1 has not got to", async () => {
    const { ground, code } = await runOn((ground) => {
      ground.script = { begins: 60_000, returns: 3_000, code: 1 };
      ground.atStart = () => ground.stopsBegun(1);
    });
    expect(code).toBe(notRun);
    expect(ground.commandLines.some((line) => line.includes("systemctl stop --no-block"))).toBe(true);
  });
});

test("a stop that ends the unit between start and look leaves nothing that is said to run", async () => {
  const killed = word({ code: 137, how: "was killed by signal 9", clean: false, after: "it did not end by itself" });
  const { code, said, ground } = await runOn((ground) => {
    ground.script = { begins: 1, ends: 8, code: 255, word: killed };
    ground.atStart = () => ground.stopsBegun(1);
  });
  expect(code).toBe(notRun);
  expect(said).toContain("a stop has begun");
  expect(ground.record()).toBeDefined();
});

test("a stop after the look is the session's own business: the launcher reports its end", async () => {
  const { code, ground } = await runOn((ground) => {
    ground.script = {
      begins: 5,
      ends: 500,
      code: 0,
      word: word({ code: 143, clean: false, how: "was killed by signal 15" }),
    };
    const sleep = ground.sleep.bind(ground);
    ground.sleep = async (ms) => {
      if (ground.clockMs > 1_000_200) ground.stopsBegun(1);
      await sleep(ms);
    };
  });
  expect(code).toBe(143);
  expect(killsOf(ground)).toBe(0);
});

describe("nothing is started, and no record is left, where", () => {
  const refused: [string, (ground: HandMadeSession) => void, string][] = [
    [
      "a hold is set",
      (ground) => void ground.files.set(holdPath, '{"operator":"u","since":"s","reason":"r"}'),
      "by u: r",
    ],
    [
      "the number cannot be recorded",
      (ground) => {
        ground.files.delete("/var/lib/ai-tools/uids");
        ground.writeAnswers.set("/var/lib/ai-tools/uids", 30);
      },
      "errno 30",
    ],
    ["nobody could leave word", (ground) => void ground.writeAnswers.set(waitingPath(unit), 28), "errno 28"],
    [
      "the session cannot be recorded",
      (ground) => void ground.writeAnswers.set(`/var/lib/ai-tools/sessions/${unit}.json`, 28),
      "errno 28",
    ],
    [
      "PID 1 does not start the slice",
      (ground) => {
        const program = ground.program;
        ground.program = (line) =>
          line.includes("start user-990.slice") ? { code: 1, output: "Transaction is destructive.\n" } : program(line);
      },
      "Transaction is destructive.",
    ],
    [
      "PID 1 does not answer",
      (ground) => {
        const program = ground.program;
        ground.program = (line) => (line.includes("start user-990.slice") ? "hangs" : program(line));
      },
      "no answer",
    ],
    [
      "the operator interrupts",
      (ground) => {
        ground.signalArrived = { signal: SIGINT, arrivesMs: 0 };
      },
      "interrupted",
    ],
    [
      "no process can be started",
      (ground) => {
        const start = ground.startInForeground.bind(ground);
        ground.startInForeground = (argv, how) => (argv.includes("/usr/bin/systemd-run") ? 11 : start(argv, how));
      },
      "errno 11",
    ],
    [
      "an earlier session's handback is at work all the time",
      (ground) => void ground.lockedByOthers.add(lockPath(ground.claim)),
      "is still being handed back",
    ],
    [
      "the claim ends meanwhile",
      (ground) => {
        const sleepless = ground.program;
        ground.program = (line) => {
          if (line.includes("start user-990.slice")) ground.files.delete(claimRecordPath(project));
          return sleepless(line);
        };
      },
      "is in no claimed project",
    ],
  ];

  test.each(refused)("%s", async (_name, change, sentence) => {
    const { ground, code, said } = await runOn(change);
    expect(code).toBe(notRun);
    expect(said).toContain(sentence);
    expect(said).toMatch(/No session was started\.\n$/);
    expect(readSessions(ground).sessions).toEqual([]);
  });

  test.each([{ boot: "earlier" }, {}])("an earlier session's record of the same name stays: %j", async (changes) => {
    const { ground } = await runOn((ground) => {
      ground.recorded(changes);
      ground.writeAnswers.set(waitingPath(unit), 28);
    });
    expect(ground.record()).toMatchObject({ since: "2026-01-02T00:00:00.000Z", ...changes });
  });

  test("PID 1 refuses the unit", async () => {
    const { ground, code, said } = await runOn(scripted({ returns: 30, code: 1 }));
    expect(code).toBe(notRun);
    expect(said).toContain("systemd did not start the session");
    expect(ground.record()).toBeUndefined();
  });
});

test("the slice is asked for again while PID 1 has a job for it", async () => {
  let refusals = 3;
  const { code, ground } = await runOn((ground) => {
    const program = ground.program;
    ground.program = (line) => (line.includes("start user-990.slice") && refusals-- > 0 ? { code: 1 } : program(line));
  });
  expect(code).toBe(0);
  expect(ground.commandLines.filter((line) => line.includes("start user-990.slice"))).toHaveLength(4);
});

describe("a session of which nobody has word", () => {
  test("is not called refused while the unit is known", async () => {
    const { ground, code, said } = await runOn((ground) => {
      ground.script = { returns: 30, code: 1 };
      ground.loadState = "loaded";
    });
    expect(code).toBe(notRun);
    expect(said).toContain("how it ended nobody could tell");
    expect(ground.record()).toBeDefined();
  });

  test.each([
    ["PID 1 gives no answer", "hangs" as const],
    ["PID 1 answers something else", { code: 1, output: "" }],
  ])("is not called refused where %s", async (_name, answer) => {
    const { ground, code } = await runOn((ground) => {
      ground.script = { returns: 30, code: 1 };
      const program = ground.program;
      ground.program = (line) => (line.includes("systemctl show") ? answer : program(line));
    });
    expect(code).toBe(notRun);
    expect(ground.record()).toBeDefined();
  });

  test.each([0, 143, 255])("is not called refused when systemd-run gives %i", async (code) => {
    const { ground, said } = await runOn(scripted({ returns: 30, code }));
    expect(said).toContain("how it ended nobody could tell");
    expect(ground.record()).toBeDefined();
  });

  test("is waited for within a limit", async () => {
    const { ground } = await runOn(scripted({ begins: 5, ends: 30, code: 0 }));
    expect(ground.clockMs).toBeLessThan(1_000_000 + limits.wordMs + 1_000);
  });
});

describe("signals", () => {
  test.each([SIGINT, SIGTERM, SIGHUP])("%i to the launcher goes to the session", async (signal) => {
    const { ground } = await runOn((ground) => {
      ground.script = { begins: 20, ends: 300, code: 0, word: word() };
      ground.signalsToCome = [{ signal, atMs: 1_000_150 }];
    });
    expect(ground.sentToUnit()).toEqual([signal]);
  });

  test("that come before there is a session go to it when it is there", async () => {
    const sentAt: number[] = [];
    const { ground } = await runOn((ground) => {
      ground.script = { begins: 200, ends: 500, code: 0, word: word() };
      ground.signalsToCome = [{ signal: SIGINT, atMs: 1_000_000 }];
      const program = ground.program;
      ground.program = (line) => {
        if (line.includes("systemctl kill")) sentAt.push(ground.clockMs - 1_000_000);
        return program(line);
      };
    });
    expect(ground.sentToUnit()).toEqual([SIGINT]);
    expect(sentAt[0]).toBeGreaterThanOrEqual(200);
  });

  test("of job control are nobody's", async () => {
    const { ground } = await runOn((ground) => {
      ground.signalsToCome = [{ signal: 20, atMs: 1_000_050 }];
    });
    expect(ground.sentToUnit()).toEqual([]);
  });

  test("end the wait for a handback, and not the handback", async () => {
    const { after: _after, ...first } = word({ code: 5 });
    const { ground, code, said } = await runOn((ground) => {
      ground.script = { begins: 20, ends: 100, code: 5, word: first };
      ground.signalsToCome = [{ signal: SIGINT, atMs: 1_001_000 }];
    });
    expect(code).toBe(5);
    expect(said).toContain("is still being handed back");
    expect(ground.clockMs).toBeLessThan(1_002_000);
  });
});

describe("a caller that is gone", () => {
  const orphan = (script: Script, terminals: (0 | 1 | 2)[]) => (ground: HandMadeSession) => {
    ground.terminals = terminals;
    ground.script = script;
    const parent = (pid: number) => statusText({ pid: ground.pid, parent: pid, uids: [0, 0, 0, 0] });
    ground.files.set("/proc/self/status", () => parent(ground.clockMs > 1_000_300 ? 1 : 399));
  };

  test("is a hang-up for a session with pipes, once, and its end is waited for", async () => {
    const { ground, code } = await runOn(orphan({ begins: 20, ends: 3_000, code: 0, word: word({ code: 4 }) }, [0]));
    expect(ground.sentToUnit()).toEqual([SIGHUP]);
    expect(ground.isServed).toBe(true);
    expect(code).toBe(4);
  });

  test("takes the pty from a session that has one", async () => {
    const { ground, code } = await runOn(orphan({ begins: 20, returns: 90_000, code: 0 }, [0, 1, 2]));
    expect(ground.isServed).toBe(false);
    expect(code).toBe(129);
  });

  test("is none where nobody can tell", async () => {
    const { ground } = await runOn((ground) => {
      ground.script = { begins: 20, ends: 300, code: 0, word: word() };
      ground.atStart = () => {
        ground.files.set("/proc/self/status", 5);
      };
    });
    expect(ground.sentToUnit()).toEqual([]);
  });
});

describe("a terminal that is lost", () => {
  const lose = (script: Script) => (ground: HandMadeSession) => {
    ground.terminals = [0, 1, 2];
    ground.script = script;
    const sleep = ground.sleep.bind(ground);
    ground.sleep = async (ms) => {
      if (ground.clockMs > 1_000_300) ground.terminals = [];
      await sleep(ms);
    };
  };

  test("takes the pty from the session, whose end is waited for", async () => {
    const hungUp = word({ code: 129, how: "was killed by signal 1", clean: false, after: "it did not end by itself" });
    const { ground, code } = await runOn(lose({ begins: 20, ends: 500, returns: 90_000, code: 0, word: hungUp }));
    expect(ground.isServed).toBe(false);
    expect(code).toBe(129);
  });

  test("leaves a session that ignores it, and says how to find it", async () => {
    const { ground, code, said } = await runOn(lose({ begins: 20, returns: 90_000, code: 0 }));
    expect(ground.isServed).toBe(false);
    expect(code).toBe(129);
    expect(said).toContain(`session ${unit} goes on without this terminal`);
    expect(said).toContain("ai-tools --status");
    expect(killsOf(ground)).toBe(0);
    expect(ground.record()).toBeDefined();
  });

  test("means nothing to a session without a pty", async () => {
    const { ground, code } = await runOn((ground) => {
      lose({ begins: 20, ends: 900, code: 0, word: word() })(ground);
      ground.terminals = [0];
    });
    expect(ground.isServed).toBe(true);
    expect(ground.sentToUnit()).toEqual([]);
    expect(code).toBe(0);
  });
});

test("a session that left its handback to another one says to which, and not that nothing was handed back", async () => {
  const waiting = word({ after: "the last one does it", waitsFor: "ai-tools-shell-9.service" });
  const { code, said } = await runOn(scripted({ begins: 20, ends: 100, code: 0, word: waiting }));
  expect(code).toBe(0);
  expect(said).toContain("session ai-tools-shell-9.service of this project still runs");
  expect(said).toContain(`ai-tools --reclaim ${project}`);
  expect(said).not.toContain("nothing was handed back");
});

test.each([
  ["xterm-256color", "--setenv=TERM=xterm-256color"],
  ["../../evil", undefined],
  ["a b", undefined],
  ["", undefined],
])("the caller's TERM %j is taken as %j", async (value, expected) => {
  const { ground } = await runOn((ground) => void ground.variables.set("TERM", value));
  expect(ground.started()?.find((argument) => argument.startsWith("--setenv=TERM"))).toBe(expected);
});
