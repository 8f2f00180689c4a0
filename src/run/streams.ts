// SPDX-License-Identifier: Apache-2.0
// What a session gets as its standard input, output and error. Never the operator's own terminal, into which it could
// type: a pty of its own where input and output are terminals, else the caller's files and pipes as they are, and a pipe
// with a copier in place of each descriptor that is a terminal.

import type { Foreground, Ground } from "../ground/ground.ts";
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
import { limits, programs } from "./places.ts";

/** Signals to the launcher that a session gets in its place. */
export const forwarded = [SIGHUP, SIGINT, SIGQUIT, SIGTERM] as const;

/** What the terminal's keys do, and who may use it, is between the terminal and the program in the foreground. */
const jobControl = [SIGTSTP, SIGTTIN, SIGTTOU];

type Descriptor = 0 | 1 | 2;

/** systemd-run with the session's descriptors, and the copiers beside it. */
export interface StartedSession {
  child: Child;
  /** It has a pty, which systemd-run serves as long as it lives, even when nobody is left at the other side. */
  hasPty: boolean;
  /** Copies from the terminal, which nobody waits for. */
  inward: Child[];
  /** Copies to the terminal, which have to come to their end. */
  outward: Child[];
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

/** Starts the command with what the session gets; from here on signals to this process are noted instead of obeyed. */
export function startSession(
  ground: Ground,
  command: string[],
  terminals: readonly Descriptor[],
): StartedSession | Errno {
  if (wantsPty(terminals)) {
    ground.watchSignals([...forwarded, ...jobControl]);
    const child = ground.startInForeground(command);
    return isErrno(child) ? child : { child, hasPty: true, inward: [], outward: [] };
  }
  // The copiers outlive the terminal's Ctrl-C: it is the session that is to end, and what it says then is to be seen.
  ground.ignoreInterruptions([SIGINT]);
  ground.watchSignals([SIGTTIN]);
  const copies = startCopiers(ground, terminals);
  ground.watchSignals([...forwarded, ...jobControl]);
  if (isErrno(copies)) return copies;
  // Away from the operator's terminal: its keys are forwarded by the launcher, once.
  const child = ground.startInForeground([programs.setsid, ...command], { descriptors: copies.descriptors });
  for (const end of Object.values(copies.descriptors)) ground.close(end);
  const { inward, outward } = copies;
  if (!isErrno(child)) return { child, hasPty: false, inward, outward };
  for (const copier of [...inward, ...outward]) copier.abandon();
  return child;
}

interface Copiers {
  descriptors: { 0?: Handle; 1?: Handle; 2?: Handle };
  inward: Child[];
  outward: Child[];
}

function startCopiers(ground: Ground, terminals: readonly Descriptor[]): Copiers | Errno {
  const copiers: Copiers = { descriptors: {}, inward: [], outward: [] };
  for (const descriptor of terminals) {
    const pipe = ground.openPipe();
    const failed = isErrno(pipe) ? pipe : startCopier(ground, copiers, descriptor, pipe);
    if (failed === 0) continue;
    for (const end of Object.values(copiers.descriptors)) ground.close(end);
    for (const copier of [...copiers.inward, ...copiers.outward]) copier.abandon();
    return failed;
  }
  return copiers;
}

function startCopier(
  ground: Ground,
  copiers: Copiers,
  descriptor: Descriptor,
  pipe: { reads: Handle; writes: Handle },
): Errno {
  const isInput = descriptor === 0;
  const descriptors: Foreground["descriptors"] = isInput
    ? { 1: pipe.writes }
    : { 0: pipe.reads, 1: { fd: descriptor } };
  const copier = ground.startInForeground([programs.cat], { descriptors });
  const [itsEnd, ourEnd] = isInput ? [pipe.writes, pipe.reads] : [pipe.reads, pipe.writes];
  ground.close(itsEnd);
  if (isErrno(copier)) {
    ground.close(ourEnd);
    return copier;
  }
  copiers.descriptors[descriptor] = ourEnd;
  (isInput ? copiers.inward : copiers.outward).push(copier);
  return 0;
}

/** After the session: nobody reads what is typed any more, and what it wrote last comes to the terminal. */
export async function finishStreams(ground: Ground, session: StartedSession): Promise<void> {
  for (const copier of session.inward) copier.abandon();
  const deadlineMs = ground.nowMs() + limits.drainMs;
  while (session.outward.some((copier) => copier.exitCode() === undefined)) {
    if (ground.nowMs() >= deadlineMs) break;
    await ground.sleep(limits.fastPollMs);
  }
  for (const copier of session.outward) copier.abandon();
}
