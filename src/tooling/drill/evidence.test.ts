// SPDX-License-Identifier: Apache-2.0
// The drill's verdict: passes on the evidence of a good stop, and on nothing that differs from it in one way.

import { describe, expect, test } from "vitest";

import { type Evidence, problemsOf } from "./evidence.ts";
import type { Look, SeenProcess } from "./observer.ts";

const uid = 899;
const slice = `/user.slice/user-${uid}.slice`;
const manager = `${slice}/user@${uid}.service/init.scope`;
const session = `${slice}/ai-tools-claude-code-101.service`;

function seen(pid: number, cgroup: string): SeenProcess {
  return { pid, name: "x", state: "S", threads: 1, uids: [uid, uid, uid, uid], namespaceDepth: 1, cgroup };
}

function counter(payload: string, pid: number, ticks: number) {
  return { payload, slot: 1, pid, ticks, terms: 0, signs: 0 };
}

function lookWith(ticks: { account: number; bystander: number }, members: SeenProcess[]): Look {
  const alike = { ...seen(50, "/system.slice/lab-bystander-acting.service"), uids: [0, uid, 0, uid] };
  return {
    atMs: 0,
    counters: [counter("101", 10, ticks.account), counter("operator", 40, ticks.bystander)],
    processes: [...members, alike],
    slicePopulated: members.length > 0,
    sliceMembers: members.map(({ pid, cgroup }) => ({ pid, cgroup })),
    manager: "active",
  };
}

function goodStop(): Evidence {
  const running = [seen(10, session), seen(20, manager)];
  const restored = [seen(90, manager)];
  const entries = ["requested", "killed", "stopped", "manager-restored"].map((result) => ({
    AI_TOOLS_RESULT: result,
    AI_TOOLS_CALLER: "olga",
    time: new Date(result === "requested" ? 1_000 : 2_000).toISOString(),
  }));
  const others = { "/system.slice/lab-bystander-operator.service": 1, "/system.slice/lab-bystander-acting.service": 1 };
  return {
    uid,
    payloads: [{ name: "101", temper: "deaf", place: "session", unit: "ai-tools-claude-code-101.service" }],
    bystanders: ["operator"],
    before: [lookWith({ account: 1, bystander: 1 }, running), lookWith({ account: 2, bystander: 2 }, running)],
    dryRun: { code: 0, output: "" },
    afterDryRun: lookWith({ account: 3, bystander: 3 }, running),
    stop: { caller: "olga", code: 0, screen: "", seconds: 10 },
    after: [lookWith({ account: 9, bystander: 4 }, restored), lookWith({ account: 9, bystander: 5 }, restored)],
    watched: {
      counts: [
        { atMs: 900, alive: { [session]: 1, [manager]: 1, ...others }, terms: 0 },
        { atMs: 1_100, alive: { [session]: 1, ...others }, terms: 1 },
        { atMs: 1_900, alive: { [session]: 0, ...others }, terms: 1 },
        { atMs: 2_100, alive: { [manager]: 1, ...others }, terms: 1 },
      ],
      failure: "",
    },
    trail: { log: entries, journal: [...entries] },
  };
}

test("a stop after which nothing of the account runs and everybody else does passes", () => {
  expect(problemsOf(goodStop())).toEqual([]);
});

describe("a drill fails when", () => {
  const faults: [string, (evidence: Evidence) => void, RegExp][] = [
    [
      "a payload did not run before",
      (e) => (e.before[1].counters[0] = counter("101", 10, 1)),
      /101 did not run before/,
    ],
    [
      "a bystander did not run before",
      (e) => (e.before[1].counters[1] = counter("operator", 40, 1)),
      /operator did not run before/,
    ],
    ["the slice was empty before", (e) => (e.before[1].slicePopulated = false), /not populated before/],
    ["/proc showed nothing before", (e) => (e.before[1].processes = []), /fewer processes/],
    ["the dry run failed", (e) => (e.dryRun.code = 1), /dry run ended with 1/],
    ["the dry run ended a session", (e) => (e.afterDryRun.counters[0] = counter("101", 10, 2)), /dry run ended 101/],
    ["the stop said so", (e) => (e.stop.code = 1), /stop ended with 1/],
    ["a counter still moves", (e) => (e.after[1].counters[0] = counter("101", 10, 10)), /101 still runs/],
    [
      "a process that nobody counted appeared",
      (e) => e.after[1].counters.push({ ...counter("101", 11, 1), slot: 2 }),
      /101 still runs/,
    ],
    ["/proc shows a process", (e) => e.after[1].processes.push(seen(11, "/")), /process 11 \(x, state S\) in \/ after/],
    [
      "/proc shows a zombie leader",
      (e) => e.after[1].processes.push({ ...seen(11, "/"), state: "Z", threads: 2 }),
      /process 11/,
    ],
    [
      "a cgroup of the slice holds a process",
      (e) => e.after[1].sliceMembers.push({ pid: 12, cgroup: session }),
      /holds process 12/,
    ],
    [
      "a bystander was ended",
      (e) => (e.after[1].counters[1] = counter("operator", 40, 4)),
      /ended a bystander: operator/,
    ],
    [
      "a bystander was ended and replaced",
      (e) =>
        e.after.forEach((l) => {
          l.counters[1] = counter("operator", 41, l.counters[1]?.ticks ?? 0);
        }),
      /ended a bystander: operator/,
    ],
    ["the manager is not back", (e) => (e.after[1].manager = "failed"), /user@899.service is failed/],
    [
      "the manager was never ended",
      (e) => (e.after[1].sliceMembers = [{ pid: 20, cgroup: manager }]),
      /process 20 of the account's manager/,
    ],
    ["the log lacks the request", (e) => e.trail.log.shift(), /the log has no entry "requested"/],
    [
      "the journal lacks the verdict",
      (e) => (e.trail.journal = e.trail.journal.slice(0, 2)),
      /the journal has no entry "stopped"/,
    ],
    ["the sinks differ", (e) => e.trail.journal.splice(1, 1), /do not tell the same/],
    [
      "the trail names somebody else",
      (e) => (e.trail.log[0] = { ...e.trail.log[0], AI_TOOLS_CALLER: "root" }),
      /do not name olga/,
    ],
    [
      "the watcher ended too early",
      (e) => (e.watched.failure = "killed"),
      /watcher of the stop ended too early: killed/,
    ],
    ["nobody watched", (e) => (e.watched.counts = []), /nobody watched the stop to its end/],
    ["the watcher's last look came before the verdict", (e) => e.watched.counts.pop(), /nobody watched/],
    [
      "the watcher did not count a session before the request",
      (e) => e.watched.counts.shift(),
      /101 was not counted before the request/,
    ],
    [
      "the watcher counted a session after the verdict",
      (e) => (e.watched.counts[3] = { atMs: 2_001, alive: { ...e.watched.counts[3]?.alive, [session]: 2 }, terms: 1 }),
      /2 alive in .*101.service after the stop said that it was done/,
    ],
    [
      "the watcher counted somebody of the account elsewhere",
      (e) => Object.assign(e.watched.counts[3]?.alive ?? {}, { "/elsewhere": 1 }),
      /1 alive in \/elsewhere/,
    ],
    [
      "a bystander was away for a moment",
      (e) => Object.assign(e.watched.counts[2]?.alive ?? {}, { "/system.slice/lab-bystander-operator.service": 0 }),
      /nobody was alive in .*operator.service/,
    ],
    ["the verdict comes before the request", (e) => e.trail.log.reverse(), /the log is out of order/],
  ];

  test.each(faults)("%s", (_, damage, problem) => {
    const evidence = structuredClone(goodStop());
    damage(evidence);
    expect(problemsOf(evidence).join("\n")).toMatch(problem);
  });
});

test("an unreaped zombie of the account is no process that runs", () => {
  const evidence = goodStop();
  evidence.after[1].processes.push({ ...seen(11, "/"), state: "Z", threads: 1 });
  expect(problemsOf(evidence)).toEqual([]);
});
