// SPDX-License-Identifier: Apache-2.0
// The rules of the house that a machine can check: which room may import what, that documents name files that exist,
// and what every file has in common. Each failure says what to do.

import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { describe, expect, test } from "vitest";

const root = resolve(import.meta.dirname, "..");
const NOT_OURS = new Set(["node_modules", "build", ".git"]);
const ENGINE_MODULES = ["os", "std", "pidfd"];
/** What of src/stop the other programs may use: its door, its facts, and what it says to others. None of its acts. */
const OF_THE_KILL_PATH = ofStop(
  "kernel.ts",
  "printable.ts",
  "programs.ts",
  "caller.ts",
  "identity.ts",
  "announcement.ts",
  "slice.ts",
  "census.ts",
  "proc-files.ts",
  "limits.ts",
);
/** Rooms beside the kill path: what each may import besides itself, the ground and `OF_THE_KILL_PATH`. */
const ROOMS: Record<string, readonly string[]> = {
  ground: [...ofStop("quickjs-kernel.ts", "descriptors.ts"), "native"],
  claim: ["src/run/session-records.ts"],
  run: ["src/claim/claims.ts", "src/claim/paths.ts", "src/claim/where.ts", "src/hold/gate.ts"],
  hold: [],
  status: ["src/claim/claims.ts", "src/claim/paths.ts", "src/run/session-records.ts", "src/hold/gate.ts"],
  // It hands over to the helpers and shows the status; with the kill path it shares the grammar of a stop.
  cli: [...ofStop("grammar.ts"), "src/status/"],
};
/** Who may know the real ground, and with it the engine: programs, where they begin. */
const PROGRAMS = ["main.ts", "ended-main.ts"];
const MOST_LINES = 500;

const files = filesBelow(root);
const sources = files.filter((file) => /\.(ts|mts|mjs|js|c|h|sh|spec|te|if|fc|service|socket|slice)$/.test(file));
const typescript = files.filter((file) => /\.(ts|mts)$/.test(file));
const documents = files.filter((file) => file.endsWith(".md"));

describe("doors", () => {
  test("the kill path imports nothing from outside its folder", () => {
    const problems = importsOf("src/stop/")
      .filter(({ from }) => !isTest(from))
      .filter(({ target }) => target.startsWith("src/") && !target.startsWith("src/stop/"))
      .map(
        ({ from, target }) => `${from} imports ${target}: move what it needs into src/stop, or pass it as an argument`,
      );
    expect(problems).toEqual([]);
  });

  test("the kill path needs no package and nothing of Node", () => {
    const problems = importsOf("src/stop/")
      // The simulation is for tests only (see below), and draws its worlds with their package.
      .filter(({ from }) => !isTest(from) && !from.startsWith("src/stop/simulation/"))
      .filter(({ target }) => !target.startsWith("src/") && !ENGINE_MODULES.includes(target))
      .map(({ from, target }) => `${from} imports ${target}: only ${ENGINE_MODULES.join(" and ")} exist there`);
    expect(problems).toEqual([]);
  });

  test("what touches the engine stays behind quickjs-kernel.ts; the rest gets the world as an argument", () => {
    const imports = importsOf("src/stop/");
    const engine = imports.filter(({ target }) => ENGINE_MODULES.includes(target)).map(({ from }) => from);
    const behindTheDoor = new Set([...engine, "src/stop/quickjs-kernel.ts"]);
    const mayKnow = new Set([...behindTheDoor, "src/stop/main.ts"]);
    const problems = imports
      .filter(({ from, target }) => behindTheDoor.has(target) && !mayKnow.has(from))
      .map(
        ({ from, target }) => `${from} imports ${target}, which knows the engine: add a method to the door (kernel.ts)`,
      );
    expect(problems).toEqual([]);
  });

  test("the simulation is for tests", () => {
    const problems = importsOf("")
      .filter(({ target }) => target.startsWith("src/stop/simulation/"))
      .filter(({ from }) => !isTest(from) && !from.startsWith("src/stop/simulation/") && !from.startsWith("tests/"))
      .map(({ from, target }) => `${from} imports ${target}: the product must not know that it can be simulated`);
    expect(problems).toEqual([]);
  });

  test("fixtures are for tests", () => {
    const problems = importsOf("src/")
      .filter(({ from, target }) => isFixture(target) && !isTest(from) && !from.startsWith("src/stop/simulation/"))
      .map(({ from, target }) => `${from} imports ${target}: move what the product needs out of the fixture`);
    expect(problems).toEqual([]);
  });

  test.each(Object.entries(ROOMS))("src/%s imports what it stands on and nothing else", (room, also) => {
    const may = [`src/${room}/`, "src/ground/", ...OF_THE_KILL_PATH, ...also];
    const problems = importsOf(`src/${room}/`)
      .filter(({ from, target }) => !isTest(from) && !ENGINE_MODULES.includes(target))
      .filter(({ target }) => !may.some((door) => (door.endsWith("/") ? target.startsWith(door) : target === door)))
      .map(({ from, target }) => `${from} imports ${target}: only ${may.join(", ")} may be used from there`);
    expect(problems).toEqual([]);
  });

  test("beside the kill path only the real ground, the beginning of a program and the front door know the engine", () => {
    const engine = [...ENGINE_MODULES, ...(ROOMS.ground ?? []), "src/ground/quickjs-ground.ts"];
    const problems = Object.keys(ROOMS)
      .filter((room) => room !== "cli")
      .flatMap((room) => importsOf(`src/${room}/`))
      .filter(({ from, target }) => !isTest(from) && engine.includes(target))
      .filter(({ from }) => !from.startsWith("src/ground/quickjs-ground") && !PROGRAMS.includes(basename(from)))
      .map(({ from, target }) => `${from} imports ${target}: take what it needs from the Ground that it is given`);
    expect(problems).toEqual([]);
  });

  test("the product does not import its tooling", () => {
    const problems = ["stop", ...Object.keys(ROOMS)]
      .flatMap((room) => importsOf(`src/${room}/`))
      .filter(({ target }) => target.startsWith("src/tooling/") || target.startsWith("tests/"))
      .map(({ from, target }) => `${from} imports ${target}: what a product file needs belongs to the product`);
    expect(problems).toEqual([]);
  });

  test("the drill's verdict shares no code with the helper", () => {
    const problems = importsOf("src/tooling/drill/")
      .filter(({ target }) => ["stop", ...Object.keys(ROOMS)].some((room) => target.startsWith(`src/${room}/`)))
      .map(({ from, target }) => `${from} imports ${target}: write what the observer needs again, in its own way`);
    expect(problems).toEqual([]);
  });
});

describe("documents", () => {
  test.each(documents)("%s names only files that exist", (document) => {
    const problems = pathsNamedIn(read(document))
      .filter((path) => ![dirname(document), "."].some((from) => existsSync(join(root, from, path))))
      .filter((path) => path.includes("/") || !files.some((file) => basename(file) === path))
      .map((path) => `${document} names ${path}, which does not exist: correct the path, or take the sentence out`);
    expect(problems).toEqual([]);
  });
});

describe("every file", () => {
  test("has its licence line", () => {
    const scripts = files.filter((file) => !/\.\w+$/.test(file.replace(/^\./, "")) && read(file).startsWith("#!"));
    const problems = [...sources, ...scripts]
      .filter((file) => !read(file).split("\n", 3).join("\n").includes("SPDX-License-Identifier: Apache-2.0"))
      .map((file) => `${file}: begin it with the SPDX line in the comment form of its language`);
    expect(problems).toEqual([]);
  });

  test(`has at most ${MOST_LINES} lines`, () => {
    const problems = [...sources, ...documents]
      .filter((file) => read(file).split("\n").length - 1 > MOST_LINES)
      .map((file) => `${file} is longer than ${MOST_LINES} lines: it has more than one purpose, make it two`);
    expect(problems).toEqual([]);
  });

  test("lives in a room with a purpose", () => {
    const problems = files
      .filter((file) => /(^|\/)(utils?|common|helpers?|misc|lib)(\/|\.[a-z]+$)/.test(file))
      .map((file) => `${file}: name the room or the file after the one thing that it is for`);
    expect(problems).toEqual([]);
  });

  test("says nothing about where packages come from", () => {
    const lock = read("package-lock.json");
    expect(lock.includes('"resolved"'), "npm wrote addresses: keep omit-lockfile-registry-resolved in .npmrc").toBe(
      false,
    );
  });
});

interface Import {
  /** The importing file, relative to the checkout. */
  from: string;
  /** The imported file, relative to the checkout, or the name of a package. */
  target: string;
}

function ofStop(...names: string[]): string[] {
  return names.map((name) => `src/stop/${name}`);
}

/** Every import and re-export in the TypeScript files below a folder, the dynamic ones included. */
function importsOf(folder: string): Import[] {
  return typescript
    .filter((file) => file.startsWith(folder))
    .flatMap((from) =>
      [...read(from).matchAll(/(?:\bfrom\s*|\bimport\s*\(\s*|^import\s+)"([^"]+)"/gm)].map(([, name = ""]) => ({
        from,
        target: name.startsWith(".") ? relative(root, resolve(root, dirname(from), name)) : name,
      })),
    );
}

/** Fixtures are of the tests: what a test may import, they may. */
function isTest(file: string): boolean {
  return file.endsWith(".test.ts") || isFixture(file);
}

function isFixture(file: string): boolean {
  return file.endsWith(".fixture.ts");
}

/**
 * The paths of this project that a Markdown text names: targets of links, and what stands in backticks and begins with
 * one of the checkout's folders or is a Markdown or TypeScript file. Results of a build and patterns are left out.
 */
function pathsNamedIn(text: string): string[] {
  const withoutBlocks = text.replace(/^```[\s\S]*?^```/gm, "");
  const links = [...withoutBlocks.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = ""]) => target)
    .filter((target) => !/^(https?:|mailto:|#)/.test(target))
    .map((target) => target.replace(/#.*$/, ""));
  const folders = readdirSync(root).filter((name) => !NOT_OURS.has(name) && statSync(join(root, name)).isDirectory());
  const quoted = [...withoutBlocks.matchAll(/`([^`\s]+)`/g)]
    .map(([, word = ""]) => word.replace(/[:#].*$/, ""))
    .filter((word) => !word.startsWith("/") && !/[*<>{}$]/.test(word))
    .filter((word) => folders.some((folder) => word.startsWith(`${folder}/`)) || /^[\w./-]+\.(md|ts|mjs)$/.test(word));
  return [...new Set([...links, ...quoted])].filter((path) => path !== "");
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (NOT_OURS.has(entry.name)) return [];
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return filesBelow(path);
    return entry.isFile() ? [relative(root, path)] : [];
  });
}

function read(file: string): string {
  return readFileSync(join(root, file), "utf8");
}
