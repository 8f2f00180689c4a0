// SPDX-License-Identifier: Apache-2.0
// The operator's side, over an `os` made by hand: what may block goes through a child, what may not be written to by its
// owner is not written to by root, and a terminal is never left raw by force.

import { beforeEach, describe, expect, test, vi } from "vitest";
import { type HandMadeOs, reset, type Target, target } from "./hand-made-os.fixture.ts";
import type { Child, Stream } from "./kernel.ts";

vi.mock("os", async () => (await import("./hand-made-os.fixture.ts")).os);

interface TerminalDoor {
  print(stream: Stream, text: string): void;
  pump(): boolean;
  close(): boolean;
  drop(): void;
  discardTyped(): Child | undefined;
  typed(): string | undefined;
}

/** By names that the type checker does not follow: this file is checked against QuickJS's `os`, not Node's. */
const files = { terminal: "./terminal.ts", children: "./children.ts" };
const { Terminal, copyToOutput, discardPending } = (await import(files.terminal)) as {
  Terminal: new (programs: unknown) => TerminalDoor;
  copyToOutput(): void;
  discardPending(): void;
};
const { ProgramRunner } = (await import(files.children)) as {
  ProgramRunner: new () => unknown;
};

let world: HandMadeOs;

/** A terminal side whose standard output is this. */
function withOutput(output: Target | undefined): TerminalDoor {
  world = reset(target("terminal"), output ?? target("null"), target("terminal"));
  if (output === undefined) world.descriptors.delete(1);
  return new Terminal(new ProgramRunner());
}

const reopened = (fd: number) => world.opened.filter(({ path }) => path === `/proc/self/fd/${fd}`);
const noWait = 0o4400;

beforeEach(() => {
  world = reset();
});

describe("text to a terminal or a pipe", () => {
  test.each(["terminal", "pipe"] as const)("a %s is opened again so that it never waits, once", (kind) => {
    const output = target(kind);
    const door = withOutput(output);
    door.print("out", "table\n");
    door.print("out", "report\n");
    expect(output.written).toBe("table\nreport\n");
    expect(reopened(1)).toEqual([{ path: "/proc/self/fd/1", flags: noWait | 1 }]);
    expect(world.executed).toEqual([]);
  });

  test("that is not taken waits here, and what was dropped never comes", () => {
    const output = target("pipe", { takes: false });
    const door = withOutput(output);
    door.print("out", "table\n");
    expect([door.pump(), door.close()]).toEqual([false, false]);
    door.drop();
    output.takes = true;
    expect([door.pump(), door.close(), output.written]).toEqual([true, true, ""]);
  });

  test.each<[string, Partial<Target>]>([
    ["only names a file (O_PATH)", { flags: "010102002" }],
    ["only reads", { flags: "0100000" }],
    ["cannot be told about", { flags: undefined }],
  ])("a descriptor that %s is written to by nobody, and holds up nothing", (_name, changes) => {
    for (const kind of ["terminal", "pipe"] as const) {
      const output = target(kind, changes);
      const door = withOutput(output);
      door.print("out", "table\n");
      expect([door.pump(), door.close(), output.written]).toEqual([true, true, ""]);
      expect([reopened(1), world.executed]).toEqual([[], []]);
    }
  });

  test("a descriptor that is closed is nobody", () => {
    const door = withOutput(undefined);
    door.print("out", "table\n");
    expect([door.pump(), door.close(), world.executed]).toEqual([true, true, []]);
  });

  test("the question goes to descriptor 0 within its rights too", () => {
    const door = withOutput(target("file"));
    door.print("terminal", "Stop all of it now?");
    expect(world.descriptors.get(0)?.written).toBe("Stop all of it now?");
    world.descriptors.set(0, target("terminal", { flags: "0100000" }));
    const other = new Terminal(new ProgramRunner());
    other.print("terminal", "Stop all of it now?");
    expect(world.descriptors.get(0)?.written).toBe("");
  });
});

describe("text to what can hang, a disk or a socket's peer,", () => {
  describe.each(["file", "socket", "block"] as const)("to a %s", (kind) => {
    if (kind !== "block") {
      test("the file itself is never asked what it is: its file system may hang", () => {
        withOutput(target(kind)).print("out", "table\n");
        expect(world.asked).toEqual([]);
      });
    }

    test("goes through a child that has the descriptor itself: nothing is opened again", () => {
      const output = target(kind);
      const door = withOutput(output);
      door.print("out", "table\n");
      door.print("out", "report\n");
      expect(world.executed).toMatchObject([
        { argv: ["ai-tools-stop: output"], options: { stdout: 1, file: "/proc/self/exe" } },
      ]);
      expect([reopened(1), output.written]).toEqual([[], ""]);
      expect([...world.descriptors.values()].map(({ written }) => written)).toContain("table\nreport\n");
    });

    test("is taken when the pipe to the child has it, and has arrived when the child has ended", () => {
      const door = withOutput(target(kind));
      door.print("out", "table\n");
      expect([door.pump(), door.close()]).toEqual([true, false]);
      for (const child of world.executed) child.status = 0;
      expect(door.close()).toBe(true);
    });

    test("is not taken while the child takes nothing; given up, the child goes on alone and is not killed", () => {
      const door = withOutput(target(kind));
      door.print("out", "");
      for (const one of world.descriptors.values()) if (one.flags === "0100001") one.takes = false;
      door.print("out", "table\n");
      expect([door.pump(), door.close()]).toEqual([false, false]);
      door.drop();
      expect([door.pump(), world.killed]).toEqual([true, []]);
    });

    test("is nowhere where no child can be started, and holds up nothing", () => {
      const door = withOutput(target(kind));
      world.canFork = false;
      door.print("out", "table\n");
      expect([door.pump(), door.close()]).toEqual([true, true]);
    });
  });

  test("one stream that hangs does not keep the other one away", () => {
    const door = withOutput(target("pipe", { takes: false }));
    door.print("out", "report\n");
    door.print("err", "a problem\n");
    expect([door.pump(), world.descriptors.get(2)?.written]).toEqual([false, "a problem\n"]);
  });
});

describe("the copying child", () => {
  test("passes on everything to the end of its input, byte by byte", () => {
    world = reset(target("pipe", { pending: ["table\n", "\x00\x80\xff", "report\n"], ended: true }), target("file"));
    copyToOutput();
    expect(world.descriptors.get(1)?.written).toBe("table\n\x00\x80\xffreport\n");
  });

  test("ends where nobody takes it any more", () => {
    world = reset(target("pipe", { pending: ["one\n", "two\n"], ended: true }));
    copyToOutput();
    expect(world.descriptors.get(0)?.pending).toEqual(["two\n"]);
  });
});

describe("what was typed", () => {
  test("is read from the terminal at descriptor 0, opened again once", () => {
    const door = withOutput(target("terminal"));
    const keyboard = world.descriptors.get(0);
    expect(door.typed()).toBe("");
    keyboard?.pending.push("n\n");
    expect(door.typed()).toBe("n\n");
    if (keyboard !== undefined) keyboard.ended = true;
    expect(door.typed()).toBeUndefined();
    expect(reopened(0)).toEqual([{ path: "/proc/self/fd/0", flags: noWait }]);
  });

  test.each(["0100001", "010100000", undefined])("is nothing where descriptor 0 has the flags %j", (flags) => {
    const door = withOutput(target("terminal"));
    world.descriptors.set(0, target("terminal", { flags, pending: ["n\n"] }));
    expect([door.typed(), door.typed(), reopened(0)]).toEqual([undefined, undefined, []]);
  });
});

describe("emptying the terminal", () => {
  /** Fields 5 and 8 of `/proc/self/stat` are the process's group and the terminal's foreground group. */
  function emptyOn(group: number, foreground: number, changes: Partial<Target> = {}): Target {
    const keyboard = target("terminal", { pending: ["old line\n", "n"], ...changes });
    world = reset(keyboard);
    world.files.set("/proc/self/stat", `400 (a) b) S 1 ${group} 77 34819 ${foreground} 0 0\n`);
    discardPending();
    return keyboard;
  }

  test("takes everything that is there, unfinished lines too", () => {
    expect(emptyOn(400, 400).pending).toEqual([]);
    expect(world.raw).toEqual([0]);
  });

  test("touches no modes in the background: giving them back would undo somebody else's change", () => {
    expect(emptyOn(400, 401).pending).toHaveLength(2);
    expect(world.raw).toEqual([]);
  });

  test("touches nothing where it cannot tell, or may not read", () => {
    const keyboard = target("terminal", { pending: ["n\n"] });
    world = reset(keyboard);
    discardPending();
    expect([keyboard.pending, world.raw]).toEqual([["n\n"], []]);
    for (const flags of ["0100001", "010100000", undefined]) {
      expect(emptyOn(400, 400, { flags }).pending).toHaveLength(2);
      expect(world.raw).toEqual([]);
    }
  });

  test("comes to an end under a flood", () => {
    const flood = target("terminal", { pending: Array.from({ length: 5_000 }, () => "n\n") });
    world = reset(flood);
    world.files.set("/proc/self/stat", "400 (a) S 1 400 77 34819 400 0 0\n");
    discardPending();
    expect(flood.pending.length).toBeGreaterThan(0);
  });
});
