// SPDX-License-Identifier: Apache-2.0
// The door on a real Linux, over an `os` made by hand: which signals interrupt when, and that nothing of the operator's
// side is waited for beyond its limit or ended by force. System calls themselves are told by the boundary tests.

import { beforeEach, describe, expect, test, vi } from "vitest";
import { type HandMadeOs, reset, target } from "./hand-made-os.fixture.ts";
import {
  EBADF,
  EINVAL,
  ENOSYS,
  type Handle,
  type Host,
  isErrno,
  SIGCHLD,
  SIGHUP,
  SIGINT,
  SIGPIPE,
  SIGQUIT,
  SIGTERM,
  SIGTSTP,
} from "./kernel.ts";
import { limits } from "./limits.ts";

vi.mock("os", async () => (await import("./hand-made-os.fixture.ts")).os);
vi.mock("std", () => ({ getenv: () => undefined }));
vi.mock("pidfd", async () => (await import("./hand-made-os.fixture.ts")).pidfd);

/** By a name that the type checker does not follow: this file is checked against QuickJS's `os`, not Node's. */
const file = "./quickjs-kernel.ts";
const { QuickjsHost } = (await import(file)) as { QuickjsHost: new () => Host };

let world: HandMadeOs;
let host: Host;

beforeEach(() => {
  world = reset(target("terminal"), target("terminal"), target("terminal"));
  host = new QuickjsHost();
  host.prepare();
});

describe("an interruption", () => {
  test("is the first of INT and TERM, and the others that could end a helper are ignored", () => {
    world.deliver(SIGTERM);
    world.deliver(SIGINT);
    expect(host.interruption()).toBe(SIGTERM);
    for (const signal of [SIGPIPE, SIGHUP, SIGQUIT, SIGTSTP]) expect(world.handlers.get(signal)).toBeUndefined();
    expect(world.handlers.get(SIGCHLD)).toBeNull();
  });

  test("that is ignored from now on is forgotten where it came already, the other one is not", () => {
    world.deliver(SIGINT);
    host.ignoreInterruptions([SIGINT]);
    expect(host.interruption()).toBe(0);
    world.deliver(SIGINT);
    expect(host.interruption()).toBe(0);
    world.deliver(SIGTERM);
    host.ignoreInterruptions([SIGINT]);
    expect(host.interruption()).toBe(SIGTERM);
  });

  test("that comes while a program is started is not lost, and one that is ignored is ignored by the program too", () => {
    world.duringExec = () => world.deliver(SIGTERM);
    host.startRecorder();
    expect(host.interruption()).toBe(SIGTERM);
    expect(world.executed[0]?.ignored).toEqual(expect.arrayContaining([SIGQUIT, SIGTSTP]));
    host.ignoreInterruptions([SIGINT, SIGTERM]);
    host.startProgram(["/usr/bin/true"], {});
    expect(world.executed[1]?.ignored).toEqual(expect.arrayContaining([SIGINT, SIGTERM]));
  });

  test("counts also after a program could not be started", () => {
    world.canFork = false;
    expect(host.startRecorder()).toBeGreaterThan(0);
    world.deliver(SIGTERM);
    expect(host.interruption()).toBe(SIGTERM);
  });

  test("that is ignored does not count because a program is started", () => {
    host.ignoreInterruptions([SIGINT]);
    host.startProgram(["/usr/bin/true"], {});
    world.deliver(SIGINT);
    expect(host.interruption()).toBe(0);
    world.deliver(SIGTERM);
    expect(host.interruption()).toBe(SIGTERM);
  });
});

describe("a process is held", () => {
  const status = (seccomp: number) => `Name:\tai-tools-stop\nSeccomp:\t${seccomp}\nSeccomp_filters:\t${seccomp}\n`;

  test("by a descriptor, and signalled through it", () => {
    world.files.set("/proc/self/status", status(0));
    const held = host.hold(4_711);
    if (isErrno(held)) throw new Error(`errno ${held}`);
    expect(world.held).toEqual([4_711]);
    expect(host.signalHeld(held, SIGTERM) === 0).toBe(true);
    expect(world.signalled).toEqual([{ fd: held.fd, signal: SIGTERM }]);
    host.close(held);
    expect(host.signalHeld(held, SIGTERM)).toBe(EBADF);
    expect(world.killed).toEqual([]);
  });

  test("only where no filter of system calls could end the helper for asking", () => {
    world.files.set("/proc/self/status", status(2));
    expect(host.hold(4_711)).toBe(ENOSYS);
    expect(world.held).toEqual([]);
  });

  test("only where it can be told whether there is a filter", () => {
    expect(host.hold(4_711)).toBe(ENOSYS);
    expect(world.held).toEqual([]);
  });

  test.each([1, 0, -4_711, 1.5, Number.NaN])("never init, a group or no number: %d", (pid) => {
    world.files.set("/proc/self/status", status(0));
    expect(host.hold(pid)).toBe(EINVAL);
    expect(world.held).toEqual([]);
  });

  test.each([0, -9, Number.NaN])("and told of signals only: %d is none", (signal) => {
    world.files.set("/proc/self/status", status(0));
    expect(host.signalHeld(host.hold(4_711) as Handle, signal)).toBe(EINVAL);
    expect(world.signalled).toEqual([]);
  });
});

describe("emptying the terminal before the question", () => {
  const discards = () => world.executed.filter(({ argv }) => argv[0] === "ai-tools-stop: discard");

  test("is the work of a child that has the terminal, and is done when that has ended", async () => {
    const answer = host.discardTyped();
    expect(discards()).toMatchObject([{ options: { file: "/proc/self/exe", stdin: 0 } }]);
    for (const child of discards()) child.status = 0;
    expect(await answer).toBe(true);
  });

  test("that does not come to its end is given up, and never killed: it would leave the terminal raw", async () => {
    const startMs = world.clockMs;
    expect(await host.discardTyped()).toBe(false);
    expect(world.clockMs - startMs).toBeLessThanOrEqual(limits.discardMs + limits.childPollMs);
    expect([discards().length, world.killed]).toEqual([1, []]);
  });

  test("that cannot be begun is not done", async () => {
    world.canFork = false;
    expect(await host.discardTyped()).toBe(false);
  });
});

describe("the last of the output", () => {
  test("is waited for where it goes through a child: until that has ended", async () => {
    world = reset(target("null"), target("socket"), target("terminal"));
    host = new QuickjsHost();
    host.print("out", "the report\n");
    const sleep = vi.fn(() => {
      for (const child of world.executed) child.status = 0;
    });
    setTimeoutInWorld(3, sleep);
    expect(await host.flush(1_000)).toBe(true);
    expect(sleep).not.toHaveBeenCalled();
    expect(await host.closeOutput(1_000)).toBe(true);
    expect(sleep).toHaveBeenCalled();
  });

  test("is given up at its limit, and the child is left to go on alone", async () => {
    world = reset(target("null"), target("file"), target("terminal"));
    host = new QuickjsHost();
    host.print("out", "the report\n");
    const startMs = world.clockMs;
    expect(await host.closeOutput(1_000)).toBe(false);
    expect(world.clockMs - startMs).toBeLessThanOrEqual(1_000 + limits.laterPollMs);
    expect(world.killed).toEqual([]);
  });

  test("to a terminal that takes nothing is dropped at its limit", async () => {
    const terminal = target("terminal", { takes: false });
    world = reset(target("null"), terminal, target("terminal"));
    host = new QuickjsHost();
    host.print("out", "the table\n");
    expect(await host.flush(500)).toBe(false);
    terminal.takes = true;
    host.print("out", "later\n");
    expect(await host.closeOutput(500)).toBe(true);
    expect(terminal.written).toBe("later\n");
  });
});

/** Does something after so many polls of the output. */
function setTimeoutInWorld(polls: number, work: () => void): void {
  const untilMs = world.clockMs + polls * limits.laterPollMs;
  const { clockMs } = world;
  let nowMs = clockMs;
  Object.defineProperty(world, "clockMs", {
    get: () => nowMs,
    set: (ms: number) => {
      nowMs = ms;
      if (nowMs >= untilMs) work();
    },
  });
}
