// SPDX-License-Identifier: Apache-2.0
// Promise: a census lists the processes, reads the last number that was given out only after that, and looks from there
// downwards, also where the numbers have wrapped, so that a chain of forks runs into it; whether a process is dead is told
// by one reading of its status; and one look that meets nobody proves nothing. Read from a system-call trace of the installed helper, while numbers are given out all the
// time: whether a chain is met by chance or by order cannot be told from the outcome of one stop.

import { afterEach, beforeEach, expect, test } from "vitest";

import { startPayloads } from "../../../src/tooling/tempers/payloads.ts";
import { clearHost } from "../kit/facts.ts";
import { labHost } from "../kit/host.ts";
import { helper } from "../kit/stop.ts";

const host = await labHost();
const lastNumber = "/proc/sys/kernel/ns_last_pid";
const looks = 5;

beforeEach(async () => {
  await clearHost(host);
  await host.sh("mount -o remount,bind,rw /proc/sys");
  await startPayloads(host, [
    { name: "3901", temper: "headless", place: "session" },
    { name: "3902", temper: "headless", place: "exec" },
  ]);
});

afterEach(() => host.sh("systemctl stop lab-forking; mount -o remount,bind,ro /proc/sys; true"));

/** One census as the trace shows it. */
interface Seen {
  /** The first last number that was read after the list. */
  last: number;
  /** The numbers whose status was read, in that order, up to the next look at the last number but one. */
  order: number[];
}

test("it begins at the last number that was given out when the list had been read, and goes down from there", async () => {
  await forkAllTheTime();
  for (const { last, order } of await tracedCensuses()) {
    expect(order[0]).toBe(last);
    expect(order).toEqual(downFrom(last, order));
  }
});

// claude-code 43944, gemini-cli 20941: a chain that is always one step further
test("after the numbers have wrapped, those from before come last", async () => {
  const before = Number(await host.sh(`echo 20000 >${lastNumber}; sleep 30 >/dev/null 2>&1 & echo $!`));
  expect(before).toBeGreaterThan(20_000);
  await host.sh(`echo 600 >${lastNumber}`);
  await forkAllTheTime();
  for (const { last, order } of await tracedCensuses()) {
    expect(last).toBeLessThan(before);
    expect(order[0]).toBe(last);
    expect(order).toContain(before);
    expect(order).toEqual(downFrom(last, order));
  }
});

test("nobody's threads are walked to tell who is dead", async () => {
  expect(await trace("--dry-run")).not.toMatch(/"\/proc\/\d+\/task/);
  const killing = await trace("--force", "--yes");
  expect(killing).toMatch(/"\/proc\/\d+\/status"/);
  expect(killing).not.toMatch(/"\/proc\/\d+\/task/);
});

test("nobody is said to be gone before two looks in a row met nobody and no number was given out meanwhile, or ten did", async () => {
  const looks = looksOf(await trace("--force", "--yes"));
  expect(looks.some(({ met }) => met > 0)).toBe(true);
  const empty = looks.slice(looks.findLastIndex(({ met }) => met > 0) + 1);
  expect(empty.length, "looks that met nobody").toBeGreaterThan(1);
  const [first, last] = empty.slice(-2);
  expect(empty.length >= 10 || first?.before === last?.after, JSON.stringify(looks)).toBe(true);
});

/** These numbers as they were given out, the last one first: those above it are from before the numbers wrapped. */
function downFrom(last: number, numbers: readonly number[]): number[] {
  const down = [...numbers].sort((a, b) => b - a);
  return [...down.filter((pid) => pid <= last), ...down.filter((pid) => pid > last)];
}

/** Root forks all the time, so that the last number moves while the list is read. */
async function forkAllTheTime(): Promise<void> {
  await host.sh(
    `systemd-run --quiet --collect --unit=lab-forking -p RuntimeMaxSec=60 sh -c 'while :; do (:); (:); sleep 0.001; done'`,
  );
}

/** The censuses of some dry runs: each takes one. */
async function tracedCensuses(): Promise<Seen[]> {
  const seen: Seen[] = [];
  for (let look = 0; look < looks; look++) seen.push(...censusesIn(await trace("--dry-run")));
  expect(seen.length).toBeGreaterThanOrEqual(looks);
  return seen;
}

async function trace(...options: string[]): Promise<string> {
  const file = "/run/census-trace";
  // Each part of the list takes a tenth of a second more, in which others fork on however busy the machine is.
  const slow = "-e inject=getdents64:delay_exit=100000";
  await host.sh(
    `strace -o ${file} -y -s 2000 -e trace=openat,read,getdents64,rename ${slow} ${helper} ${options.join(" ")} >/dev/null`,
  );
  return host.sh(`cat ${file}`);
}

function censusesIn(text: string): Seen[] {
  const lines = text.split("\n");
  const starts = lines.flatMap((line, index) => (isListOpened(line) ? [index] : []));
  return starts.map((start, number) => censusIn(lines.slice(start, starts[number + 1])));
}

/** The list is read to its end; then the last number is read twice, and whatever is read of it later belongs to the end. */
function censusIn(lines: string[]): Seen {
  const listed = lines.findLastIndex((line) => /getdents64\(\d+<\/proc>/.test(line));
  const after = lines.slice(listed + 1);
  const readings = after.flatMap((line, index) => {
    const last = lastNumberIn(line);
    return last === undefined ? [] : [{ index, last }];
  });
  // A number that is a thread's leads to its process at once, wherever that stands in the order.
  let processOfThread: number | undefined;
  const looked = after.flatMap((line, index) => {
    const pid = Number(/openat\(.*"\/proc\/(\d+)\/status"/.exec(line)?.[1]);
    if (Number.isNaN(pid)) return [];
    const isLedTo = pid === processOfThread;
    const status = after.slice(index + 1, index + 3).find((next) => next.startsWith("read("));
    const process = Number(/\\nTgid:\\t(\d+)/.exec(status ?? "")?.[1] ?? pid);
    processOfThread = process === pid ? undefined : process;
    return isLedTo ? [] : [{ index, pid }];
  });
  const first = looked[0]?.index ?? 0;
  const end = readings.find(({ index }) => index > first)?.index ?? after.length;
  return { last: readings[0]?.last ?? 0, order: looked.filter(({ index }) => index < end).map(({ pid }) => pid) };
}

/** One look of the kill: the last number before it and after it, and how many living payloads it met. */
interface Look {
  before: number;
  after: number;
  met: number;
}

/** The looks up to the verdict. */
function looksOf(text: string): Look[] {
  const all = text.split("\n");
  const lines = all.slice(
    0,
    all.findIndex((line) => /^rename\(.*last-stop\.json/.test(line)),
  );
  const starts = lines.flatMap((line, index) => (isListOpened(line) ? [index] : []));
  return starts.map((start, number) => {
    const look = lines.slice(start, starts[number + 1]);
    const met = look.filter((line) => {
      const [, state, threads] = /"Name:\\theadless\\n.*?State:\\t(\w).*?Threads:\\t(\d+)/.exec(line) ?? [];
      return state !== undefined && !(state === "Z" && threads === "1");
    }).length;
    return { before: lastOf(lines.slice(0, start)), after: lastOf(look), met };
  });
}

function isListOpened(line: string): boolean {
  return /openat\(.*"\/proc", O_RDONLY.*O_DIRECTORY/.test(line);
}

/** The last number as it was read last. */
function lastOf(lines: readonly string[]): number {
  return lines.map(lastNumberIn).findLast((last) => last !== undefined) ?? 0;
}

function lastNumberIn(line: string): number | undefined {
  const last = /^read\(\d+<\/proc\/loadavg>, "[\d.]+ [\d.]+ [\d.]+ \d+\/\d+ (\d+)\\n"/.exec(line)?.[1];
  return last === undefined ? undefined : Number(last);
}
