// SPDX-License-Identifier: Apache-2.0
// Promise: two people or twenty may stop at once, one of them may be killed midway, and the slice may go and come back
// meanwhile: each stop gives a verdict of its own that is true, and the manager is there afterwards.

import { beforeEach, describe, expect, test } from "vitest";

import { countersOnHost, tempersOnHost } from "../../../src/tooling/tempers/build-tempers.ts";
import { startAccountManager, startPayloads } from "../../../src/tooling/tempers/payloads.ts";
import { measured, repetitions, rounds } from "../kit/aftermath.ts";
import { calmHost, closeWith, expectCalm } from "../kit/calm.ts";
import { sliceOf } from "../kit/faults.ts";
import { labHost } from "../kit/host.ts";
import {
  helper,
  lastEntries,
  type Report,
  results,
  stop,
  stopByScript,
  stopWithReport,
  trailLength,
} from "../kit/stop.ts";

const host = await labHost();
const slice = await sliceOf(host);
const sliceUnit = slice.split("/").at(-1);
const codes = "/run/lab/codes";
const slices = "/run/lab/slices";

closeWith(host);

beforeEach(async () => {
  await calmHost(host);
  await startAccountManager(host);
  await startPayloads(host, [
    { name: "3701", temper: "deaf", place: "session" },
    { name: "3702", temper: "headless", place: "own-manager" },
    { name: "3703", temper: "stubborn", place: "exec" },
  ]);
});

/** Runs so many helpers at once and answers with their exit codes; `more` runs beside them. */
async function stopAtOnce(count: number, options: string, more = ""): Promise<string[]> {
  const one = `( ${helper} ${options} >/dev/null 2>&1; echo $? >>${codes} ) &`;
  await host.sh(`rm -f ${codes}; for number in $(seq ${count}); do ${one} done; ${more}\nwait`, { timeoutMs: 110_000 });
  return (await host.sh(`sort -n ${codes}`)).trim().split("\n");
}

/** What the trail has since then of anything but an end, with what it says of it. */
async function failuresSince(known: number): Promise<string[]> {
  const entries = await lastEntries(host, known);
  const bad = entries.filter((entry) => /alive|incomplete|reappeared|refused/.test(entry.AI_TOOLS_RESULT ?? ""));
  return bad.map((entry) => `${entry.AI_TOOLS_RUN} ${entry.AI_TOOLS_RESULT}: ${entry.message}`);
}

test.each(rounds())("two at once both end with 0 and the manager comes back, round %i", async () => {
  const known = await trailLength(host);
  const ended = await stopAtOnce(2, "--force --yes");
  expect(await failuresSince(known)).toEqual([]);
  expect(ended).toEqual(["0", "0"]);
  await expectCalm(host, { manager: "active" });
});

test.each(rounds())(
  "twenty at once all end with 0, each tells of its own verdict, and the manager comes back, round %i",
  async () => {
    const known = await trailLength(host);
    const ended = await stopAtOnce(20, "--force --yes");
    expect(await failuresSince(known)).toEqual([]);
    expect(ended).toEqual(Array(20).fill("0"));
    const verdicts = (await lastEntries(host, known)).filter((entry) => entry.AI_TOOLS_RESULT === "stopped");
    expect(new Set(verdicts.map((entry) => entry.AI_TOOLS_RUN)).size).toBe(20);
    await expectCalm(host, { manager: "active" });
  },
);

describe("one of them killed midway", () => {
  const hit = "/run/lab/hit";
  /**
   * Kills the `nth` of the helpers that say that they run, so many milliseconds after so many say it. An entry is taken
   * back before its helper ends: whose is there is killed at its work. Only words of the shell's own are fast enough.
   */
  function killOne(nth: number, afterMs: number): string {
    const waiting = afterMs === 0 ? "" : `sleep ${afterMs / 1_000}`;
    return `rm -f ${hit}; cd /run/ai-tools/stop
      until set -- [0-9]*-[0-9]* && [ -e "$1" ] && [ $# -ge ${nth} ]; do sleep 0.002; done
      shift ${nth - 1}; ${waiting}
      if [ -e "$1" ]; then kill -KILL "\${1%%-*}" && echo hit >${hit}; fi`;
  }
  const wasHit = async () => (await host.run(["test", "-e", hit])).code === 0;

  test.each(rounds().map((round) => [round, Math.round((90 * (round - 1)) / repetitions())] as const))(
    "of two, round %i, %i ms after its announcement",
    async (round, afterMs) => {
      const ended = await stopAtOnce(2, "--force --yes", killOne(1, afterMs));
      // The first is killed in any case; a later one may have done its work by then.
      if (round === 1) expect(await wasHit()).toBe(true);
      expect(ended).toEqual((await wasHit()) ? ["0", "137"] : ["0", "0"]);
      // The one that is left may have left the manager to the one that was killed: then running again brings it back.
      const again = await stopWithReport(host, "--force", "--yes");
      expect(again.code).toBe(0);
      await expectCalm(host, { manager: "active" });
    },
  );

  test("of twenty with a grace: the others end with 0", async () => {
    const ended = await stopAtOnce(20, "--yes", killOne(10, 0));
    expect(await wasHit()).toBe(true);
    expect(ended).toEqual([...Array(19).fill("0"), "137"]);
    await expectCalm(host);
    expect((await stop(host, "--force", "--yes")).code).toBe(0);
    await expectCalm(host, { manager: "active" });
  });
});

describe("a slice", () => {
  // A plain stop of the slice would wait for the deaf ones.
  const removeSlice = `systemctl kill -s KILL ${sliceUnit}; pkill -KILL -x headless; systemctl stop ${sliceUnit}`;

  test("that is not there: nothing runs, 0, and no manager is started", async () => {
    await host.sh(`${removeSlice}; pkill -KILL -x stubborn; until [ ! -e ${slice} ]; do sleep 0.1; done`);
    const { code, report } = await stopWithReport(host, "--force", "--yes");
    expect({ code, verdict: report.verdict }).toEqual({ code: 0, verdict: "nothing-running" });
    await expectCalm(host);
  });

  test("that is not there, and a stray: it is ended", async () => {
    await host.sh(`${removeSlice}; until [ ! -e ${slice} ]; do sleep 0.1; done`);
    const { code, report } = await stopWithReport(host, "--force", "--yes");
    expect({ code, verdict: report.verdict }).toEqual({ code: 0, verdict: "stopped" });
    await expectCalm(host);
  });

  test.each(rounds())("that is removed in the grace, and made again with a new session in it, round %i", async () => {
    const session = `systemd-run --quiet --collect --uid=ai-tools --slice=${sliceUnit} ${tempersOnHost}/deaf ${countersOnHost}/3704 60`;
    const script = `${helper} --yes --json 2>/dev/null & stop=$!
      sleep 1; stat -c %i ${slice} >${slices}
      ${removeSlice}
      for try in $(seq 50); do rmdir ${slice}/*/ ${slice} 2>/dev/null; [ -e ${slice} ] || break; sleep 0.05; done
      ${session}; stat -c %i ${slice} >>${slices}; ls /run/ai-tools/stop >>${slices}
      wait $stop`;
    const { code, stdout } = await stopByScript(host, script);
    const [before, after, announced] = (await host.sh(`cat ${slices}`)).split("\n");
    expect(Number(before)).toBeGreaterThan(0);
    expect(Number(after)).toBeGreaterThan(0);
    expect(after, "another slice than the one that the stop began with").not.toBe(before);
    expect(announced, "the stop still runs").toMatch(/^[0-9]+-[0-9]+$/);
    expect(code).toBe(0);
    expect((JSON.parse(stdout) as Report).verdict).toBe("stopped");
    await expectCalm(host);
  });
});

/** A clock tick of a start time and the two readings that turn it into a time of day. */
const clockNoiseMs = 50;

/** When each process of the account in its slice was started, as a time of day in milliseconds. */
async function startsInSlice(): Promise<number[]> {
  const text = await host.sh(`echo "$(date +%s%3N) $(cut -d' ' -f1 /proc/uptime)"
    for pid in $(pgrep -u ai-tools -x polite); do
      if grep -q ${sliceUnit} /proc/$pid/cgroup; then sed 's/.*) //' /proc/$pid/stat | cut -d' ' -f20; fi
    done; true`);
  const [clocks = "", ...ticks] = text.trim().split("\n");
  const [nowMs = 0, uptimeS = 0] = clocks.split(" ").map(Number);
  return ticks.map((tick) => nowMs - uptimeS * 1_000 + Number(tick) * 10);
}

test.each(rounds())(
  "while sessions are started again and again, 0 is only said when the last one is gone, round %i",
  async (round) => {
    // In the last round until the stop is over, in the others until one of its steps or the next.
    const most = round === repetitions() ? 80 : Math.ceil((12 * round) / repetitions());
    const start = `systemd-run --quiet --collect --uid=ai-tools --slice=${sliceUnit} ${tempersOnHost}/polite ${countersOnHost}/37`;
    const script = `rm -f ${codes}; ( number=10; while [ ! -e ${codes} ] && [ $number -lt $((10 + ${most})) ]; do
      ${start}$number 60 2>/dev/null; number=$((number + 1)); done
      until [ -e ${codes} ]; do sleep 0.1; done; sleep 0.3; ${start}99 60 ) & starter=$!
    ${helper} --force --yes >/dev/null 2>&1; echo $? >${codes}; wait $starter`;
    const { entries } = await stopByScript(host, script);
    const code = (await host.sh(`cat ${codes}`)).trim();
    expect(["0", "1"]).toContain(code);
    const told = results(entries);
    expect(told).toContain(code === "0" ? "stopped" : told.includes("reappeared") ? "reappeared" : "incomplete");
    const starts = await startsInSlice();
    expect(starts.length, "what was started after the stop runs").toBeGreaterThan(0);
    // What starts after the last look is not this stop's. That look begins after the manager's return was recorded.
    const restored = entries.filter((entry) => /^manager-/.test(entry.AI_TOOLS_RESULT ?? "")).at(-1);
    if (code === "0") {
      const lookedAtMs = Date.parse(restored?.time ?? "");
      expect(lookedAtMs).toBeGreaterThan(0);
      expect(starts.filter((startMs) => startMs < lookedAtMs - clockNoiseMs)).toEqual([]);
    }
    measured("started again and again", { code, most, sessions: starts.length });
    expect((await stop(host, "--force", "--yes")).code).toBe(0);
    await expectCalm(host);
  },
);
