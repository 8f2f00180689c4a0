// SPDX-License-Identifier: Apache-2.0
// Promise: whatever a session does in order to stay alive, and wherever it lives, a stop ends it and says how.

import { afterAll, beforeEach, describe, expect, test } from "vitest";

import { countersOnHost, tempersOnHost } from "../../../src/tooling/tempers/build-tempers.ts";
import {
  type Payload,
  type Place,
  startAccountManager,
  startPayloads,
  type Temper,
  type Wanted,
} from "../../../src/tooling/tempers/payloads.ts";
import { bystanders, expectAftermath, expectStopped, freshHost, rounds, stopWatched } from "../kit/aftermath.ts";
import { clearHost, countersOf, eventually, running } from "../kit/facts.ts";
import { labHost } from "../kit/host.ts";

const host = await labHost();
const uid = (await host.sh("id -u ai-tools")).trim();

/** What a session of this temper does is in the source of that name; what becomes of it with a grace stands here. */
interface Case {
  temper: Temper;
  words?: string[];
  outcome: "terminated" | "killed";
}

// pi 9460, llxprt-code 3637 (deaf), codex 21994 (adopting), claude-code 25963 (restarting)
const tempers: Case[] = [
  { temper: "deaf", outcome: "killed" },
  { temper: "heir", outcome: "killed" },
  { temper: "adopting", outcome: "killed" },
  { temper: "headless", outcome: "killed" },
  { temper: "restarting", outcome: "killed" },
  { temper: "stopped", outcome: "terminated" },
  { temper: "restopping", outcome: "killed" },
  { temper: "vforking", outcome: "killed" },
  { temper: "saving-by-program", outcome: "terminated" },
];

// runc 2105, 3134 (frozen); runc 3821, containerd/cgroups 318 (threaded)
const ofOwnSubtree: Case[] = [
  { temper: "hopping", outcome: "killed" },
  { temper: "self-frozen", outcome: "killed" },
  { temper: "refreezing", outcome: "killed" },
  { temper: "threaded", words: ["whole"], outcome: "killed" },
  { temper: "threaded", words: ["split"], outcome: "killed" },
  { temper: "buried", outcome: "killed" },
];

/** Those whose counters stand still though they live; that is shown in another way. */
const standing: Temper[] = ["stopped", "self-frozen"];

const saving = tempers.filter(({ temper }) => temper === "saving-by-program");

const casesIn: Partial<Record<Place, Case[]>> = {
  session: tempers,
  "session-delegated": [...saving, ...ofOwnSubtree],
  "session-moved": [...tempers, ...ofOwnSubtree],
  "own-manager": [...tempers, ...ofOwnSubtree],
  "system-unit": tempers,
  // No kill of the slice reaches these.
  "system-delegated": [...saving, ...ofOwnSubtree],
  exec: tempers,
};
const places = Object.keys(casesIn) as Place[];

beforeEach(() => freshHost(host));
afterAll(() => clearHost(host));

/** Starts a payload for each case in this place and shows that every one is alive. */
async function start(place: Place, cases: Case[]): Promise<Payload[]> {
  if (place === "own-manager" || place === "session-moved") await startAccountManager(host);
  const wanted: Wanted[] = cases.map(({ temper, words = [] }, number) => ({
    name: String(101 + number),
    temper,
    place,
    words,
  }));
  const payloads = await startPayloads(host, wanted);
  const working = payloads.filter(({ temper }) => !standing.includes(temper)).map(({ name }) => name);
  const expected = [...bystanders, ...working].sort();
  // Those that stand still have counted a little before that.
  await eventually(`only ${expected} count`, async () => String(await running(host)) === String(expected));
  for (const { name } of payloads.filter(({ temper }) => standing.includes(temper))) await showAlive(name);
  return payloads;
}

/** Stopped or frozen, and nothing else. */
async function showAlive(name: string): Promise<void> {
  const [counter] = await countersOf(host, name);
  const state = await host.sh(`cd /proc/${counter?.pid} && grep ^State: status
    cat "/sys/fs/cgroup$(sed -n 's/^0:://p' cgroup)/cgroup.events"`);
  expect(state).toMatch(/^State:\tT|^frozen 1/m);
}

describe.each(places)("%s", (place) => {
  const all = casesIn[place] as Case[];
  const together: [string, Case[]][] = [["all tempers together", all]];
  const alone: [string, Case[]][] = all.map((one) => [[one.temper, ...(one.words ?? [])].join(" "), [one]]);

  test.each(process.env.AI_TOOLS_FULL === "1" ? [...alone, ...together] : together)(
    "%s: a stop with --force leaves nothing",
    async (_, cases) => {
      await start(place, cases);
      const result = await stopWatched(host, "--force", "--yes");
      await expectStopped(host, result, { outcomes: outcomesIn(place, cases, () => "killed") });
      await expectAftermath(host, result.report);
    },
  );

  test("a stop gives one grace, in which work is saved, and leaves nothing", async () => {
    const payloads = await start(place, all);
    const saving = payloads.find(({ temper }) => temper === "saving-by-program");
    await host.sh(`rm -f ${countersOnHost}/.[0-9]*`);
    const result = await stopWatched(host, "--yes");
    // The account's manager tells what runs in it to end as soon as it is told itself: it has to be the last one.
    expect(await host.sh(`cat ${countersOnHost}/.${saving?.name} || true`)).toBe("saved\n");
    await expectStopped(host, result, { outcomes: outcomesIn(place, all, ({ outcome }) => outcome) });
    await expectAftermath(host, result.report);
  });
});

/** By unit, as the report names them. Strays without a unit of their own share a row. */
function outcomesIn(place: Place, cases: Case[], outcomeOf: (one: Case) => string): Record<string, string> {
  if (place === "exec") return {};
  const unitOf: Partial<Record<Place, (name: string) => string>> = {
    "session-moved": (name) => `moved-${name}.scope`,
    "system-unit": (name) => `lab-stray-${name}.service`,
    "system-delegated": (name) => `lab-stray-${name}.service`,
  };
  const unit = unitOf[place] ?? ((name: string) => `ai-tools-claude-code-${name}.service`);
  return Object.fromEntries(cases.map((one, number) => [unit(String(101 + number)), outcomeOf(one)]));
}

// What these do at SIGTERM, after SIGCONT and every millisecond meets the kill in another moment each time.
describe.each(["session-delegated", "system-delegated"] as Place[])("whoever races against a stop, %s", (place) => {
  const racing: Case[] = [...tempers, ...ofOwnSubtree].filter(({ temper }) =>
    ["heir", "restopping", "refreezing"].includes(temper),
  );

  test.each(rounds())("does not get away, round %i", async () => {
    await start(place, racing);
    const result = await stopWatched(host, "--yes");
    await expectStopped(host, result, { outcomes: outcomesIn(place, racing, ({ outcome }) => outcome) });
    await expectAftermath(host, result.report);
  });
});

// measured: a process that hops survived one-by-one kills 38 of 60 times
test.each(rounds())("hopping between two cgroups of the account's own manager outruns no kill, round %i", async () => {
  await startAccountManager(host);
  await startPayloads(
    host,
    [301, 302, 303].map((name) => ({ name: String(name), temper: "hopping", place: "own-manager" as const })),
  );
  const result = await stopWatched(host, "--force", "--yes");
  await expectStopped(host, result);
  await expectAftermath(host, result.report);
});

test("a background child of a tool call that lives on at PID 1 goes with its session", async () => {
  // claude-code 82433, 79902, 93996
  const session = `systemd-run --quiet --collect --uid=ai-tools --slice=user-${uid}.slice --unit=ai-tools-claude-code-401 -p KillMode=process`;
  await host.sh(
    `${session} sh -c '(setsid ${tempersOnHost}/deaf ${countersOnHost}/401 120 &) ; exec ${tempersOnHost}/polite ${countersOnHost}/402 120'`,
  );
  await eventually("both count", async () => (await running(host)).length === bystanders.length + 2);
  await host.sh("systemctl stop ai-tools-claude-code-401.service || true");
  expect(await running(host)).toEqual(["401", ...bystanders]);
  const result = await stopWatched(host, "--force", "--yes");
  await expectStopped(host, result);
  await expectAftermath(host, result.report);
});

describe("a session with a terminal of its own of which only the leader was hit", () => {
  // gemini-cli 20941
  test.each([["--force"], []])(
    "is ended with its terminal's whole session, and what left that: %s",
    async (...options) => {
      const count = (name: string) => `${tempersOnHost}/deaf ${countersOnHost}/${name} 120`;
      const unit = "ai-tools-claude-code-411.service";
      const work = `(${count("412")}) & (setsid ${count("413")}) & exec ${count("411")}`;
      const terminal = host.terminal([
        ...["systemd-run", "--pty", "--quiet", "--collect", "--uid=ai-tools", "--gid=ai-tools"],
        ...[`--slice=user-${uid}.slice`, `--unit=${unit}`, "-p", "KillMode=process", "sh", "-c", work],
      ]);
      await eventually("all three count", async () => (await running(host)).length === bystanders.length + 3);
      const [leader, behind, apart] = await Promise.all(["411", "412", "413"].map((name) => sessionOf(name)));
      expect(leader).toEqual({ session: leader?.pid, terminal: expect.stringMatching(/^pts\//), pid: leader?.pid });
      expect(behind).toMatchObject({ session: leader?.pid, terminal: leader?.terminal });
      expect(apart).toMatchObject({ session: apart?.pid, terminal: "?" });
      await host.sh(`kill -KILL ${leader?.pid}`);
      await terminal.exit;
      expect(await running(host)).toEqual(["412", "413", ...bystanders]);
      const result = await stopWatched(host, "--yes", ...options);
      await expectStopped(host, result, { outcomes: { [unit]: "killed" } });
      await expectAftermath(host, result.report);
    },
  );

  /** As `ps` tells: the number of the session's leader and the terminal. */
  async function sessionOf(payload: string): Promise<{ pid: number; session: number; terminal: string }> {
    const [counter] = await countersOf(host, payload);
    const pid = counter?.pid ?? 0;
    const [session, terminal = ""] = (await host.sh(`ps -o sid=,tty= -p ${pid}`)).trim().split(/\s+/);
    return { pid, session: Number(session), terminal };
  }
});
