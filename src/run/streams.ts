// SPDX-License-Identifier: Apache-2.0
// What a session gets as its standard input, output and error. Nothing that the operator's processes have open: neither
// their terminal, into which it could type, nor their files. A pty of its own where input and output are terminals, else
// a pipe in place of each descriptor, with a copier between it and the caller.

import type { Ground } from "../ground/ground.ts";
import {
  type Child,
  type Errno,
  type Handle,
  isErrno,
  SIGHUP,
  SIGINT,
  SIGQUIT,
  SIGTERM,
  SIGTSTP,
  SIGTTIN,
  SIGTTOU,
} from "../stop/kernel.ts";
import { limits, programs, streamPlaces } from "./places.ts";
import { whyNotRootsAlone } from "./project-place.ts";
import { isLauncherAtWork, isUnitAlive, unitForm } from "./session-records.ts";
import type { Pipes } from "./session-unit.ts";

/** Signals to the launcher that a session gets in its place. */
export const forwarded = [SIGHUP, SIGINT, SIGQUIT, SIGTERM] as const;

/** What the terminal's keys do, and who may use it, is between the terminal and the program in the foreground. */
const jobControl = [SIGTSTP, SIGTTIN, SIGTTOU];

type Descriptor = 0 | 1 | 2;
const descriptors: readonly Descriptor[] = [0, 1, 2];

/** What stands ready for a session before it is started. */
export interface Streams {
  /** Of the caller's descriptors. */
  terminals: readonly Descriptor[];
  /** What its unit is told. */
  forUnit: "pty" | Pipes;
  /** Each pipe once, by the caller's descriptor that it stands for, open at both ends until the session has its own. */
  pipes: { descriptor: Descriptor; path: string; keeper: Handle }[];
}

interface Outward {
  copier: Child;
  toTerminal: boolean;
}

/** systemd-run, and the copiers beside it. */
export interface StartedSession {
  child: Child;
  streams: Streams;
  /** It has a pty, which systemd-run serves as long as it lives, even when nobody is left at the other side. */
  hasPty: boolean;
  /** Copy what the caller gives, which nobody waits for. */
  inward: Child[];
  /** Copy to the caller, and have to come to their end. */
  outward: Outward[];
}

/**
 * Which descriptors are terminals, by isatty(3) in a child: a terminal of another mount namespace is one as well, though
 * its path says nothing. Whatever cannot be told counts as a terminal.
 */
export function findTerminals(ground: Ground): Descriptor[] {
  const all: Descriptor[] = [0, 1, 2];
  return all.filter((descriptor) => ground.runInForeground([programs.test, "-t", String(descriptor)]) !== 1);
}

/** Whether the session gets a pty of its own. */
export function wantsPty(terminals: readonly Descriptor[]): boolean {
  return terminals.includes(0) && terminals.includes(1);
}

/** Makes the pipes of a session that gets no pty; a sentence where that cannot be. */
export function openStreams(ground: Ground, unit: string): Streams | string {
  const terminals = findTerminals(ground);
  const streams: Streams = { terminals, forUnit: "pty", pipes: [] };
  if (wantsPty(terminals)) return streams;
  const wrong = whyNotRootsAlone(ground, streamPlaces);
  if (wrong !== undefined) return wrong;
  const paths = { 0: pipePath(unit, 0), 1: pipePath(unit, 1), 2: pipePath(unit, 2) };
  // One pipe for both, or what is said would come out in another order.
  if (ground.isSameFile(1, 2)) paths[2] = paths[1];
  for (const descriptor of descriptors.filter((each) => paths[each] === pipePath(unit, each))) {
    const path = paths[descriptor];
    const keeper = ground.makeNamedPipe(path);
    if (!isErrno(keeper)) streams.pipes.push({ descriptor, path, keeper });
    else {
      releaseStreams(ground, streams);
      return `${path} could not be made (errno ${keeper})`;
    }
  }
  return { ...streams, forUnit: paths };
}

function pipePath(unit: string, descriptor: Descriptor): string {
  return `${streamPlaces}/${unit}.${descriptor}`;
}

/** The session has opened its pipes, or will not: their names go, and from here on each end has its own holder alone. */
export function releaseStreams(ground: Ground, { pipes }: Streams): void {
  for (const { path, keeper } of pipes.splice(0)) {
    ground.close(keeper);
    ground.remove(path);
  }
}

/** Takes away what launchers that were killed have left. */
export function sweepStreams(ground: Ground, uid: number): void {
  const names = ground.list(streamPlaces);
  for (const name of isErrno(names) ? [] : names) {
    const unit = name.replace(/\.[012]$/, "");
    if (unitForm.test(unit) && !isLauncherAtWork(ground, unit) && !isUnitAlive(ground, unit, uid))
      ground.remove(`${streamPlaces}/${name}`);
  }
}

/** Starts the command and the copiers; from here on signals to this process are noted instead of obeyed. */
export function startSession(ground: Ground, command: string[], streams: Streams): StartedSession | Errno {
  const session = { streams, hasPty: streams.forUnit === "pty", inward: [], outward: [] };
  if (session.hasPty) {
    ground.watchSignals([...forwarded, ...jobControl]);
    const child = ground.startInForeground(command);
    return isErrno(child) ? child : { ...session, child };
  }
  // The copiers outlive the terminal's Ctrl-C: it is the session that is to end, and what it says then is to be seen.
  ground.ignoreInterruptions([SIGINT]);
  ground.watchSignals([SIGTTIN]);
  const copiers = startCopiers(ground, streams);
  ground.watchSignals([...forwarded, ...jobControl]);
  if (isErrno(copiers)) return copiers;
  // Away from the operator's terminal: its keys are forwarded by the launcher, once.
  const child = ground.startInForeground([programs.setsid, ...command]);
  if (!isErrno(child)) return { ...session, ...copiers, child };
  abandonAll(copiers);
  return child;
}

type Copiers = Pick<StartedSession, "inward" | "outward">;

function startCopiers(ground: Ground, { pipes, terminals }: Streams): Copiers | Errno {
  const copiers: Copiers = { inward: [], outward: [] };
  for (const { descriptor, path } of pipes) {
    const copier = startCopier(ground, descriptor, path);
    if (isErrno(copier)) {
      abandonAll(copiers);
      return copier;
    }
    if (descriptor === 0) copiers.inward.push(copier);
    else copiers.outward.push({ copier, toTerminal: terminals.includes(descriptor) });
  }
  return copiers;
}

function abandonAll({ inward, outward }: Copiers): void {
  for (const copier of [...inward, ...outward.map((each) => each.copier)]) copier.abandon();
}

/** With one end of the pipe and one of the caller's descriptors, and so that end of file and a broken pipe go through. */
function startCopier(ground: Ground, descriptor: Descriptor, path: string): Child | Errno {
  const end = ground.open(path, descriptor === 0 ? "write" : "read");
  if (isErrno(end)) return end;
  const own = descriptor === 0 ? { 1: end } : { 0: end, 1: { fd: descriptor } };
  const copier = ground.startInForeground([programs.cat], { descriptors: own });
  ground.close(end);
  return copier;
}

/**
 * After the session: nobody reads what is given any more, and what it wrote last comes to the caller. A terminal may not
 * take it at all; a file or a program is waited for, until a signal comes.
 * @param goesOn the session does, without this launcher: what copies to files and programs stays with it
 */
export async function finishStreams(ground: Ground, session: StartedSession, goesOn: boolean): Promise<void> {
  const { streams, inward } = session;
  releaseStreams(ground, streams);
  for (const copier of inward) copier.abandon();
  const outward = session.outward.filter(({ toTerminal }) => toTerminal || !goesOn);
  const isSlow = !outward.some(({ toTerminal }) => toTerminal);
  const deadlineMs = ground.nowMs() + (isSlow ? limits.drainSlowlyMs : limits.drainMs);
  while (outward.some(({ copier }) => copier.exitCode() === undefined)) {
    const isInterrupted = ground.arrivedSignals().some((signal) => forwarded.some((each) => each === signal));
    if (isInterrupted || ground.nowMs() >= deadlineMs) break;
    await ground.sleep(limits.fastPollMs);
  }
  for (const { copier } of outward) copier.abandon();
}
