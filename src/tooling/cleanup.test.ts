// SPDX-License-Identifier: Apache-2.0
// What a command started is ended once, the last started first, and one failing end does not keep the others from theirs.

import { afterEach, expect, test, vi } from "vitest";
import { onExit, runCleanups } from "./cleanup.ts";

afterEach(() => vi.restoreAllMocks());

test("cleanups run once, the last registered first", async () => {
  const order: string[] = [];
  onExit(() => void order.push("engine"), "engine");
  onExit(async () => void order.push("host"), "host");
  expect(await Promise.all([runCleanups(), runCleanups()])).toEqual([true, true]);
  expect(await runCleanups()).toBe(true);
  expect(order).toEqual(["host", "engine"]);
});

test("a cleanup that fails is named, and the others still run", async () => {
  const said = vi.spyOn(console, "error").mockImplementation(() => undefined);
  const order: string[] = [];
  onExit(() => void order.push("engine"), "engine");
  onExit(() => Promise.reject(new Error("busy")), "host");
  expect(await runCleanups()).toBe(false);
  expect(order).toEqual(["engine"]);
  expect(said).toHaveBeenCalledWith("could not end host: busy");
});

test("a registration that was taken back does not run", async () => {
  const order: string[] = [];
  const forget = onExit(() => void order.push("host"), "host");
  forget();
  await runCleanups();
  expect(order).toEqual([]);
});
