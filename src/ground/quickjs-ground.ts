// SPDX-License-Identifier: Apache-2.0
// The ground on a real Linux: the stop's door, and what the module "native" and QuickJS's `os` add to it.

/// <reference path="./native.d.ts" />
import * as native from "native";
import * as os from "os";
import * as std from "std";
import {
  close,
  encode,
  O_NOCTTY,
  O_NOFOLLOW,
  O_NONBLOCK,
  Outgoing,
  readWhole,
  writeWhole,
} from "../stop/descriptors.ts";
import {
  type Child,
  EAGAIN,
  EOPNOTSUPP,
  EPERM,
  type Errno,
  type Handle,
  isErrno,
  SIGCHLD,
  SIGKILL,
  type Stream,
} from "../stop/kernel.ts";
import { limits } from "../stop/limits.ts";
import { printable } from "../stop/printable.ts";
import { QuickjsHost } from "../stop/quickjs-kernel.ts";
import type { Binding, Foreground, Ground, HandBack, HandedBack, PathStat, Relabel, Relabelled } from "./ground.ts";
import { encodeUtf8 } from "./records.ts";

/** The way back up to a directory is gone. */
const ESTALE = 116;

const fixedEnvironment = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C" };

export class QuickjsGround extends QuickjsHost implements Ground {
  readonly words: readonly string[] = scriptArgs.slice(1);
  // As it was before `prepare` leaves it.
  readonly #startedIn = answer(native.getcwd());
  readonly #arrived = new Set<number>();
  readonly #output = { out: new Outgoing(1), err: new Outgoing(2), terminal: new Outgoing(0) };

  override prepare(): void {
    const before = this.readText("/proc/self/oom_score_adj");
    super.prepare();
    // Only a stop must outlive a shortage of memory; and what is started here would inherit it.
    if (!isErrno(before)) this.writeFile("/proc/self/oom_score_adj", before);
  }

  /** The kernel's own copy of the arguments has their bytes. */
  areWordsWhole(): boolean {
    const bytes = this.readText("/proc/self/cmdline");
    if (isErrno(bytes)) return false;
    try {
      return `${scriptArgs.map(encodeUtf8).join("\0")}\0` === bytes;
    } catch {
      // Half a surrogate pair, which has no UTF-8: encodeURIComponent throws.
      return false;
    }
  }

  statPath(path: string): PathStat | Errno {
    const [stat, errno] = os.lstat(path);
    if (stat === null) return errno;
    const kinds: Record<number, PathStat["kind"]> = {
      [os.S_IFREG]: "file",
      [os.S_IFDIR]: "directory",
      [os.S_IFLNK]: "link",
    };
    const { uid, gid, dev: device, ino: inode } = stat;
    return { kind: kinds[stat.mode & os.S_IFMT] ?? "other", mode: stat.mode & 0o7777, uid, gid, device, inode };
  }

  realPath(path: string): string | Errno {
    return answer(native.realpath(path));
  }

  currentDirectory(): string | Errno {
    return this.#startedIn;
  }

  umask(mask: number): void {
    native.umask(mask);
  }

  lock(path: string): Handle | Errno {
    // Nobody else may open it: whoever may read a file may lock it.
    const fd = os.open(path, os.O_RDWR | os.O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0o600);
    if (fd < 0) return -fd;
    const [stat] = os.stat(`/proc/self/fd/${fd}`);
    const isRoots = stat !== null && (stat.mode & os.S_IFMT) === os.S_IFREG && stat.uid === 0;
    const errno = isRoots ? -native.flock(fd) : EPERM;
    if (errno === 0) return { fd };
    close(fd);
    return errno;
  }

  handBack({ path, device, inode, from, uid, gid, withGit }: HandBack): HandedBack | Errno {
    const result = native.handBack(path, device, inode, from, uid, gid, withGit);
    if (isErrno(result)) return -result;
    const { changed, gitLeft, mounts, failed } = result;
    return { changed, gitLeft, mounts, failed, failures: failuresOf(result) };
  }

  relabel({ path, device, inode, owner, account, from, to }: Relabel): Relabelled | Errno {
    const result = native.relabel(path, device, inode, owner, account, ` ${from.join(" ")} `, to);
    if (isErrno(result)) return -result;
    const { changed, left, mounts, failed } = result;
    return { changed, left, mounts, failed, failures: failuresOf(result) };
  }

  runInForeground(argv: string[], environment: Record<string, string> = {}): number {
    const code = execute(argv, { block: true, env: { ...fixedEnvironment, ...environment } });
    if (code === undefined) return 127;
    return code < 0 ? 128 - code : code;
  }

  startInForeground(argv: string[], { environment = {}, descriptors = {} }: Foreground = {}): Child | Errno {
    const pid = execute(argv, {
      block: false,
      env: { ...fixedEnvironment, ...environment },
      stdin: descriptors[0]?.fd ?? 0,
      stdout: descriptors[1]?.fd ?? 1,
      stderr: descriptors[2]?.fd ?? 2,
    });
    return pid === undefined ? EAGAIN : new ForegroundChild(pid);
  }

  rename(from: string, to: string): Errno {
    return -os.rename(from, to);
  }

  bindDirectory({ path, device, inode, uid, place }: Binding): Errno {
    return -native.bindDirectory(path, device, inode, uid, place);
  }

  unbindDirectory(place: string): Errno {
    return -native.unbindDirectory(place);
  }

  makeNamedPipe(path: string): Handle | Errno {
    os.remove(path);
    const errno = -native.mkfifo(path, 0o600);
    if (errno !== 0) return errno;
    const fd = os.open(path, os.O_RDWR | O_NOFOLLOW | O_NOCTTY);
    return fd < 0 ? -fd : { fd };
  }

  isSameFile(one: 0 | 1 | 2, other: 0 | 1 | 2): boolean {
    const [first] = os.stat(`/proc/self/fd/${one}`);
    const [second] = os.stat(`/proc/self/fd/${other}`);
    return first !== null && second !== null && first.dev === second.dev && first.ino === second.ino;
  }

  // What is printed goes to the caller's descriptors as they are: nobody's life depends on these programs' not waiting for
  // a terminal, and so they need no child of their own for it, as the stop does.
  override print(stream: Stream, text: string): void {
    this.#output[stream].add(text);
    this.#output[stream].pump();
  }

  override async flush(limitMs: number): Promise<boolean> {
    const untilMs = this.nowMs() + limitMs;
    const queues = Object.values(this.#output);
    // Only a descriptor that somebody else made non-blocking leaves something for later.
    while (queues.filter((queue) => !queue.pump()).length > 0) {
      if (this.nowMs() >= untilMs) return false;
      await this.sleep(limits.laterPollMs);
    }
    return true;
  }

  override closeOutput(limitMs: number): Promise<boolean> {
    return this.flush(limitMs);
  }

  /** The stop's alone: it is a name of its executable. */
  override startRecorder(): Errno {
    return EOPNOTSUPP;
  }

  /** The stop's alone. */
  override discardTyped(): Promise<boolean> {
    return Promise.resolve(false);
  }

  ask(path: string, question: string): string | Errno {
    const fd = os.open(path, os.O_RDWR | O_NOCTTY);
    if (fd < 0) return -fd;
    const errno = writeWhole(fd, encode(question));
    const answer = errno === 0 ? readWhole(fd, limits.fileBytes) : errno;
    close(fd);
    return answer;
  }

  fileContext(path: string): string | Errno {
    return answer(native.fileContext(path));
  }

  watchSignals(signals: readonly number[]): void {
    for (const signal of signals) os.signal(signal, () => void this.#arrived.add(signal));
  }

  arrivedSignals(): number[] {
    const arrived = [...this.#arrived];
    this.#arrived.clear();
    return arrived;
  }
}

function failuresOf({ failures }: native.Walked): string[] {
  return failures.map(({ path: bytes, errno }) => {
    const name = String.fromCharCode(...new Uint8Array(bytes));
    const reason = errno === ESTALE ? "moved meanwhile" : std.strerror(errno);
    return `${printable(name === "" ? "." : name)}: ${reason}`;
  });
}

/** Exit code or pid; undefined where QuickJS throws because fork(2) failed, without saying why. */
function execute(argv: string[], options: os.ExecOptions): number | undefined {
  // A caller that ignores SIGCHLD would take the exit code away, and the wait for it would never end.
  os.signal(SIGCHLD, null);
  try {
    return os.exec(argv, { usePath: false, ...options });
  } catch {
    return undefined;
  }
}

/** A program that has this process's own descriptors; only its end is seen. */
class ForegroundChild implements Child {
  readonly #pid: number;
  #code: number | undefined;
  #abandoned = false;

  constructor(pid: number) {
    this.#pid = pid;
  }

  exitCode(): number | undefined {
    if (this.#code !== undefined || this.#abandoned) return this.#code;
    const [pid, status] = os.waitpid(this.#pid, os.WNOHANG);
    if (pid !== this.#pid) return undefined;
    const signal = status & 0x7f;
    this.#code = signal === 0 ? (status >> 8) & 0xff : 128 + signal;
    return this.#code;
  }

  send(): void {
    throw new Error("a program in the foreground reads what its descriptors give");
  }

  sentAll(): boolean {
    return true;
  }

  closeInput(): void {
    // There is none of ours.
  }

  output(): string {
    return "";
  }

  abandon(): void {
    if (this.exitCode() === undefined) os.kill(this.#pid, SIGKILL);
    this.#abandoned = true;
  }
}

function answer(value: string | number): string | Errno {
  return isErrno(value) ? -value : value;
}
