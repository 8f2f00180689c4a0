// SPDX-License-Identifier: Apache-2.0
// The verbs of the front door in front of a sudo and helpers that say what the test wants: what is executed, with which
// words, and what the caller learns. QuickJS's `os` is replaced by one made by hand.

import { beforeEach, describe, expect, test, vi } from "vitest";
import type { Ground } from "../ground/ground.ts";
import { HandMadeGround } from "../ground/hand-made-ground.fixture.ts";

const sudo = "/usr/bin/sudo";
const claim = "/usr/libexec/ai-tools/ai-tools-claim";
const run = "/usr/libexec/ai-tools/ai-tools-run";
const hold = "/usr/libexec/ai-tools/ai-tools-hold";
const granted = `User olga may run the following commands on host:
    (root) NOPASSWD: /usr/libexec/ai-tools/ai-tools-claim, /usr/libexec/ai-tools/ai-tools-run, ${hold}
`;

const scene = {
  execute: (_argv: string[]): number => 0,
  executed: [] as string[][],
  said: "",
  caught: [] as number[],
  ignored: [] as number[],
};

vi.mock("os", () => ({
  signal: (number: number, handler: unknown) => {
    if (typeof handler === "function") scene.caught.push(number);
    if (handler === undefined) scene.ignored.push(number);
  },
  write: (_fd: number, buffer: ArrayBuffer, at: number, count: number) => {
    scene.said += new TextDecoder("latin1").decode(new Uint8Array(buffer, at, count));
    return count;
  },
  exec: (argv: string[]) => {
    scene.executed.push(argv);
    return scene.execute(argv);
  },
}));

/** By a name that the type checker does not follow: these files are checked against QuickJS's `os`, not Node's. */
const file = "./through-sudo.ts";
const { throughSudo, verbs } = (await import(file)) as {
  throughSudo: (ground: Ground, name: string, verb: unknown, words: readonly string[]) => Promise<number>;
  verbs: Record<string, unknown>;
};

let ground: HandMadeGround;

beforeEach(() => {
  Object.assign(scene, { execute: () => 0, executed: [], said: "", caught: [], ignored: [] });
  ground = new HandMadeGround();
  ground.root = false;
  for (const path of [sudo, claim, run, hold]) {
    ground.stats.set(path, { kind: "file", mode: 0o755, uid: 0, nlink: 1, rdev: 0, size: 1 });
  }
  ground.program = (line) => (line === `${sudo} -n -l` ? { code: 0, output: granted } : undefined);
});

function type(name: string, ...words: string[]): Promise<number> {
  return throughSudo(ground, name, verbs[name], words);
}

describe("an operator's words reach the helper as they were typed", () => {
  test.each([
    ["--claim", ["."], [claim, "claim", "."]],
    ["--claim", ["/srv/a b\nc/\u00fc"], [claim, "claim", "/srv/a b\nc/\u00fc"]],
    ["--claim", ["--", "-x"], [claim, "claim", "-x"]],
    ["--unclaim", ["/srv/x"], [claim, "unclaim", "/srv/x"]],
    ["--reclaim", ["/srv/x"], [claim, "reclaim", "/srv/x"]],
    ["--run", ["shell"], [run, "shell"]],
    ["--run", ["shell", "--"], [run, "shell", "--"]],
    ["--run", ["shell", "--", "--stop", "", "-c", "a b"], [run, "shell", "--", "--stop", "", "-c", "a b"]],
    ["--hold", [], [hold, "hold"]],
    ["--hold", ["incident 7"], [hold, "hold", "incident 7"]],
    ["--release", [], [hold, "release"]],
  ])("%s %j", async (name, words, argv) => {
    expect(await type(name, ...words)).toBe(0);
    expect(scene.executed).toEqual([[sudo, "-n", ...argv]]);
    expect(scene.said).toBe("");
  });
});

describe("words of another form execute nothing, and say what to type", () => {
  test.each([
    ["--claim", [], 2],
    ["--claim", [""], 2],
    ["--claim", ["a", "b"], 2],
    ["--claim", ["--force"], 2],
    ["--reclaim", ["--", "a", "b"], 2],
    ["--run", [], 125],
    ["--run", [""], 125],
    ["--run", ["Shell"], 125],
    ["--run", ["../shell"], 125],
    ["--run", ["-x"], 125],
    ["--run", ["shell", "ls"], 125],
    ["--hold", ["--json"], 2],
    ["--hold", ["incident", "7"], 2],
    ["--release", ["x"], 2],
  ])("%s %j", async (name, words, code) => {
    expect(await type(name, ...words)).toBe(code);
    expect(scene.executed).toEqual([]);
    expect(scene.said).toContain(`To be typed: ai-tools ${name}`);
  });
});

describe("the helper's end", () => {
  test.each([0, 1, 2, 3, 125, 126, 127, 130, 255])("with %i is the caller's", async (code) => {
    scene.execute = () => code;
    expect(await type("--run", "shell")).toBe(code);
    expect(scene.said).toBe("");
  });

  test("by a signal is 128+n", async () => {
    scene.execute = () => -9;
    expect(await type("--run", "shell")).toBe(137);
  });

  test.each([0, 1, 2] as const)(
    "is waited for: keys go to the helper, and are not ignored in what it starts (terminal at %i)",
    async (descriptor) => {
      ground.terminals = [descriptor];
      await type("--run", "shell");
      expect({ caught: scene.caught, ignored: scene.ignored }).toEqual({ caught: [2, 3], ignored: [] });
    },
  );

  test("is not waited for by whoever is told to end without a terminal: that tells the helper", async () => {
    await type("--run", "shell");
    expect({ caught: scene.caught, ignored: scene.ignored }).toEqual({ caught: [], ignored: [] });
  });
});

describe("where no helper ran", () => {
  const grants = {
    "no rule at all": { code: 1, output: "" },
    "no rule for the helper": { code: 0, output: "    (root) NOPASSWD: /usr/bin/true\n" },
    "a later rule with a password": { code: 0, output: `${granted}    (ALL : ALL) ALL\n` },
  };

  test.each(Object.entries(grants))("a 1 of sudo is told apart from the helper's: %s", async (_name, list) => {
    scene.execute = () => 1;
    ground.program = () => list;
    expect(await type("--run", "shell")).toBe(125);
    expect(await type("--claim", ".")).toBe(3);
    expect(scene.said).toContain("sudo did not run the helper: nothing was done");
  });

  test("a sudo that does not answer is no grant", async () => {
    scene.execute = () => 1;
    ground.program = () => "hangs";
    expect(await type("--hold")).toBe(3);
  });

  test("because there is no sudo, or no process, is told", async () => {
    scene.execute = () => 127;
    ground.stats.delete(sudo);
    expect(await type("--run", "shell")).toBe(125);
    expect(scene.said).toContain("/usr/bin/sudo could not be executed");
    scene.execute = () => {
      throw new TypeError("fork error");
    };
    expect(await type("--claim", ".")).toBe(3);
    expect(scene.said).toContain("no process could be started");
  });
});

describe("root", () => {
  beforeEach(() => {
    ground.root = true;
  });

  test.each([
    ["--unclaim", ["/srv/x"], [claim, "unclaim", "/srv/x"]],
    ["--reclaim", ["/srv/x"], [claim, "reclaim", "/srv/x"]],
    ["--hold", ["why"], [hold, "hold", "why"]],
    ["--release", [], [hold, "release"]],
  ])("executes the helper of %s itself, without sudo", async (name, words, argv) => {
    scene.execute = () => 1;
    expect(await type(name, ...words)).toBe(1);
    expect(scene.executed).toEqual([argv]);
  });

  test.each([
    ["--claim", ["/srv/x"], 3],
    ["--run", ["shell"], 125],
  ])("is told that %s is an operator's", async (name, words, code) => {
    expect(await type(name, ...words)).toBe(code);
    expect(scene.executed).toEqual([]);
    expect(scene.said).toContain("Nothing was done. As a member of ai-ops: ai-tools");
  });
});
