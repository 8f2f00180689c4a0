// SPDX-License-Identifier: Apache-2.0
// Promise: no session hides in the short lives of its processes, however fast it forks and ends, inside the slice and
// outside it, also where the kernel gives out low numbers again.

import { afterAll, beforeEach, describe, expect, test } from "vitest";

import { countersOnHost, tempersOnHost } from "../../../src/tooling/tempers/build-tempers.ts";
import { parseCounters } from "../../../src/tooling/tempers/counters.ts";
import { type Place, startAccountManager, startPayloads, type Wanted } from "../../../src/tooling/tempers/payloads.ts";
import {
  bystanders,
  expectAftermath,
  expectStopped,
  freshHost,
  measured,
  rounds,
  stopWatched,
} from "../kit/aftermath.ts";
import { clearHost, eventually, movedSince, running } from "../kit/facts.ts";
import { labHost } from "../kit/host.ts";
import { helper, type Report, stopByScript } from "../kit/stop.ts";

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

/** Starts these chains, shows each of them alive, does what is to be done before the stop, and stops. */
async function stopChains(wanted: Wanted[], prepare: () => Promise<void> = async () => undefined): Promise<void> {
  await startPayloads(host, wanted);
  await prepare();
  expect(await running(host)).toEqual([...bystanders, ...wanted.map(({ name }) => name)].sort());
  const result = await stopWatched(host, "--force", "--yes");
  await expectStopped(host, result);
  await expectAftermath(host, result.report);
}

/** Uses up numbers of processes until the low ones come again, or until so many are left. */
async function burnNumbers(left: number): Promise<void> {
  const last = Number(await host.sh(`mount -o remount,bind,rw /proc/sys && ${tempersOnHost}/burning ${left}`));
  const next = Number(await host.sh("sh -c 'echo $$'"));
  if (left === 0) expect(next).toBeLessThan(last);
}

describe.each(["session", "own-manager"] as Place[])("chains of all hops at once, %s", (place) => {
  test.each(rounds())("round %i", async () => {
    if (place === "own-manager") await startAccountManager(host);
    const all = links.flatMap((link, kind) =>
      hopsUs.map((hop, number) => chain(String(100 * (kind + 1) + number), place, hop, hop, 1, link)),
    );
    await stopChains(all);
  });
});

describe.each(hopsUs)("a stray chain with hops of %i µs", (hopUs) => {
  describe.each(links)("of %s links", (link) => {
    test.each(rounds())("round %i", () => stopChains([chain("301", "exec", hopUs, hopUs, 1, link)]));

    // Numbers above the last one given are the oldest then; 300 of them lie in the way of whoever reads the list first.
    test.each(rounds())("after the numbers have begun again, with 300 old ones above, round %i", async () => {
      const crowd = "for number in $(seq 300); do sleep 100 & done; wait";
      await host.sh(`systemd-run --quiet --collect --unit=lab-crowd --uid=ursula sh -c '${crowd}'`);
      await eventually(
        "the crowd is there",
        async () => Number(await host.sh("pgrep -c -u ursula sleep || true")) >= 300,
      );
      await burnNumbers(0);
      await stopChains([chain("302", "exec", hopUs, hopUs, 1, link)]);
    });
  });
});

test.each(rounds())("numbers that begin again while the stop runs, round %i", async () => {
  await stopChains(
    [chain("311", "exec", 300, 300, 1, "plain"), chain("312", "exec", 1_000, 1_000, 1, "headless")],
    () => burnNumbers(3_000),
  );
});

// One hundred of these outran an ascending census and a kill of the slice. They take the host whole, so that everything
// from their start to the verdict is one script on it.
test.each(rounds())("250 headless lineages in the slice and 50 outside it, round %i", async () => {
  const lineages = (name: string, count: number) =>
    `${tempersOnHost}/chain ${countersOnHost}/${name} 40 100 2000 ${count} headless`;
  const asAccount = "setpriv --reuid=ai-tools --regid=ai-tools --clear-groups";
  const counters = `${tempersOnHost}/read-counters ${countersOnHost}; echo ----`;
  const result = await stopByScript(
    host,
    `slice=user-$(id -u ai-tools).slice
     systemd-run --quiet --collect --uid=ai-tools --slice=$slice --unit=ai-tools-claude-code-401 ${lineages("401", 250)} &&
     (cd / && ${asAccount} setsid --fork ${lineages("402", 50)} </dev/null >/dev/null 2>&1) || exit
     sleep 1; ${counters}; sleep 2; ${counters}; exec ${helper} --json --force --yes`,
  );
  const [before = "", after = "", json = ""] = result.stdout.split("----\n");
  const moved = movedSince(parseCounters(before), parseCounters(after)).map(({ payload }) => payload);
  const count = (name: string) => moved.filter((payload) => payload === name).length;
  measured("lineages that went on in two seconds", { slots: count("401"), outside: count("402") });
  // Lineages beyond the counters' 127 slots share one with another; on a busy machine some rest for seconds.
  expect(count("401")).toBeGreaterThan(100);
  expect(count("402")).toBeGreaterThan(40);
  const report = JSON.parse(json) as Report;
  await expectStopped(host, { ...result, report });
  await expectAftermath(host, report);
});
