// SPDX-License-Identifier: Apache-2.0
// Every combination of terminals among the three descriptors: a session never gets one of them.

import { describe, expect, test } from "vitest";
import type { Foreground } from "../ground/ground.ts";
import { HandMadeGround } from "../ground/hand-made-ground.fixture.ts";
import { isErrno, SIGHUP, SIGINT, SIGQUIT, SIGTERM } from "../stop/kernel.ts";
import { HandMadeSession, unit } from "./hand-made-session.fixture.ts";
import { limits } from "./places.ts";
import {
  findTerminals,
  finishStreams,
  openStreams,
  type StartedSession,
  type Streams,
  startSession,
  sweepStreams,
  wantsPty,
} from "./streams.ts";

type Descriptor = 0 | 1 | 2;
const all: Descriptor[][] = [[], [0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2]];
const command = ["/usr/bin/systemd-run", "x"];
const folder = "/run/ai-tools/streams";
const pipe = (descriptor: Descriptor) => `${folder}/${unit}.${descriptor}`;

function opened(terminals: Descriptor[], change: (ground: HandMadeGround) => void = () => undefined) {
  const ground = new HandMadeGround();
  ground.program = (line) =>
    line.includes("/test ") ? { code: terminals.includes(Number(line.slice(-1)) as Descriptor) ? 0 : 1 } : undefined;
  change(ground);
  return { ground, streams: openStreams(ground, unit) };
}

function started(terminals: Descriptor[], change: (ground: HandMadeGround) => void = () => undefined) {
  const { ground, streams } = opened(terminals);
  change(ground);
  const session = startSession(ground, command, streams as Streams);
  const copiers = ground.foreground.filter(({ argv }) => argv[0] === "/usr/bin/cat").map(({ how }) => how.descriptors);
  const run = ground.foreground.find(({ argv }) => argv.includes("/usr/bin/systemd-run"));
  return { ground, session, copiers, run };
}

describe.each(all)("terminals at %j %j %j", (...terminals) => {
  const present = terminals.filter((descriptor) => descriptor !== undefined) as Descriptor[];

  test("are found by asking the kernel", () => {
    expect(findTerminals(opened(present).ground)).toEqual(present);
  });

  test("are none of the session's, nor is anything else of the caller's", () => {
    const { ground, session, copiers, run } = started(present);
    expect(isErrno(session)).toBe(false);
    expect(run?.how.descriptors).toBeUndefined();
    if (wantsPty(present)) {
      expect(run?.argv).toEqual(command);
      expect(copiers).toEqual([]);
      expect(ground.files.size).toBe(0);
      return;
    }
    expect(run?.argv).toEqual(["/usr/bin/setsid", ...command]);
    expect(copiers).toEqual([
      { 1: expect.anything() },
      { 0: expect.anything(), 1: { fd: 1 } },
      { 0: expect.anything(), 1: { fd: 2 } },
    ]);
    // The copiers' ends are closed here, or nobody would ever read end of file.
    const ends = copiers.map((given: Foreground["descriptors"], at) => given?.[at === 0 ? 1 : 0]);
    for (const end of ends) expect(ground.closed).toContainEqual(end);
  });
});

describe("pipes", () => {
  test("stand where only root comes, one for each descriptor, and the unit is told their names", () => {
    const { ground, streams } = opened([]);
    expect(ground.modes.get(folder)).toBe(0o700);
    expect(streams).toMatchObject({ forUnit: { 0: pipe(0), 1: pipe(1), 2: pipe(2) }, terminals: [] });
    expect(ground.acts.filter((act) => act.startsWith("pipe"))).toEqual([0, 1, 2].map((n) => `pipe ${pipe(n as 0)}`));
  });

  test("are one for output and error that are the same, so that what is said keeps its order", () => {
    const { streams } = opened([], (ground) => {
      ground.sameFiles = [[1, 2]];
    });
    expect(streams).toMatchObject({ forUnit: { 0: pipe(0), 1: pipe(1), 2: pipe(1) } });
    expect((streams as Streams).pipes.map(({ descriptor }) => descriptor)).toEqual([0, 1]);
  });

  test.each<[string, (ground: HandMadeGround) => unknown, string]>([
    ["others can come there", (ground) => ground.existing(folder, { mode: 0o711 }), "not root's alone"],
    ["one cannot be made", (ground) => ground.writeAnswers.set(pipe(1), 28), "errno 28"],
  ])("are not made in part: %s", (_what, change, sentence) => {
    const { ground, streams } = opened([], change);
    expect(streams).toEqual(expect.stringContaining(sentence));
    expect(ground.files.has(pipe(0))).toBe(false);
  });

  test("that a killed launcher has left are swept, and those of a session or launcher that lives are not", () => {
    const ground = new HandMadeSession();
    const names = [pipe(0), `${folder}/ai-tools-shell-7.service.1`, `${folder}/other`];
    for (const name of names) ground.files.set(name, "");
    sweepStreams(ground, 990);
    expect(names.filter((name) => ground.files.has(name))).not.toContain(names[1]);
    expect(ground.files.has(`${folder}/other`)).toBe(true);
  });
});

describe("copiers", () => {
  test("ignore the terminal's Ctrl-C, which the session gets", () => {
    const { ground } = started([0]);
    expect(ground.ignored).toContain(SIGINT);
    for (const signal of [SIGHUP, SIGINT, SIGQUIT, SIGTERM]) expect(ground.watched.has(signal)).toBe(true);
  });

  test("that cannot be started leave none behind", () => {
    for (const failing of ["cat", "systemd-run"]) {
      const { ground, session, run } = started([0, 2], (ground) => {
        ground.program = (line) => (line.includes(failing) ? { errno: 11 } : "hangs");
      });
      expect(session).toBe(11);
      if (failing === "cat") expect(run).toBeUndefined();
      for (const child of ground.children) expect(child.abandoned).toBe(true);
    }
    expect(started([0, 2], (ground) => void ground.files.delete(pipe(1))).session).toBe(2);
  });

  const hanging = (terminals: Descriptor[]) =>
    started(terminals, (ground) => {
      ground.program = () => "hangs";
    });

  test.each([
    ["a terminal", [0, 2], limits.drainMs],
    ["files and programs", [], limits.drainSlowlyMs],
    ["files and programs beside a terminal that is read", [0], limits.drainSlowlyMs],
  ] as [string, Descriptor[], number][])("to %s are waited for within their limit", async (_to, terminals, limitMs) => {
    const { ground, session } = hanging(terminals);
    const before = ground.clockMs;
    await finishStreams(ground, session as StartedSession, false);
    expect(ground.clockMs - before).toBe(limitMs);
    const { inward, outward, streams } = session as StartedSession;
    expect([inward.length, outward.length, streams.pipes.length]).toEqual([1, 2, 0]);
    for (const copier of ground.children.slice(0, 3)) expect(copier.abandoned).toBe(true);
    for (const descriptor of [0, 1, 2] as const) expect(ground.files.has(pipe(descriptor))).toBe(false);
  });

  test("to files and programs stay with a session that goes on, and those to a terminal do not", async () => {
    const { ground, session } = hanging([0, 2]);
    const before = ground.clockMs;
    await finishStreams(ground, session as StartedSession, true);
    expect(ground.clockMs - before).toBe(limits.drainMs);
    const { outward } = session as StartedSession;
    expect(outward.map(({ toTerminal }) => toTerminal)).toEqual([false, true]);
    expect(ground.children.slice(0, 3).map((copier) => copier.abandoned)).toEqual([true, false, true]);
  });

  test("to a program that takes nothing are ended by a signal", async () => {
    const { ground, session } = hanging([]);
    ground.signalsToCome = [{ signal: SIGINT, atMs: ground.clockMs + 500 }];
    const before = ground.clockMs;
    await finishStreams(ground, session as StartedSession, false);
    expect(ground.clockMs - before).toBeLessThan(1_000);
  });
});

test("what cannot be told is a terminal", () => {
  const ground = new HandMadeGround();
  ground.program = () => ({ errno: 2 });
  expect(findTerminals(ground)).toEqual([0, 1, 2]);
});
