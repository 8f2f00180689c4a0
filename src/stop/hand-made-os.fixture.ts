// SPDX-License-Identifier: Apache-2.0
// QuickJS's module `os`, made by hand: descriptors, pipes and children of one process that do what a test wrote down. For
// tests only, behind `vi.mock`; what Linux itself does with them is told by the boundary tests.

/** What a descriptor refers to. */
export interface Target {
  kind: "terminal" | "pipe" | "file" | "socket" | "block" | "null";
  /** Flags as `/proc/self/fdinfo` prints them, octal; undefined where that cannot be read. */
  flags: string | undefined;
  written: string;
  /** Whether writing takes anything now. */
  takes: boolean;
  /** What reading gives; nothing yet after the last one, end of file with `ended`. */
  pending: string[];
  ended: boolean;
}

export interface Executed {
  pid: number;
  argv: string[];
  options: Record<string, unknown>;
  /** Signals that it inherits as ignored. */
  ignored: number[];
  /** Raw status of wait(2) once it has ended. */
  status: number | undefined;
}

type Handler = (() => void) | null | undefined;

const modes = { terminal: 0o020620, pipe: 0o010600, file: 0o100644, socket: 0o140777, block: 0o060600, null: 0o020666 };
const links = {
  terminal: "/dev/pts/3",
  pipe: "pipe:[4711]",
  file: "/srv/out",
  socket: "socket:[4712]",
  block: "/dev/loop0",
  null: "/dev/null",
};
const EAGAIN = 11;
const ENOENT = 2;

/** A target of this kind that may be read and written, unless it says otherwise. */
export function target(kind: Target["kind"], changes: Partial<Target> = {}): Target {
  return { kind, flags: "0102002", written: "", takes: true, pending: [], ended: false, ...changes };
}

/** One process's world. Replaced by `reset` before each test. */
export class HandMadeOs {
  clockMs = 1_000;
  readonly descriptors = new Map<number, Target>();
  readonly files = new Map<string, string>();
  /** Everything that was opened but files that are only looked at. */
  readonly opened: { path: string; flags: number }[] = [];
  readonly executed: Executed[] = [];
  /** Paths whose file was asked (stat). */
  readonly asked: string[] = [];
  readonly killed: { pid: number; signal: number }[] = [];
  /** Numbers that were held, and signals through descriptors. */
  readonly held: number[] = [];
  readonly signalled: { fd: number; signal: number }[] = [];
  readonly handlers = new Map<number, Handler>();
  readonly raw: number[] = [];
  canFork = true;
  /** What happens between a program's fork and its exec. */
  duringExec: () => void = () => undefined;
  /** How many pipes there can be still. */
  pipes = 100;
  #nextPid = 500;

  /** The open descriptors above the standard ones. */
  openAbove(highest: number): number[] {
    return [...this.descriptors.keys()].filter((fd) => fd > highest);
  }

  /** A signal arrives, and the event loop runs its handler. */
  deliver(signal: number): void {
    this.handlers.get(signal)?.();
  }

  add(what: Target): number {
    let fd = 0;
    while (this.descriptors.has(fd)) fd++;
    this.descriptors.set(fd, what);
    return fd;
  }

  nextPid(): number {
    return this.#nextPid++;
  }
}

export let world = new HandMadeOs();

/** A new world with these at 0, 1 and 2. */
export function reset(...standard: Target[]): HandMadeOs {
  world = new HandMadeOs();
  for (const what of standard) world.add(what);
  return world;
}

/** The module, for `vi.mock("os", ...)`. */
export const os = {
  O_RDONLY: 0,
  O_WRONLY: 1,
  O_RDWR: 2,
  O_APPEND: 0o2000,
  O_CREAT: 0o100,
  O_EXCL: 0o200,
  S_IFMT: 0o170000,
  S_IFIFO: 0o010000,
  S_IFCHR: 0o020000,
  S_IFREG: 0o100000,
  S_IFSOCK: 0o140000,
  S_IFDIR: 0o040000,
  S_IFLNK: 0o120000,
  WNOHANG: 1,
  open(path: string, flags: number): number {
    const info = /^\/proc\/self\/fdinfo\/([0-9]+)$/.exec(path)?.[1];
    if (info !== undefined) return openText(flagsText(Number(info)));
    if (world.files.has(path)) return openText(world.files.get(path));
    const again = /^\/proc\/self\/fd\/([0-9]+)$/.exec(path)?.[1];
    const found = again === undefined ? undefined : world.descriptors.get(Number(again));
    if (path !== "/dev/null" && found === undefined) return -ENOENT;
    world.opened.push({ path, flags });
    return world.add(found ?? target("null"));
  },
  close: (fd: number) => (world.descriptors.delete(fd) ? 0 : -9),
  read(fd: number, buffer: ArrayBuffer, at: number): number {
    const from = world.descriptors.get(fd);
    const text = from?.pending.shift();
    if (text === undefined) return from?.ended === true ? 0 : -EAGAIN;
    for (let index = 0; index < text.length; index++) new Uint8Array(buffer)[at + index] = text.charCodeAt(index);
    return text.length;
  },
  write(fd: number, buffer: ArrayBuffer, at: number, count: number): number {
    const to = world.descriptors.get(fd);
    if (to === undefined) return -9;
    if (!to.takes) return -EAGAIN;
    to.written += String.fromCharCode(...new Uint8Array(buffer, at, count));
    return count;
  },
  pipe(): [number, number] | null {
    if (world.pipes-- <= 0) return null;
    // One queue with two ends: what the reader of the test wants to see is in `written`, what it wants to say in `pending`.
    const reading = target("pipe", { flags: "0100000" });
    const writing = target("pipe", { flags: "0100001" });
    return [world.add(reading), world.add(writing)];
  },
  readlink(path: string): [string, number] {
    const fd = /^\/proc\/self\/fd\/([0-9]+)$/.exec(path)?.[1];
    const found = fd === undefined ? undefined : world.descriptors.get(Number(fd));
    return found === undefined ? ["", ENOENT] : [links[found.kind], 0];
  },
  stat(path: string) {
    world.asked.push(path);
    const fd = /^\/proc\/self\/fd\/([0-9]+)$/.exec(path)?.[1];
    const found = fd === undefined ? undefined : world.descriptors.get(Number(fd));
    return found === undefined ? [null, ENOENT] : [{ mode: modes[found.kind], uid: 0, nlink: 1, rdev: 34_819 }, 0];
  },
  isatty: (fd: number) => world.descriptors.get(fd)?.kind === "terminal",
  ttySetRaw: (fd: number) => void world.raw.push(fd),
  exec(argv: string[], options: Record<string, unknown>): number {
    if (!world.canFork) throw new TypeError("fork error");
    world.duringExec();
    const ignored = [...world.handlers].filter(([, handler]) => handler === undefined).map(([signal]) => signal);
    const child = { pid: world.nextPid(), argv, options, ignored, status: undefined };
    world.executed.push(child);
    return child.pid;
  },
  waitpid(pid: number): [number, number] {
    const status = world.executed.find((child) => child.pid === pid)?.status;
    return status === undefined ? [0, 0] : [pid, status];
  },
  kill(pid: number, signal: number): number {
    world.killed.push({ pid, signal });
    return 0;
  },
  signal: (signal: number, handler: Handler) => void world.handlers.set(signal, handler),
  now: () => world.clockMs,
  sleepAsync(ms: number): Promise<void> {
    world.clockMs += ms;
    return Promise.resolve();
  },
  getpid: () => 400,
  chdir: () => 0,
};

function openText(text: string | undefined): number {
  if (text === undefined) return -ENOENT;
  return world.add(target("file", { pending: [text], ended: true }));
}

function flagsText(fd: number): string | undefined {
  const flags = world.descriptors.get(fd)?.flags;
  return flags === undefined ? undefined : `pos:\t0\nflags:\t${flags}\nmnt_id:\t25\n`;
}

/** The module `pidfd`, for `vi.mock("pidfd", ...)`. */
export const pidfd = {
  open(pid: number): number {
    world.held.push(pid);
    return world.add(target("null"));
  },
  signal(fd: number, signal: number): number {
    if (!world.descriptors.has(fd)) return -9;
    world.signalled.push({ fd, signal });
    return 0;
  },
};
