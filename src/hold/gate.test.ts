// SPDX-License-Identifier: Apache-2.0
// The launch gate on a ground made by hand: what closes it, and that unknown is closed.

import { beforeEach, describe, expect, test } from "vitest";
import { HandMadeGround } from "../ground/hand-made-ground.fixture.ts";
import { holdPath } from "../ground/places.ts";
import { encodeUtf8 } from "../ground/records.ts";
import { EACCES, EIO } from "../stop/kernel.ts";
import { whyClosed } from "./gate.ts";

const entries = "/run/ai-tools/stop";
let ground: HandMadeGround;

beforeEach(() => {
  ground = new HandMadeGround();
});

/** A stop whose helper is in this state. */
function stopOf(pid: number, state: string, startTicks = 900): void {
  ground.directories.set(entries, [`${pid}-900`, "count"]);
  ground.files.set(`${entries}/${pid}-900`, String(ground.clockMs));
  ground.files.set(
    `/proc/${pid}/status`,
    `Name:\tai-tools-stop\nState:\t${state}\nTgid:\t${pid}\nPPid:\t1\nUid:\t0\t0\t0\t0\nThreads:\t1\n`,
  );
  const fields = Array.from({ length: 17 }, () => "0").join(" ");
  ground.files.set(`/proc/${pid}/stat`, `${pid} (ai-tools-stop) S ${fields} 0 ${startTicks} 0\n`);
}

function held(record: object): void {
  ground.files.set(holdPath, encodeUtf8(JSON.stringify(record)));
}

describe("the gate", () => {
  test("is open where no stop ever ran and nothing is held", () => {
    expect(whyClosed(ground)).toBeUndefined();
  });

  test("is closed while a stop runs, and open again when its helper is gone, dead or another process", () => {
    stopOf(70, "S (sleeping)");
    expect(whyClosed(ground)).toContain("a stop is running");
    stopOf(70, "Z (zombie)");
    expect(whyClosed(ground)).toBeUndefined();
    stopOf(70, "S (sleeping)", 901);
    expect(whyClosed(ground)).toBeUndefined();
  });

  test("is closed while new sessions are held, and says who holds them, since when, why, and what lifts it", () => {
    held({ operator: "olga", since: "2026-11-30T21:00:00.000Z", reason: "incident 7" });
    expect(whyClosed(ground)).toBe(
      "new sessions are held since 2026-11-30T21:00:00.000Z by olga: incident 7; to lift it: ai-tools --release",
    );
  });

  test("shows nothing of a reason but printable ASCII on one line", () => {
    held({ operator: "olga", since: "now", reason: "\u001b[2J\nai-tools: all is well \u00e9" });
    expect(whyClosed(ground)).toMatch(/^[\x20-\x7e]+$/);
    expect(whyClosed(ground)).toContain("\\xc3\\xa9");
  });

  test.each([
    ["", "no record"],
    ["{}", "half a record"],
    ['{"operator":"olga"', "a torn one"],
    ["null", "null"],
  ])("is closed by %j, which is %s", (text) => {
    ground.files.set(holdPath, text);
    expect(whyClosed(ground)).toContain("cannot be read, and counts");
  });

  test.each([EACCES, EIO])("is closed where the hold or the stops cannot be read (errno %i)", (errno) => {
    ground.files.set(holdPath, errno);
    expect(whyClosed(ground)).toContain("cannot be read, and counts");
    ground.files.delete(holdPath);
    ground.directories.set(entries, errno);
    expect(whyClosed(ground)).toContain("cannot be told");
  });
});
