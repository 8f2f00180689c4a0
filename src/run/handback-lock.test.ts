// SPDX-License-Identifier: Apache-2.0
// The lock of a project's handback, from both sides: who begins waits for it, and nothing is kept from anybody for ever.

import { expect, test } from "vitest";
import { SIGINT } from "../stop/kernel.ts";
import { HandMadeSession, unit } from "./hand-made-session.fixture.ts";
import { lockPath, lockProject, unlockProject } from "./handback-lock.ts";
import { run } from "./run.ts";

const project = { device: 8, inode: 72 };

test("a session begins when the handback in its project is over, having recorded itself before it looks", async () => {
  const ground = new HandMadeSession();
  ground.lockedByOthers.add(lockPath(project));
  const sleep = ground.sleep.bind(ground);
  ground.sleep = async (ms) => {
    if (ground.clockMs >= 1_003_000) ground.lockedByOthers.clear();
    else expect([ground.record()?.unit, ground.started()]).toEqual([unit, undefined]);
    await sleep(ms);
  };
  expect(await run(ground)).toBe(0);
  expect(ground.started()).toBeDefined();
  // It does not keep the handback of others from beginning.
  expect(ground.lock(lockPath(project))).toBeTypeOf("object");
});

test("it is one for each project, and free again when it is let go", async () => {
  const ground = new HandMadeSession();
  const lock = await lockProject(ground, project, 100);
  expect(await lockProject(ground, { device: 8, inode: 73 }, 100)).toBeTypeOf("object");
  expect(await lockProject(ground, project, 100)).toBe("busy");
  unlockProject(ground, lock);
  expect(await lockProject(ground, project, 100)).toBeTypeOf("object");
});

test("an interruption ends the wait, and where there can be no lock there is no wait", async () => {
  const ground = new HandMadeSession();
  ground.lockedByOthers.add(lockPath(project));
  ground.signalArrived = { signal: SIGINT, arrivesMs: 0 };
  const before = ground.clockMs;
  expect(await lockProject(ground, project, 60_000)).toBe("busy");
  ground.lock = () => 30;
  expect(await lockProject(ground, project, 60_000)).toBeUndefined();
  expect(ground.clockMs - before).toBeLessThan(1_000);
});
