// SPDX-License-Identifier: Apache-2.0
// The laws are worth what they catch: stops that were made wrong on purpose, each of which must break the law that it is
// named with. The faults are put between the stop and its door, or are little stops of the naive kind.

import { expect, test } from "vitest";
import { ENOENT, ESRCH, type Host, isErrno, SIGKILL, SIGTERM } from "./kernel.ts";
import { accountUid, slicePath } from "./simulation/account.ts";
import { type Breach, judgePlan, type Story } from "./simulation/laws.ts";
import type { WorldPlan } from "./simulation/plans.ts";
import { singleWorlds } from "./simulation/small-worlds.ts";
import { stopSessions } from "./stop-sessions.ts";

/** The stop behind a door of which some calls do something else. */
function through(changes: (host: Host) => Partial<Host>): Story {
  return (host, request) => {
    const changed = changes(host);
    const door = new Proxy(host, {
      get(target, name: keyof Host) {
        const own = changed[name] ?? target[name];
        return typeof own === "function" && changed[name] === undefined ? own.bind(target) : own;
      },
    });
    return stopSessions(door, request);
  };
}

const isKillFile = (path: string) => path.endsWith("/cgroup.kill");

/** A stop as one would write it first: list, kill in that order, look once more. */
function naive(order: (pids: number[]) => number[], verify: boolean): Story {
  return async (host) => {
    const lookUp = () => {
      const names = host.list("/proc");
      return isErrno(names) ? [] : order(names.filter((name) => /^[0-9]+$/.test(name)).map(Number));
    };
    const isTheirs = (pid: number) => {
      const status = host.readText(`/proc/${pid}/status`);
      return !isErrno(status) && status.includes(`\nUid:\t${accountUid}\t`) && !status.includes("State:\tZ");
    };
    for (let pass = 0; pass < 20; pass++) {
      host.writeFile(`/sys/fs/cgroup${slicePath}/cgroup.kill`, "1");
      for (const pid of lookUp()) if (isTheirs(pid)) host.signal(pid, SIGKILL);
      await host.sleep(5);
      if (!verify || !lookUp().some(isTheirs)) return 0;
    }
    return 1;
  };
}

/** Where the default worlds do not hold what a fault needs. */
type Worlds = readonly Omit<WorldPlan, "seed">[];

const force = { request: { force: true } } as const;
const stormInside: Worlds = [{ ...force, processes: [{ temper: "storm", place: "unit" }] }];
const stuckHeadless: Worlds = [{ ...force, processes: [{ temper: "headless-stuck", place: "stray" }] }];
const unreadable: Worlds = [
  { ...force, processes: [{ temper: "deaf", place: "stray" }], faults: ["status-unreadable"] },
];
const recycled: Worlds = [
  { processes: [{ temper: "deaf", place: "unit" }], events: [{ kind: "recycled-pid", atMs: 6_000 }] },
];
/** The number that the helper is busy with changes hands at its first step, at the second, and so on. */
const recycledAnywhere: Worlds = Array.from({ length: 600 }, (_, step) => ({
  ...force,
  processes: [{ temper: "deaf", place: "stray" }],
  helper: { recycleAtCall: 1 + step },
}));
const container: Worlds = [{ ...force, processes: [], bystanders: ["container"] }];
const inside: Worlds = [{ ...force, processes: [{ temper: "deaf", place: "unit" }], helperInside: true }];

const mutants: readonly (readonly [name: string, law: string, story: Story, worlds?: Worlds])[] = [
  [
    "the kill replaced by nothing",
    "what can be ended is ended",
    through((host) => ({
      signalHeld: (held, signal) => (signal === SIGKILL ? 0 : host.signalHeld(held, signal)),
      writeFile: (path, text) => (isKillFile(path) ? 0 : host.writeFile(path, text)),
    })),
  ],
  [
    "no kill of each process",
    "what can be ended is ended",
    through((host) => ({
      signalHeld: (held, signal) => (signal === SIGKILL ? 0 : host.signalHeld(held, signal)),
    })),
  ],
  [
    "no kill at the slice",
    "what can be ended is ended",
    through((host) => ({ writeFile: (path, text) => (isKillFile(path) ? 0 : host.writeFile(path, text)) })),
    stormInside,
  ],
  ["a stop that says it is done", "exit 0 implies that nothing of the account is alive", async () => 0],
  ["a stop that says nothing of who is alive", "whatever is alive is named", async () => 1],
  [
    "a zombie taken for dead",
    "exit 0 implies that nothing of the account is alive",
    through((host) => ({
      readText: (path) => {
        const text = host.readText(path);
        return isErrno(text) || !/^State:\tZ/m.test(text) ? text : text.replace(/^Threads:.*$/m, "Threads:\t1");
      },
      // A process that looks dead and cannot be ended at once is what it takes; the slice would give it away.
      readAgain: () => "populated 0\nfrozen 0\n",
    })),
    stuckHeadless,
  ],
  [
    "a list that is read from below",
    "exit 0 implies that nothing of the account is alive",
    naive((pids) => pids.sort((a, b) => a - b), true),
  ],
  [
    "a kill without a look",
    "exit 0 implies that nothing of the account is alive",
    naive((pids) => pids.sort((a, b) => b - a), false),
  ],
  [
    "an unreadable process taken for gone",
    "exit 0 implies that nothing of the account is alive",
    through((host) => ({
      readText: (path) => {
        const text = host.readText(path);
        return isErrno(text) && text !== ESRCH ? ENOENT : text;
      },
    })),
    unreadable,
  ],
  [
    "no check before SIGTERM",
    "no bystander is ever signalled",
    async (host) => {
      const names = host.list("/proc");
      const theirs = (isErrno(names) ? [] : names).filter((pid) => {
        const status = host.readText(`/proc/${pid}/status`);
        return !isErrno(status) && status.includes(`\nUid:\t${accountUid}\t`);
      });
      await host.sleep(8_000);
      for (const pid of theirs) host.signal(Number(pid), SIGTERM);
      return 1;
    },
    recycled,
  ],
  [
    "a signal by number after the look",
    "a signal reaches whoever was looked at, or nobody",
    through((host) => {
      const numbers = new Map<number, number>();
      return {
        hold: (pid) => {
          const held = host.hold(pid);
          if (!isErrno(held)) numbers.set(held.fd, pid);
          return held;
        },
        signalHeld: ({ fd }, signal) => host.signal(numbers.get(fd) ?? 0, signal),
      };
    }),
    recycledAnywhere,
  ],
  [
    "somebody who is never let go",
    "one process is held at a time",
    through((host) => {
      const held = new Set<number>();
      return {
        hold: (pid) => {
          const handle = host.hold(pid);
          if (!isErrno(handle)) held.add(handle.fd);
          return handle;
        },
        close: (handle) => (held.has(handle.fd) ? undefined : host.close(handle)),
      };
    }),
  ],
  [
    "a uid that is looked at alone",
    "no bystander is ever signalled",
    through((host) => ({
      readText: (path) => {
        const text = host.readText(path);
        return isErrno(text) ? text : text.replace(/^NSpid:\t([0-9]+).*$/m, "NSpid:\t$1");
      },
    })),
    container,
  ],
  [
    "a freeze that is forgotten",
    "nothing is left frozen",
    async (host) => {
      host.writeFile(`/sys/fs/cgroup${slicePath}/cgroup.freeze`, "1");
      return 1;
    },
  ],
  [
    "a limit that is forgotten",
    "no limit is left behind",
    async (host) => {
      host.writeFile(`/sys/fs/cgroup${slicePath}/cgroup.max.descendants`, "0");
      return 1;
    },
  ],
  [
    "a cgroup that is forgotten",
    "no cgroup of a helper is left behind",
    async (host) => {
      host.makeDirectory("/sys/fs/cgroup/shelter", 0o755);
      return 1;
    },
  ],
  [
    "a stop that does not leave the slice",
    "every run comes to its end",
    through((host) => ({
      readText: (path) => (path === "/proc/self/cgroup" ? "0::/elsewhere\n" : host.readText(path)),
    })),
    inside,
  ],
  [
    "a stop that waits too long",
    "every run ends within its limits",
    async (host) => {
      await host.sleep(41_000);
      return 1;
    },
  ],
  [
    "a TERM for newcomers",
    "newcomers of the grace get no TERM",
    async (host) => {
      for (let round = 0; round < 3; round++) {
        const names = host.list("/proc");
        for (const pid of isErrno(names) ? [] : names) {
          const status = host.readText(`/proc/${pid}/status`);
          if (!isErrno(status) && status.includes(`\nUid:\t${accountUid}\t`)) host.signal(Number(pid), SIGTERM);
        }
        await host.sleep(50);
      }
      return 1;
    },
  ],
  [
    "a refusal that kills",
    "nothing is touched without consent",
    async (host) => {
      host.writeFile(`/sys/fs/cgroup${slicePath}/cgroup.kill`, "1");
      return 5;
    },
  ],
];

/** Each temper in each place, without grace and then with it. */
function* worldsFor(chosen: Worlds | undefined): Generator<WorldPlan> {
  if (chosen === undefined) yield* singleWorlds();
  else for (const plan of chosen) yield { ...plan, seed: 1 };
}

const named = mutants.map(([name, law, story, chosen]) => ({ name, law, story, chosen }));

test.each(named)("the laws catch $name", { timeout: 120_000 }, async ({ law, story, chosen }) => {
  const seen: Breach[] = [];
  for (const plan of worldsFor(chosen)) {
    const { breaches } = await judgePlan(plan, story);
    seen.push(...breaches.filter((breach) => breach.law === law));
    if (seen.length > 0) break;
  }
  expect(seen.map((breach) => breach.law)).toContain(law);
});
