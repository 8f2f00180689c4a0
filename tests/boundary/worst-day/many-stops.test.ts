// SPDX-License-Identifier: Apache-2.0
// Promise: two people or twenty may stop at once, one of them may be killed midway, and the slice may go and come back
// meanwhile: each stop gives a verdict of its own that is true, and the manager is there afterwards.

import { beforeEach, describe, expect, test } from "vitest";

import { startAccountManager, startPayloads } from "../../../src/tooling/tempers/payloads.ts";
import { repetitions, rounds } from "../kit/aftermath.ts";
import { calmHost, expectCalm } from "../kit/calm.ts";
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
  return (await host.sh(`sort ${codes}`)).trim().split("\n");
}

test.each(rounds())("two at once both end with 0 and the manager comes back, round %i", async () => {
  expect(await stopAtOnce(2, "--force --yes")).toEqual(["0", "0"]);
  await expectCalm(host, { manager: "active" });
});

test("twenty at once all end with 0, each tells of its own verdict, and the manager comes back", async () => {
  const known = await trailLength(host);
  expect(await stopAtOnce(20, "--force --yes")).toEqual(Array(20).fill("0"));
  const verdicts = (await lastEntries(host, known)).filter((entry) => entry.AI_TOOLS_RESULT === "stopped");
  expect(new Set(verdicts.map((entry) => entry.AI_TOOLS_RUN)).size).toBe(20);
  await expectCalm(host, { manager: "active" });
});

describe("one of them killed midway", () => {
  const kill = `sleep 0.0$((RANDOM_MS)); kill -KILL $(pgrep -x ai-tools-stop | head -n 1)`;

  test.each(rounds().map((round) => [round, Math.round((90 * round) / repetitions())] as const))(
    "of two, round %i, after 0.0%i s",
    async (_, ms) => {
      const killed = await stopAtOnce(2, "--force --yes", kill.replace("$((RANDOM_MS))", String(ms).padStart(2, "0")));
      expect(killed.length).toBe(2);
      expect(["0", "137"]).toEqual(expect.arrayContaining(killed));
      // The one that is left may have left the manager to the one that was killed: then running again brings it back.
      const again = await stopWithReport(host, "--force", "--yes");
      expect(again.code).toBe(0);
      await expectCalm(host, { manager: "active" });
    },
  );

  test("of twenty with a grace: the others end with 0", async () => {
    const ended = await stopAtOnce(20, "--yes", "sleep 3; kill -KILL $(pgrep -x ai-tools-stop | sed -n 10p)");
    expect(ended).toEqual(["0", "137"].flatMap((code) => Array(code === "0" ? 19 : 1).fill(code)));
    await expectCalm(host);
    expect((await stop(host, "--force", "--yes")).code).toBe(0);
    await expectCalm(host, { manager: "active" });
  });
});

describe("a slice", () => {
  test("that is not there: nothing runs, 0, and no manager is started", async () => {
    await host.sh(`systemctl stop ${sliceUnit}; pkill -KILL -x stubborn; until [ ! -e ${slice} ]; do sleep 0.1; done`);
    const { code, report } = await stopWithReport(host, "--force", "--yes");
    expect({ code, verdict: report.verdict }).toEqual({ code: 0, verdict: "nothing-running" });
    await expectCalm(host);
  });

  test("that is not there, and a stray: it is ended", async () => {
    await host.sh(`systemctl stop ${sliceUnit}; until [ ! -e ${slice} ]; do sleep 0.1; done`);
    const { code, report } = await stopWithReport(host, "--force", "--yes");
    expect({ code, verdict: report.verdict }).toEqual({ code: 0, verdict: "stopped" });
    await expectCalm(host);
  });

  test.each(rounds())("that is removed in the grace, and made again with a new session in it, round %i", async () => {
    const session = `systemd-run --quiet --collect --uid=ai-tools --slice=${sliceUnit} /opt/lab/tempers/deaf /run/lab/counters/3704 60`;
    const script = `${helper} --yes --json 2>/dev/null & stop=$!
      sleep 1; systemctl kill -s KILL ${sliceUnit}; pkill -KILL -x headless
      for try in $(seq 50); do rmdir ${slice}/*/ ${slice} 2>/dev/null; [ -e ${slice} ] || break; sleep 0.05; done
      ${session}; [ -e ${slice} ] && echo again >/run/lab/again
      wait $stop`;
    const { code, stdout } = await stopByScript(host, script);
    expect(code).toBe(0);
    expect((JSON.parse(stdout) as Report).verdict).toBe("stopped");
    await expectCalm(host);
  });
});

test("while sessions are started again and again, 0 is only said when the last one is gone", async () => {
  const start = `systemd-run --quiet --collect --uid=ai-tools --slice=${sliceUnit} /opt/lab/tempers/polite /run/lab/counters/37`;
  const script = `( for number in $(seq 10 39); do ${start}$number 60 2>/dev/null; done ) & starter=$!
    ${helper} --force --yes >/dev/null 2>&1; echo $? >${codes}; wait $starter`;
  const { entries } = await stopByScript(host, script);
  const code = (await host.sh(`cat ${codes}`)).trim();
  // What starts after the verdict is not this stop's; what started before it is ended or told of.
  expect(["0", "1"]).toContain(code);
  expect(results(entries)).toContain(
    code === "0" ? "stopped" : results(entries).includes("reappeared") ? "reappeared" : "incomplete",
  );
  expect((await stop(host, "--force", "--yes")).code).toBe(0);
  await expectCalm(host);
});
