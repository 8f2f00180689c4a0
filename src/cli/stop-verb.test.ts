// SPDX-License-Identifier: Apache-2.0
// `ai-tools --stop` in front of a sudo and a helper that say what the test wants: what is executed, with which words, and
// what the caller learns. QuickJS's `os` is replaced by one made by hand; the real one is at work in the boundary tests.

import { beforeEach, describe, expect, test, vi } from "vitest";

const sudo = "/usr/bin/sudo";
const helper = "/usr/libexec/ai-tools/ai-tools-stop";
const lastStop = "/run/ai-tools/last-stop.json";
const devNull = 77;

interface Executed {
  argv: string[];
  stdin: number;
}

/** What the front door finds around it. */
const scene = {
  euid: 1000,
  terminal: true,
  run: "r1" as string | undefined,
  /** What a program answers: an exit code, a negative signal, or an error to throw. */
  execute: (_argv: string[]): number => 0,
  executed: [] as Executed[],
  said: { 1: "", 2: "" } as Record<number, string>,
  ignored: [] as number[],
  byDefault: [] as number[],
};

vi.mock("os", () => {
  const texts = (): Record<string, string | undefined> => ({
    [lastStop]: scene.run === undefined ? undefined : `{"run":"${scene.run}","time":"t","caller":"c"}\n`,
    "/proc/self/status": `Name:\tai-tools\nUid:\t1000\t${scene.euid}\t${scene.euid}\t${scene.euid}\n`,
  });
  const opened: string[] = [];
  return {
    O_RDONLY: 0,
    signal: (number: number, handler: null | undefined) => {
      (handler === null ? scene.byDefault : scene.ignored).push(number);
    },
    isatty: () => scene.terminal,
    open: (path: string) => {
      if (path === "/dev/null") return devNull;
      const text = texts()[path];
      return text === undefined ? -2 : 100 + opened.push(text) - 1;
    },
    read: (fd: number, buffer: ArrayBuffer) => {
      const bytes = new TextEncoder().encode(opened[fd - 100] ?? "");
      new Uint8Array(buffer).set(bytes);
      return bytes.length;
    },
    close: () => 0,
    write: (fd: number, buffer: ArrayBuffer, at: number, count: number) => {
      scene.said[fd] += new TextDecoder("latin1").decode(new Uint8Array(buffer, at, count));
      return count;
    },
    exec: (argv: string[], options: { stdin: number }) => {
      scene.executed.push({ argv, stdin: options.stdin });
      return scene.execute(argv);
    },
  };
});

/** By a name that the type checker does not follow: these files are checked against QuickJS's `os`, not Node's. */
const file = "./stop-verb.ts";
const { stopThroughSudo } = (await import(file)) as {
  stopThroughSudo: (words: readonly string[], help: string) => number;
};

const stop = (...words: string[]) => stopThroughSudo(words, "HELP\n");
const argvs = () => scene.executed.map(({ argv }) => argv);

/** A helper that runs and ends with a code: it leaves the record of another run. */
function helperEnds(code: number): (argv: string[]) => number {
  return () => {
    scene.run = "r2";
    return code;
  };
}

beforeEach(() => {
  Object.assign(scene, {
    euid: 1000,
    terminal: true,
    run: "r1",
    execute: helperEnds(0),
    executed: [],
    said: { 1: "", 2: "" },
    ignored: [],
    byDefault: [],
  });
});

describe("an operator's plain stop", () => {
  test.each([[[]], [["--all"]], [["--all", "--all"]]])(
    "%j is the bare form that sudo grants without a password",
    (words) => {
      expect(stop(...words)).toBe(0);
      expect(scene.executed).toEqual([{ argv: [sudo, "-n", helper], stdin: 0 }]);
    },
  );

  test.each([["--yes"], ["-y"]])("%s is the bare form with nobody to ask: no word reaches sudo", (word) => {
    expect(stop(word)).toBe(0);
    expect(scene.executed).toEqual([{ argv: [sudo, "-n", helper], stdin: devNull }]);
  });

  test.each([0, 1, 4, 5, 130, 143])("code %i of a helper that ran is the caller's, and sudo is asked once", (code) => {
    scene.execute = helperEnds(code);
    expect(stop()).toBe(code);
    expect(scene.executed).toHaveLength(1);
    expect(scene.said[2]).toBe("");
  });

  test("a helper that was killed is not a success", () => {
    scene.execute = () => -9;
    expect(stop()).toBe(137);
  });

  test("keys and a closed job do not take the caller away while the helper works", () => {
    stop();
    expect(scene.ignored).toEqual([2, 3, 20]);
  });

  test("a caller that ignores SIGCHLD does not take the exit code away", () => {
    stop();
    expect(scene.byDefault).toEqual([17]);
  });
});

describe("the other forms", () => {
  test.each([
    [["--dry-run"], ["--dry-run"]],
    [["--force", "--all"], ["--force"]],
    [
      ["--json", "-y", "--force", "--json"],
      ["--yes", "--force", "--json"],
    ],
  ])("%j goes through an ordinary sudo, with nothing but the options themselves", (words, passed) => {
    stop(...words);
    expect(scene.executed).toEqual([{ argv: [sudo, helper, ...passed], stdin: 0 }]);
  });

  test.each(["/srv", "", "--yes=1", "-n", "--", "-u", "--user=olga", "; reboot"])(
    "%j touches nothing and executes nothing",
    (word) => {
      expect(stop(word)).toBe(2);
      expect(stop("--force", word)).toBe(2);
      expect(scene.executed).toEqual([]);
      expect(scene.said[2]).toContain("ai-tools --stop");
    },
  );

  test("help and version work for anyone and execute nothing", () => {
    expect([stop("--help"), stop("--version", "--force")]).toEqual([0, 0]);
    expect(scene.said[1]).toMatch(/^HELP\nai-tools [0-9.]+\n$/);
    expect(scene.executed).toEqual([]);
  });
});

describe("sudo's own refusal", () => {
  test("is told apart from a helper that found survivors by the record of the last stop", () => {
    scene.execute = helperEnds(1);
    expect(stop()).toBe(1);
    scene.execute = () => 1;
    scene.terminal = false;
    expect(stop()).toBe(5);
    expect(scene.said[2]).toContain("nothing was stopped");
    expect(scene.said[2]).toContain(`As root: ${helper}`);
    expect(scene.said[2]).toContain("systemctl kill -s KILL user-$(id -u ai-tools).slice");
  });

  test("on a host where no stop ever ran is told as well", () => {
    scene.run = undefined;
    scene.execute = () => 1;
    scene.terminal = false;
    expect(stop()).toBe(5);
  });

  test("at a terminal is tried once more, so that it may ask for a password", () => {
    scene.execute = (argv) => (argv.includes("-n") ? 1 : helperEnds(0)(argv));
    expect(stop()).toBe(0);
    expect(argvs()).toEqual([
      [sudo, "-n", helper],
      [sudo, helper],
    ]);
  });

  test("that comes twice is told, and not tried a third time", () => {
    scene.execute = () => 1;
    expect(stop()).toBe(5);
    expect(argvs()).toHaveLength(2);
  });

  test("after the second try a helper's 1 is the helper's", () => {
    scene.execute = (argv) => (argv.includes("-n") ? 1 : helperEnds(1)(argv));
    expect(stop()).toBe(1);
  });

  test.each(["--yes", "--dry-run", "--force"])("of %s is not asked again", (word) => {
    scene.execute = () => 1;
    expect(stop(word)).toBe(5);
    expect(argvs()).toHaveLength(1);
  });

  test("a sudo that is not there, and a fork that fails, are told with what to do by hand", () => {
    scene.execute = () => 127;
    scene.terminal = false;
    expect(stop()).toBe(5);
    scene.execute = () => {
      throw new TypeError("fork error");
    };
    expect(stop()).toBe(5);
    expect(scene.said[2]).toContain("no process could be started");
  });
});

describe("root", () => {
  beforeEach(() => {
    scene.euid = 0;
  });

  test("executes the helper itself, with all its options", () => {
    stop("--all", "--yes", "--force", "--json", "--dry-run");
    expect(scene.executed).toEqual([{ argv: [helper, "--dry-run", "--yes", "--force", "--json"], stdin: 0 }]);
  });

  test.each([0, 1, 4, 5, 130])("gets the helper's code %i as it is", (code) => {
    scene.execute = () => code;
    expect(stop()).toBe(code);
    expect(scene.executed).toHaveLength(1);
  });

  test("is told where the helper is not there", () => {
    scene.execute = () => 127;
    expect(stop()).toBe(5);
    expect(scene.said[2]).toContain("nothing was stopped. Reinstall the package.");
  });
});
