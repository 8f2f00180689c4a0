// SPDX-License-Identifier: Apache-2.0
// Who waits for whom when claims are made and ended: nobody for somebody else's caller, each only for work on the same
// project, and whoever is refused for that learns who is at work there.

import { beforeEach, describe, expect, test } from "vitest";
import { handedBack } from "../ground/hand-made-ground.fixture.ts";
import { place } from "../stop/hand-made-processes.fixture.ts";
import type { Handle, Stream } from "../stop/kernel.ts";
import { claimLockPath, claimRecordPath } from "./claims.ts";
import { atHome, HandMadeProjects, onDisk } from "./hand-made-projects.fixture.ts";
import { aloneWithClaims } from "./locks.ts";
import { claimVerbs } from "./verbs.ts";

const allClaims = "/run/ai-tools/claims.lock";
const EFBIG = 27;

/** Locks that this helper has, and what it says or waits for meanwhile. */
class WatchedProjects extends HandMadeProjects {
  readonly locked = new Map<number, string>();
  readonly underLock: string[] = [];

  override lock(path: string): Handle | number {
    const lock = super.lock(path);
    if (typeof lock === "object") this.locked.set(lock.fd, path);
    return lock;
  }

  override close(handle: Handle): void {
    this.locked.delete(handle.fd);
    super.close(handle);
  }

  override print(stream: Stream, text: string): void {
    for (const path of this.locked.values()) this.underLock.push(`print under ${path}`);
    super.print(stream, text);
  }

  override async sleep(ms: number): Promise<void> {
    this.note("sleep");
    await super.sleep(ms);
  }

  override statPath(path: string) {
    if (!path.startsWith("/var/lib/ai-tools/")) this.note(`look at ${path}`);
    return super.statPath(path);
  }

  /** The lock that everybody needs is not kept for anything that a person, or a person's file system, can draw out. */
  note(what: string): void {
    if ([...this.locked.values()].includes(allClaims)) this.underLock.push(what);
  }
}

let ground: WatchedProjects;

beforeEach(() => {
  ground = new WatchedProjects();
});

function verb(name: "claim" | "unclaim", path: string): Promise<number> {
  ground.called(name, path);
  return claimVerbs(ground);
}

/** Another helper of ursula's has this lock. */
function heldBy(lock: string, process: { pid: number; state?: string; frozen?: boolean }): void {
  const { pid, state = "S (sleeping)", frozen = false } = process;
  ground.lockedByOthers.add(lock);
  ground.files.set(lock, `${pid} 900 2026-01-02T03:00:00.000Z ursula\nold text\n`);
  place(ground, { pid, state, uids: [0, 0, 0, 0], cgroup: "/x.scope", startTicks: 900 });
  ground.files.set("/sys/fs/cgroup/x.scope/cgroup.events", `populated 1\nfrozen ${frozen ? 1 : 0}\n`);
}

describe("while a lock is held", () => {
  test.each([
    ["a claim", 0, "claim", {}],
    ["a claim that fails in part", 1, "claim", { code: 1, output: "setfacl: /project/f: Operation not permitted\n" }],
    ["a claim that cannot be made", 1, "claim", { code: 72 }],
    ["the end of a claim", 0, "unclaim", {}],
    ["the end of a claim that fails in part", 1, "unclaim", { code: 1, output: "setfacl: /project/f: no\n" }],
    ["the end of a claim that fails", 1, "unclaim", { code: 72 }],
  ] as const)(
    "%s prints nothing, and draws nothing out under the lock of all claims",
    async (_what, code, name, setfacl) => {
      ground.existing(`${atHome}/f`, { kind: "file", uid: 1001 });
      ground.program = (line) => (line.includes("setfacl -R") ? { code: 0, afterMs: 400, ...setfacl } : { code: 0 });
      if (name === "unclaim") ground.claimed(atHome);
      expect(await verb(name, atHome)).toBe(code);
      expect(ground.underLock).toEqual([]);
      expect(`${ground.printed.out}${ground.printed.err}`).not.toBe("");
      expect(ground.locked.size).toBe(0);
    },
  );

  test("a refusal prints nothing, nor does an error of our own", async () => {
    ground.claimed("/home/olga/work/sub");
    expect(await verb("claim", atHome)).toBe(3);
    ground.claimed(onDisk);
    ground.handBack = () => {
      throw new TypeError("x");
    };
    expect(await verb("unclaim", onDisk)).toBe(1);
    expect(ground.underLock).toEqual([]);
    expect(ground.locked.size).toBe(0);
    expect(ground.printed.err).toContain("an error of its own");
  });

  test("the project's own lock lasts as long as the work on it, and no file of it is left", async () => {
    const during: string[][] = [];
    ground.claimed(atHome);
    ground.handBackAnswer = () => {
      during.push([...ground.locked.values()]);
      return handedBack();
    };
    await verb("unclaim", atHome);
    const lock = claimLockPath(1001, atHome);
    expect(during).toEqual([[lock], [lock]]);
    expect(ground.acts.filter((act) => act === `remove ${lock}`)).toHaveLength(1);
  });

  test("this process is where its caller can neither freeze nor end it", async () => {
    ground.files.set("/proc/self/cgroup", "0::/user.slice/user-1001.slice/user@1001.service/app.slice/x.service\n");
    ground.files.set("/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    await verb("claim", atHome);
    const moved = ground.acts.indexOf("write /sys/fs/cgroup/cgroup.procs");
    expect(moved).toBeGreaterThanOrEqual(0);
    expect(moved).toBeLessThan(ground.acts.findIndex((act) => act.startsWith("lock")));
  });
});

describe("somebody else at work", () => {
  test("on another project is in nobody's way", async () => {
    ground.lockedByOthers.add(claimLockPath(1002, "/home/ursula/work"));
    ground.lockedByOthers.add(claimLockPath(1001, onDisk));
    expect(await verb("claim", atHome)).toBe(0);
    expect(await verb("unclaim", atHome)).toBe(0);
  });

  test.each(["claim", "unclaim"] as const)(
    "on the same project: a %s is refused at once, and says who it is",
    async (name) => {
      if (name === "unclaim") ground.claimed(atHome);
      heldBy(claimLockPath(1001, atHome), { pid: 77 });
      const before = ground.recorded(atHome);
      expect(await verb(name, atHome)).toBe(3);
      expect(ground.printed.err).toContain(
        "the claim of /home/olga/work is being made or ended, by ursula since 2026-01-02T03:00:00.000Z (process 77): try again after that. If it stands still, as root: kill -KILL 77. Nothing was changed.",
      );
      expect(ground.recorded(atHome)).toEqual(before);
      expect(ground.executed).toEqual([]);
    },
  );

  test.each([
    ["stopped", { pid: 77, state: "T (stopped)" }],
    ["frozen", { pid: 77, frozen: true }],
  ])("who is %s is told as such, with what ends it", async (word, process) => {
    heldBy(claimLockPath(1001, atHome), process);
    expect(await verb("claim", atHome)).toBe(3);
    expect(ground.printed.err).toContain(`it is ${word} and does not go on. To end it, as root: kill -KILL 77`);
  });

  test("who has ended, or whose number is somebody else's now, is not named", async () => {
    const lock = claimLockPath(1001, atHome);
    heldBy(lock, { pid: 77 });
    ground.files.set(lock, "77 901 2026-01-02T03:00:00.000Z ursula\n");
    expect(await verb("claim", atHome)).toBe(3);
    ground.files.set(lock, "");
    expect(await verb("claim", atHome)).toBe(3);
    expect(ground.printed.err).toContain("cannot be told");
    expect(ground.printed.err).not.toContain("kill");
  });

  test("who puts a claim on record is waited for, and named where that does not end", async () => {
    heldBy(allClaims, { pid: 78 });
    expect(await verb("claim", atHome)).toBe(3);
    expect(ground.printed.err).toMatch(/another claim is being put on record, by ursula .*kill -KILL 78/);
    ground.clockMs = 0;
    const sleep = ground.sleep.bind(ground);
    ground.sleep = async (ms) => {
      if (ground.clockMs > 500) ground.lockedByOthers.clear();
      await sleep(ms);
    };
    expect(await verb("claim", atHome)).toBe(0);
  });

  test("who claims what is around the project, or in it, before this claim is on record is in its way", async () => {
    ground.program = (line) => {
      // While this claim looks for lists, its own lock is no help against others.
      if (line.includes("getfacl")) ground.claimed("/home/olga/work/sub", { unfinished: "claim" });
      return { code: 0 };
    };
    expect(await verb("claim", atHome)).toBe(3);
    expect(ground.printed.err).toContain("contains /home/olga/work/sub, which is claimed");
    expect(ground.files.has(claimRecordPath(atHome))).toBe(false);
  });

  test("cannot take the lock of a project that is none of theirs", async () => {
    ground.claimed(atHome);
    ground.calledBy(ground.ursula);
    expect(await verb("unclaim", atHome)).toBe(3);
    expect(ground.acts.filter((act) => act.startsWith("lock"))).toEqual([]);
    expect(claimLockPath(1002, atHome)).not.toBe(claimLockPath(1001, atHome));
  });

  test.each(["operator", "root"])(
    "who has not put the claim on record yet is not taken for nobody (%s asks)",
    async (who) => {
      heldBy(claimLockPath(1001, atHome), { pid: 77 });
      if (who === "root") ground.calledByRoot();
      expect(await verb("unclaim", atHome)).toBe(3);
      expect(ground.printed).toMatchObject({ out: "", err: expect.stringContaining("(process 77)") });
    },
  );

  test("who ended the claim before this helper was alone leaves nothing to do", async () => {
    ground.claimed(atHome);
    const lock = ground.lock.bind(ground);
    ground.lock = (path) => {
      ground.files.delete(claimRecordPath(atHome));
      return lock(path);
    };
    expect(await verb("unclaim", atHome)).toBe(0);
    expect(ground.printed.out).toContain("nothing to do");
    expect(ground.handBacks).toEqual([]);
  });
});

describe("a lock", () => {
  test("names its holder", async () => {
    place(ground, { pid: ground.pid, startTicks: 55 });
    await aloneWithClaims(ground, () => 0);
    expect(ground.writes[0]?.text).toBe(`400 55 ${new Date(ground.wallClockMs()).toISOString()} olga\n`);
  });

  test("that cannot have a name in it is nobody's, which is no success", async () => {
    ground.writeAnswers.set("", EFBIG);
    expect(await verb("claim", atHome)).toBe(3);
    expect(ground.printed.err).toContain("claims.lock cannot be written (errno 27)");
    expect(ground.locked.size).toBe(0);
  });
});
