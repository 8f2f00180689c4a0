// SPDX-License-Identifier: Apache-2.0
// Reading and writing by descriptor, over a QuickJS `os` made by hand: no byte is lost, mangled or written twice, and no
// descriptor is opened for more than its owner could do. The real `os` is at work in the boundary tests.

import fc from "fast-check";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { EAGAIN, EIO } from "./kernel.ts";

const EPIPE = 32;

const scene = {
  /** What each read gives: bytes or a negative errno; end of file after the last one. */
  reads: [] as (number[] | number)[],
  /** How many bytes each write takes, or a negative errno; everything after the last one. */
  takes: [] as number[],
  written: [] as number[],
  /** Flags of the caller's descriptors as `/proc/self/fdinfo` prints them, octal. */
  flags: new Map<number, string>(),
  opened: [] as [path: string, flags: number][],
};

vi.mock("os", () => ({
  O_RDONLY: 0,
  O_WRONLY: 1,
  O_RDWR: 2,
  open: (path: string, flags: number) => {
    const of = /^\/proc\/self\/fdinfo\/([0-9]+)$/.exec(path)?.[1];
    if (of === undefined) {
      if (path === "/proc/self/exe") return -2;
      return 50 + scene.opened.push([path, flags]);
    }
    const printed = scene.flags.get(Number(of));
    if (printed === undefined) return -2;
    scene.reads = [[...new TextEncoder().encode(`pos:\t0\nflags:\t${printed}\nmnt_id:\t25\n`)]];
    return 40;
  },
  close: () => 0,
  read: (_fd: number, buffer: ArrayBuffer, at: number) => {
    const next = scene.reads.shift() ?? [];
    if (typeof next === "number") return next;
    new Uint8Array(buffer).set(next, at);
    return next.length;
  },
  write: (_fd: number, buffer: ArrayBuffer, at: number, count: number) => {
    const taken = Math.min(count, scene.takes.shift() ?? count);
    if (taken > 0) scene.written.push(...new Uint8Array(buffer, at, taken));
    return taken;
  },
}));

interface Outgoing {
  add(text: string): void;
  pump(): boolean;
  drop(): void;
}

interface Descriptors {
  readWhole(fd: number, limitBytes: number): string | number;
  readAvailable(fd: number): string | undefined;
  writeWhole(fd: number, data: ArrayBuffer): number;
  encode(text: string): ArrayBuffer;
  reopenWithinItsRights(fd: number, how: "read" | "write"): number | undefined;
  Outgoing: new (fd: number) => Outgoing;
}

/** By a name that the type checker does not follow: this file is checked against QuickJS's `os`, not Node's. */
const file = "./descriptors.ts";
const { readWhole, readAvailable, writeWhole, encode, reopenWithinItsRights, Outgoing } = (await import(
  file
)) as Descriptors;

beforeEach(() => {
  Object.assign(scene, { reads: [], takes: [], written: [], flags: new Map(), opened: [] });
});

const textOf = (bytes: readonly number[]) => String.fromCharCode(...bytes);
const byteText = fc.uint8Array({ maxLength: 200 }).map((bytes) => textOf([...bytes]));

describe("reading", () => {
  test("gives every byte as one character, in however many pieces it comes", () => {
    scene.reads = [[0, 9, 10, 0x1b], [0x80, 0xc3, 0xa9, 0xff], [65]];
    expect(readWhole(7, 100)).toBe("\0\t\n\x1b\x80\xc3\xa9\xffA");
  });

  test("an empty file is empty, and an error is its number, never an empty text", () => {
    expect(readWhole(7, 100)).toBe("");
    scene.reads = [[65], -13];
    expect(readWhole(7, 100)).toBe(13);
  });

  test("a file that never ends is cut off as an error", () => {
    scene.reads = Array.from({ length: 20 }, () => Array.from({ length: 10 }, () => 65));
    expect(readWhole(7, 100)).toBe(EIO);
  });

  test("tells nothing yet, end of file and an error apart from text", () => {
    scene.reads = [-EAGAIN, [110, 10], -5, []];
    expect([1, 2, 3, 4].map(() => readAvailable(7))).toEqual(["", "n\n", undefined, undefined]);
  });
});

describe("a write that must be whole", () => {
  test("is 0 only if every byte was taken", () => {
    expect(writeWhole(7, encode("max"))).toBe(0);
    scene.takes = [2, -30];
    expect(writeWhole(7, encode("max"))).toBe(EIO);
    expect(writeWhole(7, encode("max"))).toBe(30);
  });
});

describe("what waits for a descriptor that does not block", () => {
  test("arrives once, whole and in order, however little is taken at a time", () => {
    const steps = fc.array(fc.oneof(byteText, fc.constant(undefined)), { maxLength: 12 });
    const takes = fc.array(fc.oneof(fc.integer({ min: 1, max: 40 }), fc.constant(-EAGAIN)), { maxLength: 30 });
    fc.assert(
      fc.property(steps, takes, (texts, taken) => {
        scene.written = [];
        scene.takes = [...taken];
        const outgoing = new Outgoing(1);
        for (const text of texts) {
          if (text === undefined) outgoing.pump();
          else outgoing.add(text);
        }
        scene.takes = [];
        expect(outgoing.pump()).toBe(true);
        expect(textOf(scene.written)).toBe(texts.join(""));
      }),
    );
  });

  test("says that something is left while nothing is taken", () => {
    const outgoing = new Outgoing(1);
    outgoing.add("abc");
    scene.takes = [1, -EAGAIN];
    expect(outgoing.pump()).toBe(false);
    expect(outgoing.pump()).toBe(true);
    expect(textOf(scene.written)).toBe("abc");
  });

  test("is dropped where nobody is at the other end, and holds nobody up", () => {
    const outgoing = new Outgoing(1);
    outgoing.add("abc");
    scene.takes = [-EPIPE];
    expect(outgoing.pump()).toBe(true);
    outgoing.add("def");
    outgoing.drop();
    expect(outgoing.pump()).toBe(true);
    expect(scene.written).toEqual([]);
  });
});

describe("opening a descriptor again", () => {
  const noWait = 0o4400;

  test.each([
    ["0100000", "read", 0],
    ["0100001", "write", 1],
    ["0102002", "read", 0],
    ["0102002", "write", 1],
  ] as const)("flags %s may %s, without waiting and without becoming a controlling terminal", (flags, how, access) => {
    scene.flags.set(1, flags);
    expect(reopenWithinItsRights(1, how)).toBeGreaterThan(0);
    expect(scene.opened).toEqual([["/proc/self/fd/1", noWait | access]]);
  });

  test.each([
    ["a descriptor that only reads is not written to", "0100000", "write"],
    ["a descriptor that only writes is not read", "0100001", "read"],
    ["a descriptor that only names a file is not read", "010100000", "read"],
    ["a descriptor that only names a file is not written to", "010000002", "write"],
  ] as const)("%s: root could, its owner could not", (_name, flags, how) => {
    scene.flags.set(1, flags);
    expect(reopenWithinItsRights(1, how)).toBeUndefined();
    expect(scene.opened).toEqual([]);
  });

  test("a descriptor that nobody can tell about is not opened", () => {
    expect(reopenWithinItsRights(1, "write")).toBeUndefined();
    expect(scene.opened).toEqual([]);
  });
});
