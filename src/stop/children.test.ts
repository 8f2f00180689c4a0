// SPDX-License-Identifier: Apache-2.0
// Programs beside the stop, over an `os` made by hand: what they get of the helper, and that none of them is waited for
// or ended by mistake. Real programs are at work in the boundary tests.

import { beforeEach, describe, expect, test, vi } from "vitest";
import { type HandMadeOs, reset, target } from "./hand-made-os.fixture.ts";
import { type Child, EAGAIN, SIGKILL } from "./kernel.ts";

vi.mock("os", async () => (await import("./hand-made-os.fixture.ts")).os);

interface Runner {
  start(argv: string[], options: Record<string, unknown>): Child | number;
}

/** By a name that the type checker does not follow: this file is checked against QuickJS's `os`, not Node's. */
const file = "./children.ts";
const { ProgramRunner } = (await import(file)) as {
  ProgramRunner: new () => Runner;
};

let world: HandMadeOs;

beforeEach(() => {
  world = reset(target("terminal"), target("terminal"), target("terminal"));
});

function runner(): Runner {
  return new ProgramRunner();
}

function started(options: Record<string, unknown>): Child {
  const child = runner().start(["/usr/bin/systemctl", "start", "x"], options);
  if (typeof child === "number") throw new Error(`not started: errno ${child}`);
  return child;
}

/** What is at the helper's end of the pipe that was opened again last. */
const lastOpened = () => [...world.descriptors.values()].at(-1);

describe("a program", () => {
  test("is executed by its path alone, in /, with a fixed environment and nothing of the operator's terminal", () => {
    started({});
    const [{ argv, options }] = world.executed as [(typeof world.executed)[0]];
    expect(argv).toEqual(["/usr/bin/systemctl", "start", "x"]);
    expect(options).toMatchObject({
      block: false,
      usePath: false,
      cwd: "/",
      env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C" },
    });
    expect(options).not.toHaveProperty("file");
    const standard = ["stdin", "stdout", "stderr"].map((name) => world.descriptors.get(options[name] as number)?.kind);
    expect(standard).toEqual(["null", "null", "null"]);
  });

  test("gets pipes for what the helper serves, and the named descriptor where one is passed on", () => {
    started({ input: true, output: true });
    runner().start(["copier"], { input: true, outputTo: 1, itself: true });
    runner().start(["emptier"], { inputFrom: 0, itself: true });
    const [served, copier, emptier] = world.executed.map(({ options }) => options);
    expect(served?.stdout).toBe(served?.stderr);
    expect(new Set([served?.stdin, served?.stdout]).size).toBe(2);
    expect(copier).toMatchObject({ stdout: 1, file: "/proc/self/exe" });
    expect(emptier).toMatchObject({ stdin: 0, file: "/proc/self/exe" });
    expect(world.descriptors.get(copier?.stderr as number)?.kind).toBe("null");
  });

  test("does not land on a descriptor of the operator's that was closed", () => {
    world = reset();
    started({});
    expect([0, 1, 2].map((fd) => world.descriptors.get(fd)?.kind)).toEqual(["null", "null", "null"]);
    expect(world.executed[0]?.options.stdin).toBeGreaterThan(2);
  });
});

describe("a program that cannot be started", () => {
  test("is EAGAIN, and no descriptor stays open but /dev/null", () => {
    const one = runner();
    world.canFork = false;
    expect(one.start(["/usr/bin/true"], { input: true, output: true })).toBe(EAGAIN);
    expect(world.openAbove(2)).toHaveLength(1);
  });

  test.each([0, 1])("for lack of descriptors after %i pipes is EAGAIN, and no descriptor stays open", (pipes) => {
    const one = runner();
    world.pipes = pipes;
    expect(one.start(["/usr/bin/true"], { input: true, output: true })).toBe(EAGAIN);
    expect(world.executed).toEqual([]);
    expect(world.openAbove(2)).toHaveLength(1);
  });
});

describe("what is sent to a child", () => {
  function childWithPipe() {
    const child = started({ input: true });
    const pipe = lastOpened();
    if (pipe === undefined) throw new Error("no pipe");
    return { child, pipe, open: () => [...world.descriptors.values()].includes(pipe) };
  }

  test("is through when its pipe has taken all of it, and is written by whatever is called later", () => {
    const { child, pipe } = childWithPipe();
    pipe.takes = false;
    child.send("one\n");
    child.send("two\n");
    expect([child.sentAll(), pipe.written]).toEqual([false, ""]);
    pipe.takes = true;
    expect(child.exitCode()).toBeUndefined();
    expect([child.sentAll(), pipe.written]).toEqual([true, "one\ntwo\n"]);
  });

  test("comes before its end of input", () => {
    const { child, pipe, open } = childWithPipe();
    pipe.takes = false;
    child.send("one\n");
    child.closeInput();
    expect(open()).toBe(true);
    pipe.takes = true;
    expect([child.sentAll(), pipe.written, open()]).toEqual([true, "one\n", false]);
  });

  test("can be dropped: end of input at once", () => {
    const { child, pipe, open } = childWithPipe();
    pipe.takes = false;
    child.send("one\n");
    child.closeInput(true);
    expect([child.sentAll(), pipe.written, open()]).toEqual([true, "", false]);
  });

  test("without a pipe is nothing, and through", () => {
    const child = started({});
    child.send("lost\n");
    child.closeInput();
    expect(child.sentAll()).toBe(true);
  });
});

describe("a child's end", () => {
  test.each([
    [0, 0],
    [3 << 8, 3],
    [127 << 8, 127],
    [SIGKILL, 137],
    [SIGKILL | 0x80, 137],
  ])("raw status %i is code %i", (status, code) => {
    const child = started({});
    expect(child.exitCode()).toBeUndefined();
    for (const one of world.executed) one.status = status;
    expect(child.exitCode()).toBe(code);
  });

  test("comes with all that it said before", () => {
    const child = started({ output: true });
    const pipe = lastOpened();
    if (pipe === undefined) throw new Error("no pipe");
    pipe.pending.push("one\n");
    expect(child.output()).toBe("one\n");
    pipe.pending.push("two\n", "three\n");
    pipe.ended = true;
    for (const one of world.executed) one.status = 0;
    expect([child.exitCode(), child.output()]).toEqual([0, "one\ntwo\nthree\n"]);
  });

  test("by force is SIGKILL to it alone, once it is no longer waited for", () => {
    const child = started({});
    child.abandon();
    expect(world.killed).toEqual([{ pid: world.executed[0]?.pid, signal: SIGKILL }]);
  });

  test("by force does not come where it has ended: its number may be somebody else's by now", () => {
    const child = started({});
    for (const one of world.executed) one.status = 0;
    child.abandon();
    expect(world.killed).toEqual([]);
  });
});
