// SPDX-License-Identifier: Apache-2.0
// The ground over an `os` and a `native` made by hand: arguments, programs in the foreground, signals and locks. System
// calls themselves, and the walk of a handback, are told by the boundary tests.

import { beforeEach, describe, expect, test, vi } from "vitest";
import { type HandMadeOs, reset, target } from "../stop/hand-made-os.fixture.ts";
import { SIGCHLD, SIGHUP, SIGINT, SIGKILL, SIGQUIT, SIGTERM } from "../stop/kernel.ts";
import type { Ground } from "./ground.ts";

const kernel = {
  directory: "/home/olga/work" as string | number,
  real: "/srv/project" as string | number,
  flock: 0,
  bound: 0,
  handedBack: -116 as unknown,
  made: 0,
  context: "a:b:c" as string | number,
  asked: [] as unknown[],
  masks: [] as number[],
};

vi.mock("os", async () => ({
  ...(await import("../stop/hand-made-os.fixture.ts")).os,
  remove: (path: string) => {
    kernel.asked.push(path);
    return 0;
  },
  rename: (...paths: string[]) => {
    kernel.asked.push(paths);
    return -17;
  },
}));
vi.mock("std", () => ({ getenv: () => undefined, strerror: (errno: number) => `error ${errno}` }));
vi.mock("pidfd", () => ({}));
vi.mock("native", () => ({
  getcwd: () => kernel.directory,
  realpath: () => kernel.real,
  flock: () => kernel.flock,
  umask: (mask: number) => kernel.masks.push(mask),
  bindDirectory: (...words: unknown[]) => {
    kernel.asked.push(words);
    return kernel.bound;
  },
  unbindDirectory: () => kernel.bound,
  handBack: (...words: unknown[]) => {
    kernel.asked.push(words);
    return kernel.handedBack;
  },
  relabel: (...words: unknown[]) => {
    kernel.asked.push(words);
    return kernel.handedBack;
  },
  mkfifo: (...words: unknown[]) => {
    kernel.asked.push(words);
    return kernel.made;
  },
  fileContext: () => kernel.context,
}));

/** By a name that the type checker does not follow: this file is checked against QuickJS's `os`, not Node's. */
const file = "./quickjs-ground.ts";
const { QuickjsGround } = (await import(file)) as { QuickjsGround: new () => Ground };

let world: HandMadeOs;

function groundOf(...words: string[]): Ground {
  (globalThis as { scriptArgs?: string[] }).scriptArgs = ["/usr/libexec/ai-tools/ai-tools-claim", ...words];
  return new QuickjsGround();
}

beforeEach(() => {
  world = reset(target("terminal"), target("pipe"), target("pipe"));
  Object.assign(kernel, { directory: "/home/olga/work", real: "/srv/project", flock: 0, asked: [], masks: [] });
});

describe("the arguments", () => {
  const bytes = (...words: string[]) =>
    world.files.set("/proc/self/cmdline", ["/usr/libexec/ai-tools/ai-tools-claim", ...words, ""].join("\0"));

  test.each([
    ["plain", ["claim", "/srv/a b"], ["claim", "/srv/a b"]],
    ["not ASCII", ["claim", "/srv/ü漢"], ["claim", "/srv/\xc3\xbc\xe6\xbc\xa2"]],
    ["empty", ["claim", "", ""], ["claim", "", ""]],
    ["the replacement character itself", ["\ufffd"], ["\xef\xbf\xbd"]],
  ])("are whole when they are %s", (_what, words, written) => {
    bytes(...written);
    expect(groundOf(...words).areWordsWhole()).toBe(true);
    expect(groundOf(...words).words).toEqual(words);
  });

  test.each([
    ["a byte that is no UTF-8", ["/srv/\ufffd"], ["/srv/\xff"]],
    ["half a surrogate pair", ["/srv/\ud800"], ["/srv/\xed\xa0\x80"]],
    ["fewer words than the kernel has", ["claim"], ["claim", "/srv"]],
  ])("are not whole with %s", (_what, words, written) => {
    bytes(...written);
    expect(groundOf(...words).areWordsWhole()).toBe(false);
  });

  test("are not whole where that cannot be told", () => {
    expect(groundOf("claim").areWordsWhole()).toBe(false);
  });
});

describe("paths", () => {
  test("the directory is the one that the program was started in, also when it was left", () => {
    const ground = groundOf();
    ground.prepare();
    kernel.directory = "/";
    expect(ground.currentDirectory()).toBe("/home/olga/work");
  });

  test("an error of the kernel is an errno", () => {
    kernel.directory = -84;
    kernel.real = -40;
    expect([groundOf().currentDirectory(), groundOf().realPath("/srv/link")]).toEqual([84, 40]);
  });
});

describe("a program in the foreground", () => {
  test("has a fixed environment and this process's own descriptors, and its end is seen", () => {
    const ground = groundOf();
    const child = ground.startInForeground(["/usr/bin/systemd-run"], { environment: { TERM: "vt100" } });
    if (typeof child === "number") throw new Error(`errno ${child}`);
    expect(world.executed).toMatchObject([
      {
        argv: ["/usr/bin/systemd-run"],
        options: {
          usePath: false,
          block: false,
          env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C", TERM: "vt100" },
          stdin: 0,
          stdout: 1,
          stderr: 2,
        },
      },
    ]);
    expect(child.exitCode()).toBeUndefined();
    for (const executed of world.executed) executed.status = 3 << 8;
    expect(child.exitCode()).toBe(3);
  });

  test("has the ends of pipes where it is given them", () => {
    const ground = groundOf();
    ground.startInForeground(["/usr/bin/cat"], { descriptors: { 1: { fd: 9 } } });
    expect(world.executed[0]?.options).toMatchObject({ stdin: 0, stdout: 9, stderr: 2 });
  });

  test("that a signal ended is told as a shell tells it", () => {
    const child = groundOf().startInForeground(["/usr/bin/cat"]);
    if (typeof child === "number") throw new Error(`errno ${child}`);
    for (const executed of world.executed) executed.status = SIGTERM;
    expect(child.exitCode()).toBe(128 + SIGTERM);
  });

  test("that is abandoned is killed, it alone", () => {
    const child = groundOf().startInForeground(["/usr/bin/cat"]);
    if (typeof child === "number") throw new Error(`errno ${child}`);
    child.abandon();
    expect(world.killed).toEqual([{ pid: world.executed[0]?.pid, signal: SIGKILL }]);
  });

  test("that cannot be started for lack of a process is 127, or an error", () => {
    world.canFork = false;
    expect(groundOf().runInForeground(["/usr/bin/sudo"])).toBe(127);
    expect(groundOf().startInForeground(["/usr/bin/sudo"])).toBe(11);
  });

  test("is waited for also by a caller that ignores SIGCHLD", () => {
    groundOf().startInForeground(["/usr/bin/cat"]);
    expect(world.handlers.get(SIGCHLD)).toBeNull();
  });
});

describe("signals that are watched", () => {
  test("arrive once each, and programs get them as by default", () => {
    const ground = groundOf();
    ground.prepare();
    ground.watchSignals([SIGHUP, SIGINT, SIGQUIT, SIGTERM]);
    for (const signal of [SIGTERM, SIGHUP, SIGTERM]) world.deliver(signal);
    expect(ground.arrivedSignals()).toEqual([SIGTERM, SIGHUP]);
    expect(ground.arrivedSignals()).toEqual([]);
    ground.startInForeground(["/usr/bin/cat"]);
    for (const signal of [SIGHUP, SIGINT, SIGQUIT, SIGTERM]) expect(world.executed[0]?.ignored).not.toContain(signal);
  });
});

describe("what is printed", () => {
  test("goes to the caller's own descriptors, no child between", async () => {
    const ground = groundOf();
    ground.print("out", "claimed\n");
    ground.print("err", "but\n");
    expect(await ground.closeOutput(100)).toBe(true);
    expect([world.descriptors.get(1)?.written, world.descriptors.get(2)?.written]).toEqual(["claimed\n", "but\n"]);
    expect(world.executed).toEqual([]);
  });

  test("is waited for where a descriptor takes nothing now, and not longer than the limit", async () => {
    const ground = groundOf();
    const pipe = world.descriptors.get(1);
    if (pipe === undefined) throw new Error("no descriptor 1");
    pipe.takes = false;
    ground.print("out", "claimed\n");
    const before = world.clockMs;
    expect(await ground.flush(100)).toBe(false);
    expect(world.clockMs - before).toBeGreaterThanOrEqual(100);
    pipe.takes = true;
    expect(await ground.flush(100)).toBe(true);
    expect(pipe.written).toBe("claimed\n");
  });
});

describe("what belongs to the stop alone", () => {
  test("starts nothing here: this executable has no such names", async () => {
    const ground = groundOf();
    expect(ground.startRecorder()).toBe(95);
    expect(await ground.discardTyped()).toBe(false);
    expect(world.executed).toEqual([]);
  });
});

describe("a record", () => {
  test("that could not be written whole leaves nothing beside the one that stands", () => {
    const ground = groundOf();
    const beside = `/var/lib/x.json.${ground.pid}.new`;
    expect(ground.replaceFile("/var/lib/x.json", "{}", 0o644)).toBe(2);
    expect(kernel.asked).toEqual([beside, beside]);
  });

  test("is moved by its name alone, and an errno is an errno", () => {
    expect(groundOf().rename("/a", "/b")).toBe(17);
    expect(kernel.asked).toEqual([["/a", "/b"]]);
  });
});

describe("a directory at another place", () => {
  test("is asked for by what it must be, and an errno is an errno", () => {
    const binding = { path: "/home/olga/p", device: 1, inode: 2, uid: 1001, place: "/run/x" };
    kernel.bound = 0;
    expect(groundOf().bindDirectory(binding) === 0).toBe(true);
    kernel.bound = -116;
    expect(groundOf().bindDirectory(binding)).toBe(116);
    expect(groundOf().unbindDirectory("/run/x")).toBe(116);
    expect(kernel.asked[0]).toEqual(["/home/olga/p", 1, 2, 1001, "/run/x"]);
  });
});

describe("a handback", () => {
  const request = { path: "/srv/p", device: 1, inode: 2, from: 647, uid: 1001, gid: 100, withGit: false };

  test("passes on what is asked for, and an errno is an errno", () => {
    kernel.handedBack = -116;
    expect(groundOf().handBack(request)).toBe(116);
    expect(kernel.asked).toEqual([["/srv/p", 1, 2, 647, 1001, 100, false]]);
  });

  test("shows the paths of failures printable, each with its reason", () => {
    const bytes = (text: string) => Uint8Array.from(text, (letter) => letter.charCodeAt(0)).buffer;
    kernel.handedBack = {
      ...{ changed: 3, gitLeft: 1, mounts: 2, failed: 3 },
      failures: [
        { path: bytes("a/\x1b[2J\xff"), errno: 1 },
        { path: bytes(""), errno: 30 },
        { path: bytes("deep"), errno: 116 },
      ],
    };
    expect(groundOf().handBack(request)).toEqual({
      ...{ changed: 3, gitLeft: 1, mounts: 2, failed: 3 },
      failures: ["a/\\x1b[2J\\xff: error 1", ".: error 30", "deep: moved meanwhile"],
    });
  });
});

describe("a change of labels", () => {
  const request = { path: "/srv/p", device: 1, inode: 2, owner: 1001, account: 647, from: ["a_t", "b_t"], to: "c_t" };

  test("is one call, with each type between two spaces; its errno is positive", () => {
    kernel.handedBack = -116;
    expect(groundOf().relabel(request)).toBe(116);
    expect(kernel.asked).toEqual([["/srv/p", 1, 2, 1001, 647, " a_t b_t ", "c_t"]]);
  });

  test("tells what kept its own and what could not be changed", () => {
    const path = Uint8Array.from("x", (letter) => letter.charCodeAt(0)).buffer;
    kernel.handedBack = { changed: 3, left: 2, gitLeft: 0, mounts: 1, failed: 1, failures: [{ path, errno: 95 }] };
    expect(groundOf().relabel(request)).toEqual({
      changed: 3,
      left: 2,
      mounts: 1,
      failed: 1,
      failures: ["x: error 95"],
    });
  });
});

test("a context, or a positive errno", () => {
  expect(groundOf().fileContext("/x")).toBe("a:b:c");
  kernel.context = -61;
  expect(groundOf().fileContext("/x")).toBe(61);
});

test("a named pipe takes the place of what has its name, for root alone; a refusal is a positive errno", () => {
  kernel.made = -30;
  expect(groundOf().makeNamedPipe("/run/x")).toBe(30);
  expect(kernel.asked).toEqual(["/run/x", ["/run/x", 0o600]]);
});
