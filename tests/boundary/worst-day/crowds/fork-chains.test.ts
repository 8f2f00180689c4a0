// SPDX-License-Identifier: Apache-2.0
// Promise: no session hides in the short lives of its processes, however fast it forks and ends, inside the slice and
// outside it, also where the kernel gives out low numbers again.

import { afterAll, beforeEach, describe, expect, test } from "vitest";
import type { TrailEntry } from "../../../../src/tooling/drill/observer.ts";
import { countersOnHost, tempersOnHost } from "../../../../src/tooling/tempers/build-tempers.ts";
import {
  type Place,
  startAccountManager,
  startPayloads,
  type Wanted,
} from "../../../../src/tooling/tempers/payloads.ts";
import {
  bystanders,
  expectAftermath,
  expectStopped,
  freshHost,
  measured,
  rounds,
  stopWatched,
} from "../../kit/aftermath.ts";
import { clearHost, eventually, running } from "../../kit/facts.ts";
import { labHost } from "../../kit/host.ts";
import { entryOf, helper, stopByScript } from "../../kit/stop.ts";
import { withReport } from "../../kit/units.ts";

const host = await labHost();

/** How long a link of a chain lives, in microseconds. */
const hopsUs = [100, 300, 1_000, 5_000];
/** A link is an ordinary process, or a zombie leader with one living thread. */
const links = ["plain", "headless"] as const;

beforeEach(() => freshHost(host));
afterAll(() => clearHost(host));

function chain(name: string, place: Place, shortestUs: number, longestUs: number, lineages: number, link: string) {
  const words = [shortestUs, longestUs, lineages, link].map(String);
  return { name, temper: "chain", place, words } satisfies Wanted;
}

/** Starts these chains and shows each of them alive. */
async function startChains(wanted: Wanted[]): Promise<void> {
  await startPayloads(host, wanted);
  expect(await running(host)).toEqual([...bystanders, ...wanted.map(({ name }) => name)].sort());
}

async function stopChains(wanted: Wanted[], ...options: string[]): Promise<void> {
  await startChains(wanted);
  const result = await stopWatched(host, "--yes", ...options);
  await expectStopped(host, result);
  await expectAftermath(host, result.report);
}

/** The kernel's last numbers can be skipped only where this can be written. */
const openNumbers = "mount -o remount,bind,rw /proc/sys";

/** Uses up numbers of processes until the low ones come again. */
async function burnNumbers(): Promise<void> {
  const last = Number(await host.sh(`${openNumbers} && ${tempersOnHost}/burning 0`));
  expect(Number(await host.sh("sh -c 'echo $$'"))).toBeLessThan(last);
}

describe.each(["session", "own-manager"] as Place[])("chains of all hops at once, %s", (place) => {
  test.each(rounds())("round %i", async () => {
    if (place === "own-manager") await startAccountManager(host);
    const all = links.flatMap((link, kind) =>
      hopsUs.map((hop, number) => chain(String(100 * (kind + 1) + number), place, hop, hop, 1, link)),
    );
    await stopChains(all, "--force");
  });
});

describe.each(hopsUs)("a stray chain with hops of %i µs", (hopUs) => {
  describe.each(links)("of %s links", (link) => {
    test.each(rounds())("round %i", () => stopChains([chain("301", "exec", hopUs, hopUs, 1, link)], "--force"));

    // Numbers above the last one given are the oldest then; 300 of them lie in the way of whoever reads the list first.
    test.each(rounds())("after the numbers have begun again, with 300 old ones above, round %i", async () => {
      const crowd = "for number in $(seq 300); do sleep 100 & done; wait";
      await host.sh(`systemd-run --quiet --collect --unit=lab-crowd --uid=ursula sh -c '${crowd}'`);
      await eventually(
        "the crowd is there",
        async () => Number(await host.sh("pgrep -c -u ursula sleep || true")) >= 300,
      );
      await burnNumbers();
      await stopChains([chain("302", "exec", hopUs, hopUs, 1, link)], "--force");
    });
  });
});

test("chains of all hops and links go on through a grace, in the slice and outside, and end with it", async () => {
  const all = links.flatMap((link, kind) => [
    chain(String(303 + kind), "exec", 300, 300, 1, link),
    chain(String(305 + kind), "session", 100, 5_000, 2, link),
  ]);
  await stopChains(all);
});

describe("numbers that begin again while the stop runs", () => {
  /** How many numbers are left when the helper starts, so that they begin again in one of its steps or another. */
  const lefts = [600, 1_000, 1_500, 2_000, 2_500];

  test.each(rounds().map((round) => [lefts[round % lefts.length], round]))("%i are left, round %i", async (left) => {
    await startAccountManager(host); // its return makes the stop long enough
    await startChains([chain("311", "exec", 300, 300, 1, "plain"), chain("312", "exec", 1_000, 1_000, 1, "headless")]);
    const now = "date +%s%3N";
    const result = await stopByScript(
      host,
      `${openNumbers} && ${tempersOnHost}/burning ${left} >/dev/null || exit
       begun=$(${now}); (${tempersOnHost}/burning 0 >/dev/null; ${now} >/run/lab/wrapped) &
       ${helper} --json --force --yes; code=$?
       ended=$(${now}); wait; echo "----$begun $(cat /run/lab/wrapped) $ended"; exit $code`,
    );
    const [json = "", times = ""] = result.stdout.split("----");
    const [begun = 0, wrapped = 0, ended = 0] = times.split(" ").map(Number);
    measured("numbers began again", { afterMs: wrapped - begun, verdictAfterMs: verdictMs(result.entries) });
    expect(wrapped).toBeLessThan(ended);
    const stopped = withReport(result, json);
    await expectStopped(host, stopped);
    await expectAftermath(host, stopped.report);
  });
});

/** From the request to the verdict, before the manager comes back. */
function verdictMs(entries: TrailEntry[]): number {
  return Number(entryOf(entries, "stopped").AI_TOOLS_DURATION_MS);
}

// One hundred of these outran an ascending census and a kill of the slice. They take the host whole, so that everything
// from their start to the verdict is one script on it.
const inRounds: [how: string, round: number][] = [
  ...rounds().map((round): [string, number] => ["--force", round]),
  ["with a grace", 1],
];
test.each(inRounds)("250 headless lineages in the slice and 50 outside it: %s, round %i", async (how) => {
  const lineages = (name: string, count: number) =>
    `${tempersOnHost}/chain ${countersOnHost}/${name} 40 100 2000 ${count} headless`;
  const asAccount = "setpriv --reuid=ai-tools --regid=ai-tools --clear-groups";
  // The dead that PID 1 has not reaped yet fill the account's limit, and most of them wait for room: that they are there is
  // told by their number, that they go on by some.
  const moved = (name: string) => `diff before after | grep -c '^> ${name} '`;
  const result = await stopByScript(
    host,
    `slice=user-$(id -u ai-tools).slice; mkdir -p /run/lab/lineages && cd /run/lab/lineages || exit
     read_counters() { ${tempersOnHost}/read-counters ${countersOnHost}; }
     set -- /proc/[0-9]*; others=$#
     systemd-run --quiet --collect -p TasksMax=infinity --uid=ai-tools --slice=$slice --unit=ai-tools-claude-code-401 ${lineages("401", 250)} &&
     (cd / && ${asAccount} setsid --fork ${lineages("402", 50)} </dev/null >/dev/null 2>&1) || exit
     sleep 1; read_counters >before
     for look in 1 2 3 4 5 6 7 8; do
       sleep 1; read_counters >after; set -- /proc/[0-9]*; echo $(($# - others)) >there
       [ $(cat there) -ge 280 ] && [ $(${moved("40[12]")}) -gt 40 ] && break
     done
     exec ${helper} --json --yes ${how === "--force" ? how : ""}`,
  );
  const count = async (name: string) => Number(await host.sh(`cd /run/lab/lineages && ${moved(name)} || true`));
  const [inside, outside] = [await count("401"), await count("402")];
  const there = Number(await host.sh("cat /run/lab/lineages/there"));
  measured("lineages", { there, inside, outside });
  expect(there).toBeGreaterThanOrEqual(280);
  expect(inside + outside).toBeGreaterThan(40);
  const stopped = withReport(result, result.stdout);
  await expectStopped(host, stopped);
  await expectAftermath(host, stopped.report);
});
