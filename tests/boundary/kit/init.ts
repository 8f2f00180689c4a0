// SPDX-License-Identifier: Apache-2.0
// Asks PID 1 all the while whether it answers, so that a stop that hangs the host's service manager for a moment is seen,
// however well the stop itself ends.

import { expect } from "vitest";

import type { LabHost } from "../../../src/tooling/lab/host.ts";
import { patienceFor } from "../../../src/tooling/lab/host-names.ts";
import { measured } from "./figures.ts";

const words = "/run/lab/init-answers";
const enough = "/run/lab/init-asked-enough";
const asks = "/run/lab/asks-init";
const unit = "lab-watch-init";

/** The wish is an answer within this; a machine that many hosts share cannot promise it, so the share is told as a figure. */
const wishMs = 1_000;
/** Whoever waits longer meets a service manager that hangs: a frozen child, a full queue. */
const answerLimitMs = 10_000;
/** How long an answer that is still open when the work is done is waited for, beyond its limit. */
const patienceMs = 5_000;

/** How PID 1 answered. */
export interface Answers {
  /** How long each answer took; one that never came counts with its age when it was given up. */
  ms: number[];
  /** Questions whose program failed before PID 1 was reached, say for lack of a number. */
  failed: number;
}

/** Does the work while PID 1 is asked five times a second. Fails where it ever took longer than its limit. */
export async function watchingInit<T>(host: LabHost, work: () => Promise<T>): Promise<T> {
  await beginAsking(host);
  let result: T;
  try {
    result = await work();
  } finally {
    const { ms, failed } = await endAsking(host);
    const soon = ms.filter((took) => took < wishMs).length;
    const longestMs = Math.max(0, ...ms);
    measured("PID 1 answers", { asked: ms.length, failed, longestMs, underOneSecond: `${soon} of ${ms.length}` });
    expect(ms.length, "answers of PID 1").toBeGreaterThan(0);
    expect(longestMs, "longest answer of PID 1, in milliseconds").toBeLessThan(
      answerLimitMs * patienceFor(host.hostName),
    );
  }
  return result;
}

/** Returns when PID 1 has answered once. Each question is noted when it is asked, each answer when it comes. */
async function beginAsking(host: LabHost): Promise<void> {
  // Clock: uptime in milliseconds, which nobody sets. Every host that is up has a state.
  const script = `now() { read -r up rest </proc/uptime; echo "\${up%.*}\${up#*.}0"; }
while :; do
  echo "ask $(now)"; state=$(systemctl is-system-running 2>/dev/null); echo "answer $(now) $state"
  [ -e ${enough} ] && break; sleep 0.2
done >>${words}
`;
  await host.sh(
    `rm -f ${words} ${enough}; cat >${asks}; systemd-run --quiet --collect --unit=${unit} sh ${asks}
     for look in $(seq 600); do grep -q answer ${words} 2>/dev/null && exit; sleep 0.1; done; exit 1`,
    { input: script, timeoutMs: 90_000 },
  );
}

/** Waits for the open answer within its limit, and ends the asking without PID 1's help. */
async function endAsking(host: LabHost): Promise<Answers> {
  const looks = (answerLimitMs + patienceMs) / 100;
  const cgroup = `/sys/fs/cgroup/system.slice/${unit}.service`;
  const text = await host.sh(`touch ${enough}
    for look in $(seq ${looks}); do tail -n 1 ${words} | grep -q answer && break; sleep 0.1; done
    cat ${words}; read -r up rest </proc/uptime; echo "end \${up%.*}\${up#*.}0"
    echo 1 >${cgroup}/cgroup.kill; true`);
  return answersIn(text);
}

/** What the asking noted: `ask MS`, `answer MS STATE`, and `end MS` behind it all. */
export function answersIn(text: string): Answers {
  const lines = text.split("\n").map((line) => line.split(" "));
  const ms: number[] = [];
  let failed = 0;
  let askedAt: number | undefined;
  for (const [word, time, state] of lines) {
    if (word === "ask") askedAt = Number(time);
    if ((word !== "answer" && word !== "end") || askedAt === undefined) continue;
    if (word === "answer" && !state) failed += 1;
    else ms.push(Number(time) - askedAt);
    askedAt = undefined;
  }
  return { ms, failed };
}
