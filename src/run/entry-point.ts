// SPDX-License-Identifier: Apache-2.0
// Entry points: which programs may be started as a session. Root writes a file for each, and no file that somebody else
// could have written, or that has anything unknown in it, is used: every refusal is one sentence that names file and line.

import type { Ground, PathStat } from "../ground/ground.ts";
import { entryPointDirectory } from "../ground/places.ts";
import { decodeUtf8 } from "../ground/records.ts";
import { ENOENT, isErrno, type KernelView } from "../stop/kernel.ts";
import { printable } from "../stop/printable.ts";
import { splitWords } from "./quoting.ts";

export interface EntryPoint {
  name: string;
  /** Absolute path of the program. */
  program: string;
  /** Before those of the caller. */
  arguments: string[];
  environment: Record<string, string>;
  description: string;
  /** false: the session has a network namespace with nothing but a loopback device. */
  network: boolean;
}

const suffix = ".conf";
const section = "[Entrypoint]";
const nameForm = /^[a-z0-9-]{1,64}$/;
const variableForm = /^[A-Za-z_][A-Za-z0-9_]*$/;
/** Written by everybody in the group of the file, or by all. */
const writableByOthers = 0o022;
/** A session sees none of these: each is replaced by an empty file system. */
const hiddenPlaces = ["/home", "/root", "/run/user", "/tmp", "/var/tmp"];

/** Whether a text can be the name of an entry point. */
export function isEntryPointName(name: string): boolean {
  return nameForm.test(name);
}

/** The names of all files that could be entry points, in their order; whether they are valid, `loadEntryPoint` says. */
export function listEntryPoints(view: KernelView): string[] {
  const names = view.list(entryPointDirectory);
  if (isErrno(names)) return [];
  return names
    .filter((name) => name.endsWith(suffix))
    .map((name) => name.slice(0, -suffix.length))
    .filter(isEntryPointName)
    .sort();
}

/** The entry point of that name, or one sentence (without a full stop) that says why there is none. */
export function loadEntryPoint(ground: Ground, name: string): EntryPoint | string {
  if (!isEntryPointName(name))
    return `an entry point's name has up to 64 of a-z, 0-9 and "-", and "${printable(name)}" is none`;
  const path = `${entryPointDirectory}/${name}${suffix}`;
  for (const directory of ["/etc", "/etc/ai-tools", entryPointDirectory]) {
    const wrong = whyNotRoots(ground, directory, "directory");
    if (wrong !== undefined) return wrong;
  }
  const wrong = whyNotRoots(ground, path, "file");
  if (wrong !== undefined) return ground.statPath(path) === ENOENT ? thereIsNone(ground, name) : wrong;
  const bytes = ground.readText(path);
  if (isErrno(bytes)) return `${path} cannot be read (errno ${bytes})`;
  const parsed = parseEntryPoint(name, path, decodeUtf8(bytes));
  return typeof parsed === "string" ? parsed : (whyNotProgram(ground, path, parsed.program) ?? parsed);
}

function thereIsNone(view: KernelView, name: string): string {
  const names = listEntryPoints(view);
  const others = names.length === 0 ? "there are none" : `there are: ${names.join(", ")}`;
  return `there is no entry point ${name} in ${entryPointDirectory} (${others})`;
}

/** Only what root alone can have written counts. */
function whyNotRoots(ground: Ground, path: string, kind: PathStat["kind"]): string | undefined {
  const stat = ground.statPath(path);
  if (isErrno(stat)) return `${path} cannot be seen (errno ${stat})`;
  if (stat.kind !== kind) return `${path} is no ${kind} itself (a link counts for nothing)`;
  if (stat.uid !== 0) return `${path} does not belong to root (chown root:root ${path})`;
  if ((stat.mode & writableByOthers) !== 0) return `${path} can be written by others than root (chmod go-w ${path})`;
  return undefined;
}

function whyNotProgram(ground: Ground, path: string, program: string): string | undefined {
  const hidden = hiddenPlaces.find((place) => program === place || program.startsWith(`${place}/`));
  if (hidden !== undefined) return `${path}: Exec=${printable(program)} is in ${hidden}, which no session sees`;
  const real = ground.realPath(program);
  if (isErrno(real)) return `${path}: Exec=${printable(program)} is not there (errno ${real})`;
  const stat = ground.statPath(real);
  if (isErrno(stat) || stat.kind !== "file" || (stat.mode & 0o111) === 0)
    return `${path}: Exec=${printable(program)} is no program`;
  return undefined;
}

type Key = "Exec" | "Arguments" | "Environment" | "Description" | "NetworkAccess";

/** What a line changes; a sentence where it is wrong. */
const keys: Readonly<Record<Key, (entry: EntryPoint, value: string) => string | undefined>> = {
  Exec: (entry, value) => {
    const isPlain = value.startsWith("/") && !/[\x00-\x1f\x7f]|\/\.{0,2}(\/|$)/.test(value);
    if (!isPlain) return "Exec= needs the absolute path of a program, without dots or a slash at its end";
    entry.program = value;
    return undefined;
  },
  Arguments: (entry, value) => {
    const words = splitWords(value);
    if (typeof words === "string") return `Arguments=: ${words}`;
    entry.arguments.push(...words);
    return undefined;
  },
  Environment: (entry, value) => {
    const words = splitWords(value);
    if (typeof words === "string") return `Environment=: ${words}`;
    return words.map((word) => addVariable(entry, word)).find((wrong) => wrong !== undefined);
  },
  Description: (entry, value) => {
    if (/[\x00-\x1f\x7f]/.test(value)) return "Description= holds a control character";
    entry.description = value;
    return undefined;
  },
  NetworkAccess: (entry, value) => {
    if (value !== "yes" && value !== "no") return 'NetworkAccess= is "yes" or "no"';
    entry.network = value === "yes";
    return undefined;
  },
};

function addVariable(entry: EntryPoint, word: string): string | undefined {
  const at = word.indexOf("=");
  const [name, value] = [word.slice(0, Math.max(at, 0)), word.slice(at + 1)];
  if (at < 0 || !variableForm.test(name)) return `Environment=: "${printable(word)}" is no NAME=VALUE`;
  // systemd refuses the whole session for a value like that, with a message that names no line.
  if (/[\x00-\x08\x0b-\x1f\x7f]/.test(value)) return `Environment=: the value of ${name} holds a control character`;
  entry.environment[name] = value;
  return undefined;
}

/** Parses the text of a file; the path is for the sentences only. */
export function parseEntryPoint(name: string, path: string, text: string): EntryPoint | string {
  const entry: EntryPoint = {
    name,
    program: "",
    arguments: [],
    environment: {},
    description: "",
    network: false,
  };
  const once = new Set<string>();
  let inSection = false;
  for (const [index, raw] of text.split("\n").entries()) {
    const line = raw.trim();
    const where = `${path}, line ${index + 1}`;
    if (line === "" || line.startsWith("#") || line.startsWith(";")) continue;
    if (line === section) {
      if (inSection) return `${where}: a second ${section}`;
      inSection = true;
      continue;
    }
    const wrong = inSection ? applyLine(entry, line, once) : `${section} must come first`;
    if (wrong !== undefined) return `${where}: ${wrong}`;
  }
  if (!inSection) return `${path}: there is no ${section} in it`;
  return entry.program === "" ? `${path}: Exec= is missing` : entry;
}

function applyLine(entry: EntryPoint, line: string, once: Set<string>): string | undefined {
  const match = /^([A-Za-z]+)[ \t]*=[ \t]*(.*)$/.exec(line);
  if (match === null) return `"${printable(line, 60)}" is no KEY=VALUE`;
  const [, key = "", value = ""] = match;
  if (!Object.hasOwn(keys, key)) return `${key}= is unknown (known: ${Object.keys(keys).join(", ")})`;
  if (value.endsWith("\\")) return "a line cannot be continued (a backslash at its end)";
  // Arguments and environment may be given in several lines.
  if (key !== "Arguments" && key !== "Environment") {
    if (once.has(key)) return `${key}= is there twice`;
    once.add(key);
  }
  return keys[key as Key](entry, value);
}
