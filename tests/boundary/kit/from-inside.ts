// SPDX-License-Identifier: Apache-2.0
// Tries acts on a lab host as whoever may or may not do them (root, people, plain processes of the sandbox account, a
// session) and compares: possible for one, out of reach for the others. The acts themselves are in from-inside.py.

import { join } from "node:path";
import { expect } from "vitest";

import type { LabHost, Outcome } from "../../../src/tooling/lab/host.ts";
import { eventually } from "./facts.ts";
import { measured } from "./figures.ts";
import { beside, claimedProject, claims, entryPoint, expectDone, inDirectory, sessionUnits } from "./sessions.ts";
import { frontDoor } from "./stop.ts";

const probe = "/opt/lab/from-inside.py";
const python = "/usr/bin/python3";

/**
 * Who tries:
 * `root`, `olga` (an operator), `ursula` (a user who is none);
 * `account`: the account's, without any unit, as a stray is;
 * `unit`: the account's, a unit of PID 1 in its slice without any setting of a session, so that only file permissions decide;
 * `session`: a session that olga started with `ai-tools --run`, in its own domain where SELinux is enforcing.
 */
export type Who = "root" | "olga" | "ursula" | "account" | "unit" | "session";

/** Everything of the account's, as its processes are found on a host. */
export const insiders: readonly Who[] = ["account", "unit", "session"];

/** A verb of from-inside.py and its words. */
export type Act = readonly [verb: string, ...words: string[]];
export type Acts = Readonly<Record<string, Act>>;
/** For each act `done`, `done: DETAIL`, the name of an error, `exit N: TEXT`, `killed by N` or `hung`. */
export type Answers = Record<string, string>;

const brought = new WeakSet<LabHost>();
const enforcing = new WeakMap<LabHost, Promise<boolean>>();

/** The project of these sessions: made, and claimed by olga, where it is not. */
export async function insideProject(host: LabHost): Promise<string> {
  const path = `${beside}/inside`;
  const isClaimed = `install -d -o olga -g olga ${beside} && grep -qs '"${path}"' ${claims}/*`;
  return (await host.run(["sh", "-c", isClaimed])).code === 0 ? path : claimedProject(host, path);
}

/** Brings the probe to the host and makes its entry point; answers with the latter's name. */
async function insideEntryPoint(host: LabHost, ...words: string[]): Promise<string> {
  await bringProbe(host);
  const lines = [`Exec=${python}`, `Arguments=${[probe, ...words].join(" ")}`, "NetworkAccess=yes"];
  return entryPoint(host, words.length === 0 ? "inside" : "inside-standing", ...lines);
}

async function bringProbe(host: LabHost): Promise<void> {
  if (brought.has(host)) return;
  await host.copyIn(join(import.meta.dirname, "from-inside.py"), probe, "0644");
  brought.add(host);
}

/**
 * Tries acts, each in a process of its own, and answers with what became of each.
 * @throws when the one who tries could not even begin
 */
export async function attempt(host: LabHost, who: Who, acts: Acts): Promise<Answers> {
  const input = JSON.stringify(acts);
  await bringProbe(host);
  const outcome =
    who === "session"
      ? await inDirectory(host, await insideProject(host), ["--run", await insideEntryPoint(host)], { input })
      : await host.run(commandOf(who), { input, timeoutMs: 120_000, ...(who === "unit" ? {} : { user: userOf(who) }) });
  await expectDone(outcome);
  const answers = JSON.parse(outcome.stdout) as Answers;
  expect(Object.keys(answers).sort()).toEqual(Object.keys(acts).sort());
  return answers;
}

function userOf(who: Who): string {
  return who === "account" ? "ai-tools" : who;
}

function commandOf(who: Who): string[] {
  if (who !== "unit") return [python, probe];
  const unit =
    "exec systemd-run --quiet --wait --pipe --collect --uid=ai-tools --gid=ai-tools --slice=user-$(id -u ai-tools).slice";
  return ["sh", "-c", `${unit} --unit=ai-tools-claude-code-$$ ${python} ${probe}`];
}

/** Somebody who waits inside and tries what it is asked, when it is asked. */
export interface Standing {
  /** The session's unit. */
  unit: string;
  ask(acts: Acts): Promise<Answers>;
  end(): Promise<void>;
}

let standing = 0;

/** A session that stands by in its project until it is told to end. */
export async function standingSession(host: LabHost): Promise<Standing> {
  const project = await insideProject(host);
  // Its own: what an earlier one, of a test that failed, still waits for is not answered by two.
  standing += 1;
  const desk = `${project}/desk-${process.pid}-${standing}`;
  await host.sh(`mkdir ${desk}`, { user: "olga" });
  const entry = await insideEntryPoint(host, "serve", desk);
  const before = new Set(await sessionUnits(host));
  // For as long as a file of tests takes on an emulated machine: the session ends when it is told to.
  const run = ["sh", "-c", 'cd "$1" && exec "$2" --run "$3"', "sh", project, frontDoor, entry];
  const ended = host.run(run, { user: "olga", timeoutMs: 1_200_000 });
  let early: Outcome | undefined;
  void ended.then((outcome) => {
    early = outcome;
  });
  let unit = "";
  const isThere = async () => {
    if (early !== undefined) throw new Error(`the session ended: ${JSON.stringify(early)}`);
    unit = (await sessionUnits(host)).find((name) => !before.has(name)) ?? "";
    return unit !== "";
  };
  await eventually("a session stands by", isThere, 120_000);
  let number = 0;
  const write = async (content: unknown) => {
    number += 1;
    const script = `cat >${desk}/.asking && mv ${desk}/.asking ${desk}/ask-${number}`;
    await host.sh(script, { user: "olga", input: JSON.stringify(content) });
    return `${desk}/answer-${number}`;
  };
  return {
    unit,
    ask: async (acts) => {
      const answer = await write(acts);
      await eventually(
        "an answer from inside",
        async () => (await host.run(["test", "-e", answer])).code === 0,
        120_000,
      );
      return JSON.parse(await host.sh(`cat ${answer}`)) as Answers;
    },
    end: async () => {
      await write(null);
      await ended;
    },
  };
}

/** What a refusal looks like by file permissions and capabilities. */
const refusals = ["EACCES", "EPERM"];
/** A session does not even see most of it: its own view of files, nobody else's processes; and nothing gains privileges. */
const hidden = ["ENOENT", "ESRCH", "EROFS", "ENXIO", "ENOTDIR"];

export interface Expected {
  /** For whom it is possible, tried first; default: root. */
  possibleFor?: Who;
  /** For whom it must not be; default: all of the account's. */
  outOfReachFor?: readonly Who[];
  /** Answers beside EACCES and EPERM that are a refusal here. */
  refusedBy?: readonly (string | RegExp)[];
  /** Runs on the host before each of those tries, for acts that leave something behind where they succeed. */
  before?: string;
}

/** Shows that each act can be done, and then that nobody of the account can. */
export async function expectOutOfReach(host: LabHost, acts: Acts, expected: Expected = {}): Promise<void> {
  const { possibleFor = "root", outOfReachFor = insiders, refusedBy = [], before } = expected;
  if (before) await host.sh(before);
  expectAllDone(await attempt(host, possibleFor, acts), `control: possible for ${possibleFor}`);
  for (const who of outOfReachFor) {
    if (before) await host.sh(before);
    const since = await auditMark(host);
    const answers = await attempt(host, who, acts);
    expectAllRefused(answers, who, refusedBy);
    const deniedBySelinux = (await denialsSince(host, since)).length;
    measured("out of reach", { who, possibleFor, deniedBySelinux, answers });
  }
}

/** Every act was done. */
export function expectAllDone(answers: Answers, message: string): void {
  const failed = Object.entries(answers).filter(([, answer]) => !answer.startsWith("done"));
  expect(failed, message).toEqual([]);
}

/** Every act was refused, in a way that is known as a refusal. */
export function expectAllRefused(answers: Answers, who: Who, refusedBy: readonly (string | RegExp)[] = []): void {
  const known = [...refusals, ...(who === "session" ? hidden : []), ...refusedBy];
  const isRefusal = (answer: string) =>
    known.some((one) => (one instanceof RegExp ? one.test(answer) : one === answer));
  const reached = Object.entries(answers).filter(([, answer]) => answer.startsWith("done") || !isRefusal(answer));
  expect(reached, `in reach of ${who}, or refused in an unknown way`).toEqual([]);
}

/** Whether SELinux is enforcing on the host, as its kernel says. */
export function isEnforcing(host: LabHost): Promise<boolean> {
  const known =
    enforcing.get(host) ?? host.run(["cat", "/sys/fs/selinux/enforce"]).then(({ stdout }) => stdout.trim() === "1");
  enforcing.set(host, known);
  return known;
}

const auditLogs = "/var/log/audit/audit.log";
let marks = 0;

/** A mark in the audit log, behind everything that was audited so far; undefined where nothing is audited. */
export async function auditMark(host: LabHost): Promise<string | undefined> {
  if (!(await isEnforcing(host))) return undefined;
  marks += 1;
  const mark = `lab-mark-${process.pid}-${marks}`;
  // The kernel hands its records over one after the other: when this one is written, all before it are.
  await host.sh(`auditctl -m ${mark} >/dev/null
    for look in $(seq 300); do grep -qs ${mark} ${auditLogs} && exit; sleep 0.1; done; exit 1`);
  return mark;
}

/** A denial as the audit log has it. */
export interface Denial {
  tclass: string;
  perms: string[];
  scontext: string;
  tcontext: string;
  line: string;
}

/** All denials since a mark, of whichever domain. */
export async function denialsSince(host: LabHost, since: string | undefined): Promise<Denial[]> {
  if (since === undefined) return [];
  await auditMark(host);
  const text = await host.sh(`cat $(ls -tr ${auditLogs}*)`);
  const recent = text.slice(text.indexOf(since)).split("\n");
  const isDenial = (line: string) =>
    /^type=(AVC|USER_AVC|SELINUX_ERR|USER_SELINUX_ERR) /.test(line) && !/ granted /.test(line);
  return recent.filter(isDenial).map(denialIn);
}

/** The parts of an AVC record; those that it does not have are empty. */
export function denialIn(line: string): Denial {
  const part = (pattern: RegExp) => pattern.exec(line)?.[1] ?? "";
  return {
    tclass: part(/ tclass=(\w+)/),
    perms: part(/denied +\{ ([^}]*) \}/)
      .split(" ")
      .filter((word) => word !== ""),
    scontext: part(/ scontext=(\S+)/),
    tcontext: part(/ tcontext=(\S+)/),
    line,
  };
}

/** The denials of a session's domain for this class and permission since a mark. */
export async function deniedOn(
  host: LabHost,
  { tclass, perm, since, type }: { tclass: string; perm: string; since: string | undefined; type?: string },
): Promise<Denial[]> {
  const isIt = (denial: Denial) =>
    denial.tclass === tclass &&
    denial.perms.includes(perm) &&
    denial.scontext.includes(":ai_tools_t:") &&
    (type === undefined || denial.tcontext.includes(`:${type}:`));
  return (await denialsSince(host, since)).filter(isIt);
}
