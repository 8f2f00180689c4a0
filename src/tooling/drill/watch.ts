// SPDX-License-Identifier: Apache-2.0
// Watches a lab host all through a stop: a program on the host (src/tooling/tempers/watch-processes.c) counts the living
// processes of the account in each cgroup, look after look, and asks nothing of the product.

import type { LabHost } from "../lab/host.ts";
import { countersOnHost, tempersOnHost } from "../tempers/build-tempers.ts";

/** One look of the watcher. */
export interface Count {
  /** When it began, by the host's wall clock. */
  atMs: number;
  /** Living processes by cgroup: of the account, and all of the lab's bystanders. A cgroup without any may be absent. */
  alive: Record<string, number>;
  /** How many SIGTERM the payloads had been told of, all together. */
  terms: number;
}

export interface Watched {
  counts: Count[];
  /** Why the watcher ended before it was told to; "" when it did not. */
  failure: string;
}

/** Pause between two looks: short enough to see the order of things in a kill, long enough to take nobody's processor. */
const periodMs = 25;
/** Longest wait for the first look. */
const startLimitMs = 10_000;
const output = "/run/lab/watched";
const pidFile = "/run/lab/watch.pid";

/** The beginning of the cgroups of everybody who must survive the stop. */
export const bystanderPlace = "/system.slice/lab-bystander-";

/** Begins to watch, and returns after the first look. It ends with the host, if nobody ends it before. */
export async function startWatching(host: LabHost, uid: number): Promise<void> {
  const watch = `${tempersOnHost}/watch-processes ${uid} ${periodMs} ${bystanderPlace} ${countersOnHost}`;
  await host.sh(
    `rm -f ${output}
    setsid --fork sh -c 'echo $$ >${pidFile}; exec ${watch} >${output} 2>${output}.errors' </dev/null >/dev/null 2>&1
    until grep -qs ^@ ${output}; do sleep 0.05; done`,
    { timeoutMs: startLimitMs },
  );
}

/** Ends the watching and answers with every look, and with why it had ended before, where it had. */
export async function stopWatching(host: LabHost): Promise<Watched> {
  const { code, stderr } = await host.run(["sh", "-c", `kill -KILL "$(cat ${pidFile})"`]);
  const counts = parseCounts(await host.sh(`cat ${output}`));
  const failure = code === 0 ? "" : `${stderr}${await host.sh(`cat ${output}.errors`)}`.trim() || "it ended by itself";
  return { counts, failure };
}

/** What `watch-processes` prints. */
export function parseCounts(text: string): Count[] {
  const counts: Count[] = [];
  // What follows the last end of line was being written when the watcher was ended.
  for (const line of text.split("\n").slice(0, -1)) {
    const head = /^@(\d+) (\d+)( =)?$/.exec(line);
    const current = counts.at(-1);
    if (head)
      counts.push({ atMs: Number(head[1]), terms: Number(head[2]), alive: head[3] ? { ...current?.alive } : {} });
    else if (current !== undefined) current.alive[line.slice(line.indexOf(" ") + 1)] = Number.parseInt(line, 10);
  }
  return counts;
}

/** The longest time between the beginnings of two looks. */
export function longestGapMs(counts: readonly { atMs: number }[]): number {
  return Math.max(0, ...counts.slice(1).map(({ atMs }, index) => atMs - (counts[index]?.atMs ?? atMs)));
}
