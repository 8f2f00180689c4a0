// SPDX-License-Identifier: Apache-2.0
// Whatever somebody does to the wall clock while a stop runs: it waits, signals and ends as if nothing had happened. Only
// the times in its records tell of it.

import { describe, expect, test } from "vitest";

import type { StopRequest } from "./grammar.ts";
import type { HandMadeHost } from "./hand-made-host.fixture.ts";
import { atOnce, events, hostWith, lastStop, plain, withManager } from "./hand-made-stop.fixture.ts";
import { SIGKILL } from "./kernel.ts";
import { limits } from "./limits.ts";
import { stopSessions } from "./stop-sessions.ts";

const dayMs = 86_400_000;
const jumps = [
  ["forward by a day", dayMs],
  ["back by a day", -dayMs],
] as const;

/** What a stop did, and when by the monotonic clock, counted from its beginning. */
interface Done {
  code: number;
  signals: { atMs: number; pid: number; signal: number }[];
  endedMs: number;
  reads: number;
  durationMs: unknown;
}

/** One stop of a session that only SIGKILL ends. From the jump on (monotonic) the wall clock shows this much more. */
async function stopWhile(jump: { atMs: number; byMs: number }, request: StopRequest, more = made): Promise<Done> {
  const host = withManager(hostWith([{ pid: 50 }]));
  more(host);
  const startMs = host.clockMs;
  const wallClockMs = host.wallClockMs.bind(host);
  host.wallClockMs = () => wallClockMs() + (host.clockMs - startMs >= jump.atMs ? jump.byMs : 0);
  const signals: Done["signals"] = [];
  const send = host.signal.bind(host);
  host.signal = (pid, signal) => {
    signals.push({ atMs: host.clockMs - startMs, pid, signal });
    return send(pid, signal);
  };
  const sleep = host.sleep.bind(host);
  host.sleep = (ms) => {
    // A stop that waits for the day to come round again would never end here.
    expect(host.clockMs - startMs).toBeLessThan(limits.questionMs * 10);
    return sleep(ms);
  };
  const code = await stopSessions(host, { ...request, json: true });
  const { durationMs } = JSON.parse(host.printed.out) as { durationMs: unknown };
  const times = events(host) as unknown as { time: string }[];
  const apartMs = Date.parse(times.at(-1)?.time ?? "") - Date.parse(times[0]?.time ?? "");
  expect(Math.abs(apartMs - jump.byMs), "the jump is in the records").toBeLessThan(dayMs / 2);
  expect(lastStop(host)).toMatchObject({ exitCode: code });
  return { code, signals, endedMs: host.clockMs - startMs, reads: host.reads.length, durationMs };
}

function made(host: HandMadeHost): void {
  host.terminals = [];
}

function asking(host: HandMadeHost): void {
  host.terminals = [0, 1, 2];
}

describe.each(jumps)("the wall clock jumps %s", (_, byMs) => {
  test.each([
    ["in the grace", limits.graceMs / 2],
    ["when it is nearly over", limits.graceMs - limits.laterPollMs],
    ["when the kill begins", limits.graceMs],
  ])("%s: the grace is as long as ever, and so is the kill", async (_when, atMs) => {
    const request = { ...plain, yes: true };
    const done = await stopWhile({ atMs, byMs }, request);
    expect(done).toEqual(await stopWhile({ atMs, byMs: 0 }, request));
    expect(done.code).toBe(0);
    const [firstKill] = done.signals.filter(({ signal }) => signal === SIGKILL);
    expect(firstKill?.atMs).toBeGreaterThanOrEqual(limits.graceMs);
  });

  test("while a question stands: it stands as long as ever", async () => {
    const jump = { atMs: limits.questionMs / 2, byMs };
    const done = await stopWhile(jump, plain, asking);
    expect(done).toEqual(await stopWhile({ ...jump, byMs: 0 }, plain, asking));
    expect(done.signals[0]?.atMs).toBeGreaterThanOrEqual(limits.questionMs);
  });

  test("while one by force looks around: nothing waits for it", async () => {
    const done = await stopWhile({ atMs: 20, byMs }, atOnce, slowly);
    expect(done).toEqual(await stopWhile({ atMs: 20, byMs: 0 }, atOnce, slowly));
    expect(done.code).toBe(0);
  });
});

/** Each look at a file takes a millisecond, so that there is a time at which the clock can jump. */
function slowly(host: HandMadeHost): void {
  host.onRead = () => {
    host.clockMs += 1;
  };
}
