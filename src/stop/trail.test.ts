// SPDX-License-Identifier: Apache-2.0
// The helper's side of the trail: it hands events over, never waits before the end, and tells what did not arrive.

import { describe, expect, test } from "vitest";
import { HandMadeHost, inTurn, type Program } from "./hand-made-host.fixture.ts";
import { EAGAIN } from "./kernel.ts";
import { limits } from "./limits.ts";
import { endWord, journalWord, Trail } from "./trail.ts";

function trailWith(recorder: Program) {
  const host = new HandMadeHost();
  host.recorder = recorder;
  return { host, trail: new Trail(host, { AI_TOOLS_RUN: "r1", AI_TOOLS_FORCE: false }) };
}

const done: Program = { code: 0, output: "done\n" };

describe("an event", () => {
  test("is one line of JSON with its result, time, message and what goes with all events", () => {
    const { host, trail } = trailWith(done);
    trail.record("requested", "stop requested by olga (uid 1000)");
    trail.add({ AI_TOOLS_CONSENT: "prompt" });
    trail.record("killed", "a.service: SIGKILL", { AI_TOOLS_UNIT: "a.service" });
    const events = (host.children[0]?.sent ?? "")
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(events).toMatchObject([
      {
        message: "stop requested by olga (uid 1000)",
        AI_TOOLS_RESULT: "requested",
        AI_TOOLS_RUN: "r1",
        AI_TOOLS_FORCE: false,
      },
      { AI_TOOLS_RESULT: "killed", AI_TOOLS_RUN: "r1", AI_TOOLS_CONSENT: "prompt", AI_TOOLS_UNIT: "a.service" },
    ]);
    expect(events[0].time).toMatch(/^2026-01-02T03:.*Z$/);
    expect(events[0]).not.toHaveProperty("AI_TOOLS_CONSENT");
  });

  test("is handed over without any waiting, also to a recorder that hangs", () => {
    const { host, trail } = trailWith("hangs");
    const startMs = host.clockMs;
    for (let index = 0; index < 1_000; index++) trail.record("killed", "x");
    trail.showInJournal();
    expect(host.clockMs).toBe(startMs);
  });

  test("does not go to the journal before the helper says so", () => {
    const { host, trail } = trailWith(done);
    trail.record("requested", "x");
    expect(host.children[0]?.sent).not.toContain(`${journalWord}\n`);
    trail.showInJournal();
    expect(host.children[0]?.sent).toMatch(/\njournal\n$/);
  });
});

describe("at the end", () => {
  test("the recorder is told the end, and a person nothing where both sinks have everything", async () => {
    const { host, trail } = trailWith({ ...done, afterMs: 300 });
    expect(await trail.finish()).toEqual({ problems: [], hints: [] });
    expect(host.children[0]).toMatchObject({ sent: `${endWord}\n`, inputClosed: true, abandoned: false });
  });

  test("what the recorder says about a sink is told as it is, and the other sink is not blamed", async () => {
    const output = "/var/log/ai-tools/stop.log could not be written (errno 28)\ndone\n";
    expect(await trailWith({ code: 1, output }).trail.finish()).toEqual({
      problems: ["/var/log/ai-tools/stop.log could not be written (errno 28)"],
      hints: [],
    });
  });

  test("hints are told apart from problems, and neither hides that the recorder ended early", async () => {
    const output = "sink one\nhint: The account has a crontab\nsink two\nhint: at jobs: hint: twice\n";
    const hints = ["The account has a crontab", "at jobs: hint: twice"];
    expect(await trailWith({ code: 1, output: `${output}done\n` }).trail.finish()).toEqual({
      problems: ["sink one", "sink two"],
      hints,
    });
    expect(await trailWith({ code: 137, output }).trail.finish()).toEqual({
      problems: ["the trail may be incomplete: the recorder ended early", "sink one", "sink two"],
      hints,
    });
  });

  test("a recorder that ended without a last word is told", async () => {
    expect((await trailWith({ code: 137, output: "" }).trail.finish()).problems[0]).toContain("ended early");
  });

  test("a recorder that hangs is waited for at most so long, told, and left to go on alone", async () => {
    const { host, trail } = trailWith("hangs");
    const startMs = host.clockMs;
    expect((await trail.finish()).problems[0]).toContain("still waiting for a sink");
    expect(host.clockMs - startMs).toBeLessThanOrEqual(limits.reportMs + limits.childPollMs);
    expect(host.children[0]?.abandoned).toBe(false);
  });

  test("a recorder that never started is told with the reason, and no event breaks the run", async () => {
    const { trail } = trailWith({ errno: EAGAIN });
    trail.record("requested", "x");
    trail.showInJournal();
    expect(await trail.finish()).toEqual({
      problems: ["the trail was not written: the recorder did not start (errno 11)"],
      hints: [],
    });
  });

  test("a recorder that could not start before is started, and gets every event in its order", async () => {
    const host = new HandMadeHost();
    host.recorder = inTurn<Program>({ errno: EAGAIN }, done);
    const trail = new Trail(host, { AI_TOOLS_RUN: "r1" });
    trail.record("requested", "first");
    trail.add({ AI_TOOLS_CONSENT: "flag" });
    trail.record("killed", "second");
    trail.showInJournal();
    trail.record("manager-restored", "third");
    expect(host.children).toEqual([]);
    expect(await trail.finish()).toEqual({ problems: [], hints: [] });
    const lines = (host.children[0]?.sent ?? "").trimEnd().split("\n");
    expect(lines.map((line) => (line.startsWith("{") ? JSON.parse(line).message : line))).toEqual([
      "first",
      "second",
      journalWord,
      "third",
      endWord,
    ]);
    expect(JSON.parse(lines[0] ?? "")).not.toHaveProperty("AI_TOOLS_CONSENT");
    expect([host.children.length, host.children[0]?.inputClosed]).toEqual([1, true]);
  });

  test("an error of its own in an event ends no run, and is told once all others are written", async () => {
    const { host, trail } = trailWith(done);
    const clock = host.wallClockMs.bind(host);
    trail.record("requested", "first");
    host.wallClockMs = () => {
      throw new Error("out of\x1b everything");
    };
    trail.record("killed", "lost");
    host.wallClockMs = clock;
    trail.record("stopped", "last");
    expect(await trail.finish()).toEqual({
      problems: [expect.stringMatching(/^the trail: an error of its own \(Error: out of[\x20-\x7e]+everything\)$/)],
      hints: [],
    });
    const sent = host.children[0]?.sent ?? "";
    expect([sent.includes("first"), sent.includes("lost"), sent.includes("last")]).toEqual([true, false, true]);
  });

  test("a recorder whose start was an error of our own is tried once more", async () => {
    const host = new HandMadeHost();
    const start = host.startRecorder.bind(host);
    let starts = 0;
    host.startRecorder = () => {
      if (++starts === 1) throw new Error("out of everything");
      return start();
    };
    const trail = new Trail(host, { AI_TOOLS_RUN: "r1" });
    trail.record("requested", "first");
    expect((await trail.finish()).problems).toEqual([expect.stringContaining("out of everything")]);
    expect(host.children[0]?.sent).toContain("first");
  });

  test.each([130, 143])(
    "a recorder that the terminal ended before it could read is started once more, and gets every event: %i",
    async (code) => {
      const host = new HandMadeHost();
      host.recorder = inTurn<Program>({ code, output: "" }, done);
      const trail = new Trail(host, { AI_TOOLS_RUN: "r1" });
      trail.record("requested", "first");
      trail.record("interrupted", "second");
      expect(await trail.finish()).toEqual({ problems: [], hints: [] });
      const lines = (host.children[1]?.sent ?? "").trimEnd().split("\n");
      expect(lines.map((line) => (line.startsWith("{") ? JSON.parse(line).message : line))).toEqual([
        "first",
        "second",
        endWord,
      ]);
    },
  );

  test("a recorder that did start is not started again", async () => {
    const { host, trail } = trailWith(done);
    trail.record("requested", "x");
    await trail.finish();
    expect(host.children).toHaveLength(1);
  });
});
