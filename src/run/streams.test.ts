// SPDX-License-Identifier: Apache-2.0
// Every combination of terminals among the three descriptors: a session never gets one of them.

import { describe, expect, test } from "vitest";
import type { Foreground } from "../ground/ground.ts";
import { HandMadeGround } from "../ground/hand-made-ground.fixture.ts";
import { isErrno, SIGHUP, SIGINT, SIGQUIT, SIGTERM } from "../stop/kernel.ts";
import { limits } from "./places.ts";
import { findTerminals, finishStreams, type StartedSession, startSession, wantsPty } from "./streams.ts";

type Descriptor = 0 | 1 | 2;
const all: Descriptor[][] = [[], [0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2]];
const command = ["/usr/bin/systemd-run", "--pipe", "x"];

function started(terminals: Descriptor[], change: (ground: HandMadeGround) => void = () => undefined) {
  const ground = new HandMadeGround();
  change(ground);
  const session = startSession(ground, command, terminals);
  const copiers = ground.foreground.filter(({ argv }) => argv[0] === "/usr/bin/cat").map(({ how }) => how.descriptors);
  const run = ground.foreground.find(({ argv }) => argv.includes("/usr/bin/systemd-run"));
  return { ground, session, copiers, run };
}

describe.each(all)("terminals at %j %j %j", (...terminals) => {
  const present = terminals.filter((descriptor) => descriptor !== undefined) as Descriptor[];

  test("are found by asking the kernel", () => {
    const ground = new HandMadeGround();
    ground.program = (line) => ({ code: present.includes(Number(line.slice(-1)) as Descriptor) ? 0 : 1 });
    expect(findTerminals(ground)).toEqual(present);
  });

  test("are none of the session's", () => {
    const { ground, session, copiers, run } = started(present);
    expect(isErrno(session)).toBe(false);
    if (wantsPty(present)) {
      expect(run?.argv).toEqual(command);
      expect(copiers).toEqual([]);
      return;
    }
    expect(run?.argv).toEqual(["/usr/bin/setsid", ...command]);
    const given: NonNullable<Foreground["descriptors"]> = run?.how.descriptors ?? {};
    expect(Object.keys(given).map(Number)).toEqual(present);
    expect(copiers).toHaveLength(present.length);
    // Every end of a pipe is closed here, or nobody would ever read end of file.
    const ends = ground.closed.map(({ fd }) => fd);
    expect(ends).toHaveLength(2 * present.length);
    for (const end of Object.values(given)) expect(ends).toContain(end.fd);
  });
});

describe("copiers", () => {
  test("carry from the terminal in, and out to the terminal that was there", () => {
    const { copiers, run } = started([0, 2]);
    const given = run?.how.descriptors ?? {};
    expect(copiers[0]).toEqual({ 1: expect.anything() });
    expect(copiers[1]).toEqual({ 0: expect.anything(), 1: { fd: 2 } });
    expect(copiers[0]?.[1]).not.toEqual(given[0]);
    expect(copiers[1]?.[0]).not.toEqual(given[2]);
  });

  test("ignore the terminal's Ctrl-C, which the session gets", () => {
    const { ground } = started([0]);
    expect(ground.ignored).toContain(SIGINT);
    for (const signal of [SIGHUP, SIGINT, SIGQUIT, SIGTERM]) expect(ground.watched.has(signal)).toBe(true);
  });

  test("that cannot be started leave nothing behind", () => {
    for (const failing of ["cat", "systemd-run"]) {
      const { ground, session, run } = started([0, 2], (ground) => {
        ground.program = (line) => (line.includes(failing) ? { errno: 11 } : "hangs");
      });
      expect(session).toBe(11);
      if (failing === "cat") expect(run).toBeUndefined();
      for (const child of ground.children) expect(child.abandoned).toBe(true);
      expect(ground.closed.length % 2).toBe(0);
    }
    expect(
      started([0, 2], (ground) => {
        ground.openPipe = () => 24;
      }).session,
    ).toBe(24);
  });

  test("are waited for only as far as they bring something to the terminal, and within a limit", async () => {
    const { ground, session } = started([0, 2], (ground) => {
      ground.program = () => "hangs";
    });
    const before = ground.clockMs;
    await finishStreams(ground, session as StartedSession);
    expect(ground.clockMs - before).toBe(limits.drainMs);
    const { inward, outward } = session as StartedSession;
    expect([inward.length, outward.length]).toEqual([1, 1]);
    for (const copier of ground.children.slice(0, 2)) expect(copier.abandoned).toBe(true);
  });
});

test("what cannot be told is a terminal", () => {
  const ground = new HandMadeGround();
  ground.program = () => ({ errno: 2 });
  expect(findTerminals(ground)).toEqual([0, 1, 2]);
});
