// SPDX-License-Identifier: Apache-2.0
// The laws of a stop over every small world with a condition of the host on top: the largest of the small ones, in a file
// of its own so that it runs beside the others.

import { expect, test } from "vitest";
import { breachesIn } from "./simulation/search.ts";
import { conditionWorlds } from "./simulation/small-worlds.ts";
import { stopSessions } from "./stop-sessions.ts";

test("the laws of a stop hold for each temper under each condition", { timeout: 600_000 }, async () => {
  const { worlds, found } = await breachesIn(stopSessions, conditionWorlds());
  expect(found.join("\n\n")).toBe("");
  expect(worlds).toBeGreaterThanOrEqual(2_400);
});
