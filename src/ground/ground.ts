// SPDX-License-Identifier: Apache-2.0
// What the programs beside the stop stand on: the stop's own door to the world, and the few things more that they need.
// Everything above gets one of these as an argument, so that the same code runs on a real Linux and in tests.

import type { Child, Errno, Handle, Host } from "../stop/kernel.ts";

/** `lstat(2)`, as far as it tells one file from another and whose it is. */
export interface PathStat {
  kind: "file" | "directory" | "link" | "other";
  /** Permission bits, e.g. 0o755. */
  mode: number;
  uid: number;
  gid: number;
  device: number;
  inode: number;
}

/** A directory whose content is to be given back, and from whom to whom. */
export interface HandBack {
  /** Absolute; opened without following a link at its end. */
  path: string;
  /** It is the directory that was claimed only if both agree with what was opened. */
  device: number;
  inode: number;
  /** Only what this uid owns is given. */
  from: number;
  uid: number;
  gid: number;
  /** Whether directories named `.git` are gone into. */
  withGit: boolean;
}

/** What became of it. */
export interface HandedBack {
  /** Files, directories and links that have a new owner. */
  changed: number;
  /** Directories named `.git` that were not gone into. */
  gitLeft: number;
  /** Directories and files that something is mounted on: neither changed nor gone into. */
  mounts: number;
  /** What could not be read or given. */
  failed: number;
  /** Printable paths of the first ten of those, relative to the directory, each with its reason. */
  failures: string[];
}

/** A directory whose content is to have another SELinux type. */
export interface Relabel {
  /** Absolute; opened without following a link at its end. */
  path: string;
  /** It is the directory that was claimed only if both agree with what was opened. */
  device: number;
  inode: number;
  /** Only what belongs to one of these two is changed. */
  owner: number;
  account: number;
  /** Only these types are changed. */
  from: readonly string[];
  to: string;
}

/** What became of it. */
export interface Relabelled {
  changed: number;
  /** What has yet another type, and keeps it. */
  left: number;
  mounts: number;
  /** What could not be looked at or changed. */
  failed: number;
  /** As in `HandedBack`. */
  failures: string[];
}

/** A directory that is to be seen at another place as well. */
export interface Binding {
  /** Absolute; opened without following a link at its end. */
  path: string;
  /** It is the directory that was claimed only if all three agree with what was opened. */
  device: number;
  inode: number;
  uid: number;
  /** A directory below one that only root can enter. */
  place: string;
}

/** How a program in the foreground differs from this process. */
export interface Foreground {
  /** Added to the fixed environment. */
  environment?: Record<string, string>;
  /** Ends of pipes in place of this process's own descriptors. */
  descriptors?: { 0?: Handle; 1?: Handle; 2?: Handle };
}

/**
 * The world of a root helper or of the front door. `print` waits for a terminal that does not read, and `startRecorder`,
 * `discardTyped` and `typed` are the stop's alone.
 */
export interface Ground extends Host {
  /** The arguments, without the program's own name. */
  readonly words: readonly string[];
  /** false: an argument holds bytes that are no UTF-8 and would not come out of this program as they came in. */
  areWordsWhole(): boolean;
  statPath(path: string): PathStat | Errno;
  /** `realpath(3)`: no link, no dot, no double slash in it. */
  /** Both EILSEQ where a name in the answer is no UTF-8: it would not come out of this program as it came in. */
  realPath(path: string): string | Errno;
  /** The directory that the program was started in; `prepare` leaves it. */
  currentDirectory(): string | Errno;
  /** `umask(2)`; files get exactly the mode that is asked for after `umask(0)`. */
  umask(mask: number): void;
  /**
   * An exclusive lock (flock(2)) on a file of root, made when absent, until `close` or the end of this process. EAGAIN:
   * another process has it. Nobody waits here; programs that are started do not keep it.
   */
  lock(path: string): Handle | Errno;
  /**
   * Gives back by descriptors alone, so that no link can lead out of the directory. ESTALE: it is another directory.
   * Can take minutes; INT and TERM end the process meanwhile, unless they are ignored, and a second call does the rest.
   */
  handBack(request: HandBack): HandedBack | Errno;
  /** By descriptors alone as well: the type of each context, and nothing else of it. */
  relabel(request: Relabel): Relabelled | Errno;
  /**
   * Runs a program in the foreground, with this process's own descriptors and directory and a fixed environment plus
   * `environment`, and waits for its end: exit code, or 128+n for a signal n; 127 where it cannot be executed.
   */
  runInForeground(argv: string[], environment?: Record<string, string>): number;
  /** The same without waiting. Its end is seen by `exitCode` between two `sleep`s; it has no `send` and no `output`. */
  startInForeground(argv: string[], how?: Foreground): Child | Errno;
  /** Moves a file to a name that nothing has, in the same directory. */
  rename(from: string, to: string): Errno;
  /** Mounts the very directory, without what is mounted below it, at a place. ESTALE: the path leads to another one. */
  bindDirectory(binding: Binding): Errno;
  /** Takes the uppermost mount at a place away; EINVAL where there is none. Who uses it keeps it. */
  unbindDirectory(place: string): Errno;
  /**
   * A pipe with a name, for root alone, in place of what has that name; open at both ends, so that nobody who opens one of
   * them waits. This process closes it once others have their ends.
   */
  makeNamedPipe(path: string): Handle | Errno;
  /** Whether two descriptors of this process's caller are of the same file, terminal or pipe. */
  isSameFile(one: 0 | 1 | 2, other: 0 | 1 | 2): boolean;
  /** One question to a file of the kernel that answers on the same descriptor: one write, one read. */
  ask(path: string, question: string): string | Errno;
  /** The SELinux context of a file, of a link itself; ENODATA or EOPNOTSUPP where it has none. */
  fileContext(path: string): string | Errno;
  /** From now on these signals only come to `arrivedSignals`; programs that are started get them as by default. */
  watchSignals(signals: readonly number[]): void;
  /** Those that arrived since the last call, each once. They are noticed in `sleep` only. */
  arrivedSignals(): number[];
}
