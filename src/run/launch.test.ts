// SPDX-License-Identifier: Apache-2.0
// Who may start what, and where: each check on both sides, and nothing is touched by any of them.

import { describe, expect, test } from "vitest";
import { claimRecordPath } from "../claim/claims.ts";
import { enforcing } from "../ground/hand-made-selinux.fixture.ts";
import { holdPath, launcherPath, sessionDirectory } from "../ground/places.ts";
import { counterPath } from "../stop/announcement.ts";
import { events, HandMadeSession, project, unit } from "./hand-made-session.fixture.ts";
import { checkLaunch, type Launch } from "./launch.ts";

const check = (change: (ground: HandMadeSession) => void = () => undefined) => {
  const ground = new HandMadeSession();
  change(ground);
  const launch = checkLaunch(ground);
  expect(ground.acts).toEqual([]);
  return launch;
};

describe("an operator in a project of theirs", () => {
  test("may start an entry point with any arguments", () => {
    expect(check()).toMatchObject({
      unit,
      uid: 990,
      arguments: ["-c", "make $HOME"],
      operator: { name: "olga", uid: 1001 },
      directory: project,
      stops: 0,
      unclean: [],
    });
    expect(
      check((ground) => {
        ground.words = ["shell"];
      }),
    ).toMatchObject({ arguments: [] });
    expect(
      check((ground) => {
        ground.words = ["shell", "--", "--", ""];
      }),
    ).toMatchObject({ arguments: ["--", ""] });
  });

  test("may do so below it", () => {
    expect(
      check((ground) => {
        ground.directory = `${project}/a b/c`;
      }),
    ).toMatchObject({
      directory: `${project}/a b/c`,
    });
  });

  test("is told of sessions there that did not end by themselves, and of none that runs", () => {
    const launch = check((ground) => {
      ground.recorded({ unit: "ai-tools-shell-1.service" });
      ground.recorded({ unit: "ai-tools-shell-2.service", project: "/srv/other" });
      ground.recorded({ unit: "ai-tools-shell-3.service" });
      ground.files.set(events.replace(unit, "ai-tools-shell-3.service"), "populated 1\n");
    }) as Launch;
    expect(launch.unclean.map((session) => session.unit)).toEqual(["ai-tools-shell-1.service"]);
  });
});

test("a session that left its handback to others that run is none to be told of, and is one when they are over", () => {
  const clean = { at: "t", how: "ended with 0", clean: true };
  const launch = (answer: string) =>
    check((ground) => {
      ground.recorded({ unit: "ai-tools-shell-1.service", ended: clean });
      ground.recorded({ unit: "ai-tools-shell-2.service", ended: { ...clean, clean: false } });
      ground.recorded({ unit: "ai-tools-shell-3.service" });
      ground.files.set(events.replace(unit, "ai-tools-shell-3.service"), answer);
    }) as Launch;
  const units = ({ unclean }: Launch) => unclean.map((session) => session.unit).sort();
  expect(units(launch("populated 1\n"))).toEqual(["ai-tools-shell-2.service"]);
  expect(units(launch("populated 0\n"))).toEqual([1, 2, 3].map((number) => `ai-tools-shell-${number}.service`));
});

describe("nobody may", () => {
  test.each<[string, (ground: HandMadeSession) => void, string]>([
    [
      "without an entry point",
      (ground) => {
        ground.words = [];
      },
      "usage:",
    ],
    [
      "with an option for one",
      (ground) => {
        ground.words = ["--help"];
      },
      "usage:",
    ],
    [
      "with arguments that are not behind --",
      (ground) => {
        ground.words = ["shell", "-c"];
      },
      'behind "--"',
    ],
    [
      "with words that are no UTF-8",
      (ground) => {
        ground.wordsAreWhole = false;
      },
      "no UTF-8",
    ],
    [
      "as anybody but root's helper",
      (ground) => {
        ground.root = false;
      },
      "for root",
    ],
    ["as root itself", (ground) => ground.variables.clear(), "root itself asks"],
    [
      "under somebody else's name",
      (ground) => void ground.variables.set("SUDO_UID", "1002"),
      "cannot be told who asks",
    ],
    ["as the account", (ground) => ground.calledBy({ name: "ai-tools", uid: 990 }), "is no operator"],
    [
      "without the account",
      (ground) => void ground.files.set("/etc/passwd", "olga:x:1001:1001::/home/olga:/x\n"),
      "no account",
    ],
    [
      "with an entry point that is none",
      (ground) => {
        ground.words = ["nope"];
      },
      "no entry point nope",
    ],
    [
      "from a directory without a name",
      (ground) => {
        ground.directory = 84;
      },
      "errno 84",
    ],
    [
      "outside of claimed projects",
      (ground) => {
        ground.directory = "/srv/data";
      },
      "is in no claimed project",
    ],
    [
      "beside one",
      (ground) => {
        ground.directory = `${project}2`;
      },
      "is in no claimed project",
    ],
    [
      "in one that was exchanged",
      (ground) => void ground.existing(project, { uid: 1001, inode: 9 }),
      "not the directory any more",
    ],
    [
      "in one that is somebody else's now",
      (ground) => void ground.existing(project, { uid: 7, device: 8, inode: 72 }),
      "not the directory any more",
    ],
    ["where the hierarchy cannot be seen", (ground) => void ground.files.set("/proc/1/cgroup", "0::/x\n"), "process 1"],
    [
      "where the boot cannot be told",
      (ground) => void ground.files.set("/proc/sys/kernel/random/boot_id", 13),
      "which boot",
    ],
    [
      "while a hold is set",
      (ground) => void ground.files.set(holdPath, '{"operator":"ursula","since":"s","reason":"look"}'),
      "by ursula: look",
    ],
    ["while a hold cannot be read", (ground) => void ground.files.set(holdPath, 13), "cannot be read"],
    ["where stops cannot be counted", (ground) => void ground.stats.set(counterPath, 13), "errno 13"],
    [
      "where records cannot be read",
      (ground) => void ground.files.set(`${sessionDirectory}/x.json`, "{"),
      `as root: rm ${sessionDirectory}/x.json`,
    ],
    ["under a name that runs", (ground) => void ground.files.set(events, "populated 1\n"), "runs already"],
  ])("%s", (_name, change, sentence) => {
    expect(check(change)).toContain(sentence);
  });

  test("in a project that somebody else has claimed", () => {
    const launch = check((ground) => {
      const ursula = ground.person("ursula", 1002);
      ground.files.set(claimRecordPath(project), JSON.stringify({ ...ground.claim, operator: ursula }));
    });
    expect(launch).toBe(`${project} was claimed by ursula, not by olga`);
  });

  test("while a stop runs", () => {
    const launch = check((ground) => {
      ground.launcher(700);
      ground.files.set("/run/ai-tools/stop/700-1700", "999000");
    });
    expect(launch).toContain("a stop is running");
  });
});

test("the counter of stops is read before the gate is looked at", () => {
  const ground = new HandMadeSession();
  const lstat = ground.lstat.bind(ground);
  ground.lstat = (path) => {
    ground.reads.push(path);
    return lstat(path);
  };
  ground.stopsBegun(4);
  expect(checkLaunch(ground)).toMatchObject({ stops: 4 });
  expect(ground.reads.indexOf(counterPath)).toBeGreaterThan(-1);
  expect(ground.reads.indexOf("/run/ai-tools/stop")).toBeGreaterThan(ground.reads.indexOf(counterPath));
});

describe("under SELinux that enforces", () => {
  const labelled = (ground: HandMadeSession, type: string) =>
    ground.fileContexts.set(project, `unconfined_u:object_r:${type}:s0`);
  const whole = (ground: HandMadeSession) => {
    enforcing(ground);
    labelled(ground, "ai_tools_project_t");
  };

  test("a session starts where policy, launcher and project have what it needs, and is asked for by its context", () => {
    const confinement = { context: "system_u:system_r:ai_tools_t:s0", held: "ai_tools_t" };
    expect(check(whole)).toMatchObject({ confinement });
  });

  test.each<[string, (ground: HandMadeSession) => unknown, string]>([
    ["the policy is missing", (ground) => enforcing(ground, { knows: [] }), "dnf install ai-tools-selinux"],
    [
      "the launcher has another label",
      (ground) => ground.fileContexts.set(launcherPath, "a:b:bin_t"),
      "restorecon -RFv",
    ],
    ["the project has another label", (ground) => labelled(ground, "user_home_t"), `ai-tools --claim ${project}`],
    ["the project's label cannot be read", (ground) => ground.fileContexts.delete(project), "errno 61"],
  ])("none starts where %s", (_what, change, sentence) => {
    const refused = check((ground) => {
      whole(ground);
      change(ground);
    });
    expect(refused).toEqual(expect.stringContaining(sentence));
  });

  test("where it is permissive no label of the project's is needed", () => {
    const launch = check((ground) => {
      enforcing(ground);
      ground.files.set("/sys/fs/selinux/enforce", "0");
    });
    expect(launch).toMatchObject({
      confinement: { held: "ai_tools_t", warning: "not confined: SELinux is permissive" },
    });
  });
});

test("without the launcher none starts", () => {
  expect(check((ground) => void ground.pathStats.delete(launcherPath))).toContain("dnf reinstall ai-tools");
});
