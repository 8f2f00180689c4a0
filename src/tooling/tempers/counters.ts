// SPDX-License-Identifier: Apache-2.0
// Reads the counters of the payloads on a lab host. A counter that grows is a process that runs, whatever `/proc` and
// the cgroups say about it.

import type { LabHost } from "../lab/host.ts";
import { countersOnHost, tempersOnHost } from "./build-tempers.ts";

/** One process of a payload, as its own counter shows it. */
export interface Counter {
  /** The payload's name, which is its counter file's. */
  payload: string;
  slot: number;
  /** The process's number as it sees it itself: another one inside a pid namespace. */
  pid: number;
  /** Grows by about 500 a second while the process runs. */
  ticks: number;
  /** How many SIGTERM it was told of. */
  terms: number;
  /** What its temper wants to be known besides, see there. */
  signs: number;
}

/** The tempers that tick only for their first moments and then stand still alive. */
const standingTempers = new Set(["stopped"]);

/** Every counter in use on the host, of all payloads that were started since `forgetCounters`. */
export async function readCounters(host: LabHost): Promise<Counter[]> {
  return parseCounters(await host.sh(`${tempersOnHost}/read-counters ${countersOnHost}`));
}

/** What `read-counters` prints. */
export function parseCounters(text: string): Counter[] {
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const [payload, ...numbers] = line.split(" ");
      const [slot, pid, ticks, terms, signs] = numbers.map(Number);
      return { payload, slot, pid, ticks, terms, signs } as Counter;
    });
}

/** Removes all counter files; those of processes that still run go on unseen. */
export async function forgetCounters(host: LabHost): Promise<void> {
  await host.sh(`rm -f ${countersOnHost}/*`);
}

/** The counters of `later` that are not where they were in `earlier`, new ones included. */
export function movedSince(earlier: Counter[], later: Counter[]): Counter[] {
  const before = new Map(earlier.map((counter) => [key(counter), counter.ticks]));
  return later.filter((counter) => counter.ticks !== (before.get(key(counter)) ?? 0));
}

/** The counters of `later` that are where they were in `earlier`. */
export function stillSince(earlier: Counter[], later: Counter[]): Counter[] {
  const moved = new Set(movedSince(earlier, later).map(key));
  return later.filter((counter) => !moved.has(key(counter)));
}

/** Whether a payload of this temper is expected to tick as long as it is alive. */
export function ticksWhileAlive(temper: string): boolean {
  return !standingTempers.has(temper);
}

/** Looks at the counters twice, `windowMs` apart, and says which moved and which did not. */
export async function watchCounters(host: LabHost, windowMs: number): Promise<{ moved: Counter[]; still: Counter[] }> {
  const earlier = await readCounters(host);
  await new Promise((done) => setTimeout(done, windowMs));
  const later = await readCounters(host);
  return { moved: movedSince(earlier, later), still: stillSince(earlier, later) };
}

function key(counter: Counter): string {
  return `${counter.payload} ${counter.slot} ${counter.pid}`;
}
