// SPDX-License-Identifier: Apache-2.0
// Where a project stands for PID 1: the claimed directory and no other, where nobody but root comes, as long as needed.

import { describe, expect, test } from "vitest";
import { statusText } from "../stop/hand-made-processes.fixture.ts";
import { events, HandMadeSession, unit } from "./hand-made-session.fixture.ts";
import { notRun, run } from "./run.ts";
import { readSessions, waitingPath } from "./session-records.ts";

async function runOn(change: (ground: HandMadeSession) => void) {
  const ground = new HandMadeSession();
  change(ground);
  const code = await run(ground);
  return { ground, code, said: ground.printed.err };
}

describe("a project below a home", () => {
  const places = "/run/ai-tools/projects";
  const place = `${places}/${unit}`;
  const atHome = (path: string, change: (ground: HandMadeSession) => void) =>
    runOn((ground) => {
      ground.existing(path, { uid: 1001, gid: 1001, device: 8, inode: 73 });
      ground.claimed(path);
      ground.directory = path;
      change(ground);
    });

  test.each([
    ["/home/olga/site", "/home/olga/site"],
    ["/home/olga/a\nb", "/home/ai-tools-project"],
  ])("%j is mounted, by what was claimed, where only root comes, before PID 1 is told", async (path, inside) => {
    const { ground } = await atHome(path, (ground) => {
      ground.atStart = () => {
        expect(ground.mounted.get(place)).toEqual({ path, device: 8, inode: 73, uid: 1001, place });
        expect([ground.modes.get(places), ground.modes.get(place)]).toEqual([0o700, 0o700]);
      };
    });
    expect(ground.started()).toContain(`BindPaths=${place}:${inside}`);
  });

  test.each<[string, (ground: HandMadeSession) => void]>([
    ["that ended", () => undefined],
    [
      "that PID 1 refused",
      (ground) => {
        ground.script = { returns: 30, code: 1 };
      },
    ],
    [
      "that was ended",
      (ground) => {
        ground.script = { begins: 20 };
        ground.atStart = () => ground.stopsBegun(1);
      },
    ],
    [
      "for which there was no process",
      (ground) => {
        ground.startInForeground = () => 11;
      },
    ],
  ])("is mounted nowhere after a session %s", async (_name, change) => {
    const { ground } = await atHome("/home/olga/site", change);
    expect(ground.acts).toContain(`bind /home/olga/site ${place}`);
    expect(ground.mounted.size).toBe(0);
    expect(ground.pathStats.has(place)).toBe(false);
  });

  test.each<[string, (ground: HandMadeSession) => void, string]>([
    [
      "another one is there now",
      (ground) => {
        ground.bindAnswer = () => 116;
      },
      "is another directory now",
    ],
    [
      "PID 1 would not see the mount",
      (ground) => void ground.links.set("/proc/1/ns/mnt", "mnt:[2]"),
      "another mount namespace",
    ],
    ["that cannot be told", (ground) => void ground.links.set("/proc/self/ns/mnt", 13), "another mount namespace"],
    ["others can enter the place", (ground) => void ground.existing(places), `chmod 0700 ${places}`],
    ["the place is a link", (ground) => void ground.existing(places, { kind: "link", mode: 0o700 }), "root's alone"],
    [
      "the place belongs to somebody",
      (ground) => void ground.existing(places, { uid: 1001, mode: 0o700 }),
      "root's alone",
    ],
  ])("is not started in where %s", async (_name, change, sentence) => {
    const { ground, code, said } = await atHome("/home/olga/site", change);
    expect(code).toBe(notRun);
    expect(said).toContain(sentence);
    expect(ground.started()).toBeUndefined();
    expect([ground.mounted.size, readSessions(ground).sessions.length]).toEqual([0, 0]);
  });

  test.each([
    ["as the account: it has its own view by then", [990, 990, 990, 990], false],
    ["as root: PID 1 is still at work on it", [0, 0, 0, 0], true],
    ["with the account's real number alone, as PID 1 reaches for its keys", [990, 0, 0, 0], true],
  ])("is no longer mounted when a process of the unit is there %s", async (_what, uids, isMounted) => {
    let wasMounted: boolean | undefined;
    const { ground } = await atHome("/home/olga/site", (ground) => {
      ground.files.set(events.replace("cgroup.events", "cgroup.procs"), "500\n");
      ground.files.set("/proc/500/status", statusText({ pid: 500, uids: uids as [number, number, number, number] }));
      const sleep = ground.sleep.bind(ground);
      ground.sleep = async (ms) => {
        if (ground.clockMs >= 1_000_080) wasMounted ??= ground.mounted.has(place);
        await sleep(ms);
      };
    });
    expect(wasMounted).toBe(isMounted);
    expect(ground.mounted.size).toBe(0);
  });

  test("what launchers that were killed left is taken away, and nothing that is in use", async () => {
    const left = (number: number) => `${places}/ai-tools-shell-${number}.service`;
    const { ground } = await runOn((ground) => {
      ground.existing(places, { mode: 0o700 });
      for (const number of [1, 2, 3]) {
        ground.existing(left(number));
        ground.mounted.set(left(number), { path: "/x", device: 1, inode: 1, uid: 1, place: left(number) });
      }
      ground.files.set(events.replace(unit, "ai-tools-shell-2.service"), "populated 1\n");
      ground.launcher(700);
      ground.files.set(waitingPath("ai-tools-shell-3.service"), "launcher 700 1700\n");
      ground.existing(`${places}/other`);
    });
    expect([...ground.mounted.keys()]).toEqual([left(2), left(3)]);
    expect(ground.pathStats.has(left(1))).toBe(false);
    expect(ground.pathStats.has(`${places}/other`)).toBe(true);
  });

  test("elsewhere is mounted nowhere", async () => {
    const { ground } = await runOn((ground) => void ground.links.set("/proc/1/ns/mnt", "mnt:[2]"));
    expect(ground.started()).toBeDefined();
    expect(ground.acts.filter((act) => act.startsWith("bind "))).toEqual([]);
  });
});
