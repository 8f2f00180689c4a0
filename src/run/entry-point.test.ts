// SPDX-License-Identifier: Apache-2.0
// Entry points: what a file may say, who must have written it, and that each refusal names file and line.

import { readdirSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { entryPointDirectory } from "../ground/places.ts";
import { type EntryPoint, isEntryPointName, listEntryPoints, loadEntryPoint, parseEntryPoint } from "./entry-point.ts";
import { HandMadeSession } from "./hand-made-session.fixture.ts";
import { splitWords } from "./quoting.ts";

const parse = (...lines: string[]) => parseEntryPoint("x", "/x.conf", ["[Entrypoint]", ...lines].join("\n"));
const shell = `${entryPointDirectory}/shell.conf`;

describe("a file", () => {
  test("says program, arguments, environment, description and network", () => {
    const text = [
      "# a comment",
      "; another",
      "Exec = /usr/bin/agent",
      "Arguments=--one 'two words'",
      'Arguments="" three',
      'Environment=A=b "C=d e"',
      "Environment=A=later",
      "Description=An agent: yes",
      "NetworkAccess=yes",
      "",
    ];
    expect(parse(...text)).toEqual({
      name: "x",
      program: "/usr/bin/agent",
      arguments: ["--one", "two words", "", "three"],
      environment: { A: "later", C: "d e" },
      description: "An agent: yes",
      network: true,
    });
  });

  test("needs nothing but the program, and has no network unless it says so", () => {
    expect(parse("Exec=/bin/sh")).toMatchObject({ arguments: [], environment: {}, description: "", network: false });
  });

  test.each([
    [["Exec=bin/sh"], "line 2: Exec= needs the absolute path"],
    [["Exec=/bin/../sh"], "line 2: Exec= needs the absolute path"],
    [["Exec=/bin//sh"], "line 2: Exec= needs the absolute path"],
    [["Exec=/bin/sh/"], "line 2: Exec= needs the absolute path"],
    [["Exec="], "line 2: Exec= needs the absolute path"],
    [["", "Exec=/bin/sh", "exec=/bin/sh"], "line 4: exec= is unknown (known: Exec, Arguments, "],
    [["Exec=/bin/sh", "ExecStart=/bin/sh"], "line 3: ExecStart= is unknown"],
    [["Exec=/bin/sh", "toString=1"], "line 3: toString= is unknown"],
    [["Exec=/bin/sh", "Exec=/bin/sh"], "line 3: Exec= is there twice"],
    [["Exec=/bin/sh", "NetworkAccess=true"], 'line 3: NetworkAccess= is "yes" or "no"'],
    [["Exec=/bin/sh", "just words"], 'line 3: "just words" is no KEY=VALUE'],
    [["Exec=/bin/sh", "[Service]"], 'line 3: "[Service]" is no KEY=VALUE'],
    [["Exec=/bin/sh", "[Entrypoint]"], "line 3: a second [Entrypoint]"],
    [["Exec=/bin/sh", "Arguments='open"], "line 3: Arguments=: a quote (') is not closed"],
    [["Exec=/bin/sh", "Arguments=a\\"], "line 3: a line cannot be continued"],
    [["Exec=/bin/sh", "Description=a\\"], "line 3: a line cannot be continued"],
    [["Exec=/bin/sh", "Description=a\x1bb"], "line 3: Description= holds a control character"],
    [["Exec=/bin/sh", "Environment=A"], 'line 3: Environment=: "A" is no NAME=VALUE'],
    [["Exec=/bin/sh", "Environment==b"], "line 3: Environment=: "],
    [["Exec=/bin/sh", "Environment=1A=b"], "line 3: Environment=: "],
    [["Exec=/bin/sh", "Environment=A=\\x01"], "line 3: Environment=: the value of A holds a control character"],
    [["Arguments=x"], "there is no Exec"],
  ])("with %j is refused, naming file and line", (lines, sentence) => {
    const parsed = parse(...lines);
    expect(parsed).toContain("/x.conf");
    expect(parsed).toContain(sentence === "there is no Exec" ? "Exec= is missing" : sentence);
  });

  test("begins with its section", () => {
    expect(parseEntryPoint("x", "/x.conf", "Exec=/bin/sh\n")).toBe("/x.conf, line 1: [Entrypoint] must come first");
    expect(parseEntryPoint("x", "/x.conf", "")).toBe("/x.conf: there is no [Entrypoint] in it");
  });
});

describe("words", () => {
  test.each([
    ["", []],
    ["  a \t b ", ["a", "b"]],
    [`'a b' "c d" e'f 'g`, ["a b", "c d", "ef g"]],
    [`"it's" '"'`, ["it's", '"']],
    ["''", [""]],
    ['a\\sb \\x41\\101 \\u00fc\\U0001f600 \\n\\t\\\\\\"', ["a b", "AA", "ü😀", '\n\t\\"']],
    ["'a\\'b'", ["a'b"]],
    ["$HOME %h ~ a=b", ["$HOME", "%h", "~", "a=b"]],
  ])("%j are %j", (line, words) => {
    expect(splitWords(line)).toEqual(words);
  });

  test.each([
    ["\\", "at the end"],
    ["\\q", "\\q is no escape"],
    ["\\x4", "needs 2 hexadecimal digits"],
    ["\\xff", "no character"],
    ["\\ud800", "no character"],
    ["\\U00110000", "no character"],
    ["\\x00", "NUL"],
    ["\\000", "NUL"],
    ["\\777", "no character"],
    ['"a', "is not closed"],
  ])("%j are refused", (line, sentence) => {
    expect(splitWords(line)).toContain(sentence);
  });
});

describe("loading", () => {
  const load = (ground: HandMadeSession, name = "shell") => loadEntryPoint(ground, name);

  test("gives what root wrote", () => {
    const ground = new HandMadeSession();
    ground.entryPoint("agent-2", "[Entrypoint]\nExec=/bin/bash\nDescription=ü\n");
    expect((load(ground, "agent-2") as EntryPoint).description).toBe("ü");
    expect(listEntryPoints(ground)).toEqual(["agent-2", "shell"]);
  });

  test.each(["", "A", "a.b", "../shell", "a b", "x".repeat(65), "ü"])("knows no name %j", (name) => {
    expect(isEntryPointName(name)).toBe(false);
    expect(load(new HandMadeSession(), name)).toContain("an entry point's name");
  });

  test("says which there are when one is missing", () => {
    expect(load(new HandMadeSession(), "nope")).toContain("there is no entry point nope");
    expect(load(new HandMadeSession(), "nope")).toContain("there are: shell");
  });

  test.each([
    ["/etc", "directory"],
    ["/etc/ai-tools", "directory"],
    [entryPointDirectory, "directory"],
    [shell, "file"],
  ] as const)("refuses %s where others than root could have written it", (path, kind) => {
    for (const [changes, sentence] of [
      [{ uid: 1001 }, "does not belong to root"],
      [{ mode: 0o775 }, "can be written by others"],
      [{ mode: 0o757 }, "can be written by others"],
      [{ kind: "link" }, "a link counts for nothing"],
      [{ kind: "other" }, "is no"],
    ] as const) {
      const ground = new HandMadeSession();
      ground.existing(path, { kind, ...changes });
      expect(load(ground)).toContain(`${path} `);
      expect(load(ground)).toContain(sentence);
    }
  });

  test("refuses a file that cannot be read", () => {
    const ground = new HandMadeSession();
    ground.existing(shell, { kind: "file" });
    ground.files.set(shell, 5);
    expect(load(ground)).toBe(`${shell} cannot be read (errno 5)`);
  });

  test.each(["/home/olga/bin/agent", "/root/agent", "/tmp/agent", "/var/tmp/a", "/run/user/1/a"])(
    "refuses %s, which no session sees",
    (program) => {
      const ground = new HandMadeSession();
      ground.existing(program, { kind: "file", mode: 0o755 });
      ground.entryPoint("shell", `[Entrypoint]\nExec=${program}\n`);
      expect(load(ground)).toContain("which no session sees");
    },
  );

  test("refuses a program that is not there, is a directory or cannot be executed", () => {
    const ground = new HandMadeSession();
    ground.entryPoint("shell", "[Entrypoint]\nExec=/usr/bin/agent\n");
    expect(load(ground)).toContain("is not there");
    ground.existing("/usr/bin/agent", { kind: "directory" });
    expect(load(ground)).toContain("is no program");
    ground.existing("/usr/bin/agent", { kind: "file", mode: 0o644 });
    expect(load(ground)).toContain("is no program");
  });
});

describe("what the package ships", () => {
  const folder = resolve(import.meta.dirname, "../../etc/entrypoints.d");

  test.each(readdirSync(folder))("%s is an entry point", (name) => {
    const text = readFileSync(resolve(folder, name), "utf8");
    expect(typeof parseEntryPoint("x", name, text)).toBe("object");
    // With its suggestions taken up as well.
    expect(typeof parseEntryPoint("x", name, text.replace(/^#(\w+=)/gm, "$1"))).toBe("object");
  });
});
