// SPDX-License-Identifier: Apache-2.0
// The door on a real Linux: system calls through QuickJS's two modules and the one of pidfd.c, which only this file, its
// parts beside it (children.ts, descriptors.ts, terminal.ts) and main.ts's exit import. Files are read until end of file
// and errors are told by errno.

import * as os from "os";
import * as pidfd from "pidfd";
import * as std from "std";
import { ProgramRunner } from "./children.ts";
import {
  close,
  descriptorPath,
  encode,
  kindOf,
  O_NOCTTY,
  O_NOFOLLOW,
  O_NONBLOCK,
  readAvailable,
  readLines,
  readWhole,
  writeWhole,
} from "./descriptors.ts";
import * as k from "./kernel.ts";
import { limits } from "./limits.ts";
import { parseStatus } from "./proc-files.ts";
import { waitFor } from "./programs.ts";
import { Terminal } from "./terminal.ts";

/** No closed terminal, key or background job may abandon a kill half-way. */
const ignoredSignals = [
  k.SIGPIPE,
  k.SIGHUP,
  k.SIGQUIT,
  k.SIGUSR1,
  k.SIGUSR2,
  k.SIGALRM,
  k.SIGVTALRM,
  k.SIGPROF,
  k.SIGXCPU,
  k.SIGXFSZ,
  k.SIGTTOU,
  k.SIGTTIN,
  k.SIGTSTP,
];

export class QuickjsHost implements k.Host {
  readonly pid = os.getpid();
  readonly #programs = new ProgramRunner();
  readonly #terminal = new Terminal(this.#programs);
  #interruption = 0;
  #isFiltered: boolean | undefined;

  nowMs(): number {
    return os.now();
  }

  wallClockMs(): number {
    return Date.now();
  }

  prepare(): void {
    this.#programs.openStandardDescriptors();
    os.chdir("/");
    for (const signal of ignoredSignals) os.signal(signal, undefined);
    // An ignored SIGCHLD would be inherited and take the exit codes of the children away.
    os.signal(k.SIGCHLD, null);
    for (const signal of [k.SIGINT, k.SIGTERM]) {
      os.signal(signal, () => {
        if (this.#interruption === 0) this.#interruption = signal;
      });
    }
    // Best effort: an out-of-memory kill should not be what decides. Not the autogroup's nice value: that one belongs to
    // the operator's whole login session and would stay.
    this.writeFile("/proc/self/oom_score_adj", "-1000");
  }

  ignoreInterruptions(signals: readonly number[]): void {
    for (const signal of signals) os.signal(signal, undefined);
    if (signals.includes(this.#interruption)) this.#interruption = 0;
  }

  interruption(): number {
    return this.#interruption;
  }

  isRoot(): boolean {
    const status = this.readText("/proc/self/status");
    const uids = k.isErrno(status) ? undefined : parseStatus(status)?.uids;
    return uids !== undefined && uids[0] === 0 && uids[1] === 0;
  }

  environment(name: string): string | undefined {
    return std.getenv(name);
  }

  sleep(ms: number): Promise<void> {
    return os.sleepAsync(ms);
  }

  readText(path: string, cutAfter?: number): string | k.Errno {
    const fd = os.open(path, os.O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return -fd;
    const text = cutAfter === undefined ? readWhole(fd, limits.fileBytes) : readLines(fd, cutAfter);
    close(fd);
    return text;
  }

  list(path: string): string[] | k.Errno {
    const [names, errno] = os.readdir(path);
    return errno !== 0 ? errno : names.filter((name) => name !== "." && name !== "..");
  }

  readLink(path: string): string | k.Errno {
    const [target, errno] = os.readlink(path);
    return errno !== 0 ? errno : target;
  }

  lstat(path: string): k.FileStat | k.Errno {
    const [stat, errno] = os.lstat(path);
    if (stat === null) return errno;
    const kinds: Record<number, k.FileStat["kind"]> = {
      [os.S_IFREG]: "file",
      [os.S_IFDIR]: "directory",
      [os.S_IFLNK]: "link",
    };
    const { uid, nlink, rdev, size } = stat;
    return { kind: kinds[stat.mode & os.S_IFMT] ?? "other", mode: stat.mode & 0o7777, uid, nlink, rdev, size };
  }

  open(path: string, how: "read" | "write"): k.Handle | k.Errno {
    const fd = os.open(path, (how === "read" ? os.O_RDONLY : os.O_WRONLY) | O_NOCTTY);
    return fd < 0 ? -fd : { fd };
  }

  readAgain(handle: k.Handle): string | k.Errno {
    const offset = os.seek(handle.fd, 0, std.SEEK_SET);
    return offset < 0 ? -offset : readWhole(handle.fd, limits.fileBytes);
  }

  hold(pid: number): k.Handle | k.Errno {
    if (!Number.isInteger(pid) || pid <= 1) return k.EINVAL;
    this.#isFiltered ??= this.#hasFilter();
    if (this.#isFiltered) return k.ENOSYS;
    const fd = pidfd.open(pid);
    return fd < 0 ? -fd : { fd };
  }

  /** A filter of system calls that does not know these may kill whoever makes one. Unknown is yes. */
  #hasFilter(): boolean {
    const status = this.readText("/proc/self/status");
    return k.isErrno(status) || !status.includes("\nSeccomp:\t0\n");
  }

  close(handle: k.Handle): void {
    close(handle.fd);
  }

  signal(pid: number, signal: number): k.Errno {
    // 0 and negative numbers are groups, 1 is init: never a target.
    if (!Number.isInteger(pid) || pid <= 1 || !Number.isInteger(signal) || signal <= 0) return k.EINVAL;
    return -os.kill(pid, signal);
  }

  signalHeld(held: k.Handle, signal: number): k.Errno {
    return Number.isInteger(signal) && signal > 0 ? -pidfd.signal(held.fd, signal) : k.EINVAL;
  }

  write(handle: k.Handle, text: string): k.Errno {
    return writeWhole(handle.fd, encode(text));
  }

  writeFile(path: string, text: string): k.Errno {
    const fd = os.open(path, os.O_WRONLY | O_NOFOLLOW | O_NOCTTY);
    if (fd < 0) return -fd;
    const errno = writeWhole(fd, encode(text));
    close(fd);
    return errno;
  }

  makeDirectory(path: string, mode: number): k.Errno {
    return -os.mkdir(path, mode);
  }

  createFile(path: string, text: string, mode: number): k.Errno {
    const fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | O_NOFOLLOW | O_NOCTTY, mode);
    if (fd < 0) return -fd;
    const errno = writeWhole(fd, encode(text));
    close(fd);
    return errno;
  }

  appendFile(path: string, text: string, mode: number): k.Errno {
    return this.#append(path, os.O_WRONLY, mode, () => text);
  }

  appendLine(path: string, line: string, mode: number): k.Errno {
    return this.#append(path, os.O_RDWR, mode, (fd) => (endsWithinLine(fd) ? `\n${line}` : line));
  }

  #append(path: string, access: number, mode: number, textFor: (fd: number) => string): k.Errno {
    // O_NONBLOCK: a FIFO in its place keeps nobody waiting.
    const fd = os.open(path, access | os.O_APPEND | os.O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, mode);
    if (fd < 0) return -fd;
    const errno = isRootsOwnFile(fd) ? writeWhole(fd, encode(textFor(fd))) : k.EPERM;
    close(fd);
    return errno;
  }

  replaceFile(path: string, text: string, mode: number): k.Errno {
    const beside = `${path}.${this.pid}.new`;
    os.remove(beside);
    const created = this.createFile(beside, text, mode);
    const errno = created !== 0 ? created : -os.rename(beside, path);
    // A full disk leaves a torn one.
    if (errno !== 0) os.remove(beside);
    return errno;
  }

  remove(path: string): k.Errno {
    return -os.remove(path);
  }

  startProgram(argv: string[], pipes: { input?: boolean; output?: boolean }): k.Child | k.Errno {
    return this.#programs.start(argv, { ...pipes });
  }

  startRecorder(): k.Child | k.Errno {
    return this.#programs.start([recorderName], { input: true, output: true, itself: true });
  }

  isTerminal(descriptor: 0 | 1 | 2): boolean {
    return kindOf(descriptor) === "device" && os.isatty(descriptor);
  }

  terminalDevice(): number {
    if (!this.isTerminal(0)) return 0;
    const [stat] = os.stat(descriptorPath(0));
    return stat?.rdev ?? 0;
  }

  print(stream: k.Stream, text: string): void {
    this.#terminal.print(stream, text);
  }

  flush(limitMs: number): Promise<boolean> {
    return this.#untilTaken(limitMs, () => this.#terminal.pump());
  }

  closeOutput(limitMs: number): Promise<boolean> {
    return this.#untilTaken(limitMs, () => this.#terminal.close());
  }

  async #untilTaken(limitMs: number, isTaken: () => boolean): Promise<boolean> {
    const untilMs = os.now() + limitMs;
    while (!isTaken()) {
      if (os.now() >= untilMs) {
        this.#terminal.drop();
        return false;
      }
      await os.sleepAsync(limits.laterPollMs);
    }
    return true;
  }

  async discardTyped(): Promise<boolean> {
    const child = this.#terminal.discardTyped();
    // Never killed: it would leave the terminal raw. It ends by itself.
    return child !== undefined && (await waitFor(this, child, os.now() + limits.discardMs));
  }

  typed(): string | undefined {
    return this.#terminal.typed();
  }
}

/** Under this name (argument 0) the executable is the recorder; sudo and people call it by its path. */
export const recorderName = "ai-tools-stop: recorder";

/** Whether the last byte of a file is no end of a line: a full disk has torn it. */
function endsWithinLine(fd: number): boolean {
  if (os.seek(fd, -1, std.SEEK_END) < 0) return false;
  const last = readAvailable(fd);
  return last !== undefined && last !== "" && !last.endsWith("\n");
}

/** A log that is a link's target, a FIFO, a device, somebody's file or has a second name is not written to. */
function isRootsOwnFile(fd: number): boolean {
  const [stat] = os.stat(descriptorPath(fd));
  return stat !== null && (stat.mode & os.S_IFMT) === os.S_IFREG && stat.uid === 0 && stat.nlink === 1;
}
