// SPDX-License-Identifier: Apache-2.0
// A ground that a unit test makes by hand: the stop's host made by hand, with directories and their owners, people, the
// caller's words, and a list of all that was done, in order. For tests only; it knows nothing about how Linux behaves.

import { type Answer, HandMadeChild, HandMadeHost } from "../stop/hand-made-host.fixture.ts";
import { type Child, EAGAIN, EEXIST, EINVAL, ENOENT, type Errno, type Handle, isErrno } from "../stop/kernel.ts";
import type { Binding, Foreground, Ground, HandBack, HandedBack, PathStat, Relabel, Relabelled } from "./ground.ts";
import { encodeUtf8 } from "./records.ts";

/** A handback in which this became of it. */
export function handedBack(changes: Partial<HandedBack> = {}): HandedBack {
  return { changed: 0, gitLeft: 0, mounts: 0, failed: 0, failures: [], ...changes };
}

/** A change of labels in which this became of it. */
export function relabelled(changes: Partial<Relabelled> = {}): Relabelled {
  return { changed: 0, left: 0, mounts: 0, failed: 0, failures: [], ...changes };
}

function currently<T>(answer: Answer<T>): T {
  return typeof answer === "function" ? (answer as () => T)() : answer;
}

const linkErrno = 40;
const ENODATA = 61;

export class HandMadeGround extends HandMadeHost implements Ground {
  words: string[] = [];
  wordsAreWhole = true;
  directory: string | Errno = "/";
  /** What `statPath` says, by path. `file`, `makeDirectory` and those below fill it. */
  readonly pathStats = new Map<string, Answer<PathStat | Errno>>();
  /** What `realPath` says; the path itself where there is a directory or file of that name. */
  readonly realPaths = new Map<string, Answer<string | Errno>>();
  /** What a handback says; nothing to give where nothing is said. */
  handBackAnswer: (request: HandBack) => HandedBack | Errno = () => handedBack();
  /** What a change of labels says; nothing to change where nothing is said. */
  relabelAnswer: (request: Relabel) => Relabelled | Errno = () => relabelled();
  /** Locks that another process has. */
  readonly lockedByOthers = new Set<string>();
  /** What is mounted, by place. */
  readonly mounted = new Map<string, Binding>();
  /** What mounting says; 0 where nothing is said. */
  bindAnswer: (binding: Binding) => Errno = () => 0;
  /** What a file that answers says. */
  answers: (path: string, question: string) => string | Errno = () => ENOENT;
  /** SELinux contexts of files, by path. */
  readonly fileContexts = new Map<string, string | Errno>();
  /** Descriptors that are of the same file. */
  sameFiles: (0 | 1 | 2)[][] = [];
  /** Signals to this process, and when they come. */
  signalsToCome: { signal: number; atMs: number }[] = [];

  /** What was done, in order: `umask 22`, `create PATH`, `append PATH`, `replace PATH`, `remove PATH`, `makeDirectory
   * PATH`, `write PATH`, `signal PID SIGNAL`, `run COMMAND LINE` (every program), `handBack PATH`, `relabel PATH
   * TYPE`, `lock PATH`, `rename PATH PATH`, `pipe PATH`,
   * `bind PATH PLACE`, `unbind PLACE` (where something was mounted). */
  readonly acts: string[] = [];
  /** Every program that was executed, its arguments apart. */
  readonly executed: string[][] = [];
  /** Those in the foreground, with what they got. */
  readonly foreground: { argv: string[]; how: Foreground }[] = [];
  readonly handBacks: HandBack[] = [];
  readonly relabels: Relabel[] = [];
  /** Mode of each file and directory that was made, as it was asked for. */
  readonly modes = new Map<string, number>();
  readonly watched = new Set<number>();
  readonly #locks = new Map<number, string>();
  #nextInode = 1_000;
  #nextDescriptor = 100;

  /** Somebody in passwd. */
  person(name: string, uid: number, home = `/home/${name}`, gid = uid): { name: string; uid: number; gid: number } {
    const before = this.files.get("/etc/passwd") ?? "";
    this.files.set("/etc/passwd", `${before}${name}:x:${uid}:${gid}:${name}:${encodeUtf8(home)}:/bin/sh\n`);
    return { name, uid, gid };
  }

  /** Called through sudo by somebody who is in passwd. */
  calledBy(person: { name: string; uid: number }): void {
    this.variables.set("SUDO_USER", person.name);
    this.variables.set("SUDO_UID", String(person.uid));
    this.files.set("/proc/self/loginuid", String(person.uid));
  }

  /** A directory of root's, 0755 on device 1, unless it is told otherwise. */
  existing(path: string, changes: Partial<PathStat> = {}): PathStat {
    const inode = this.#nextInode++;
    const stat: PathStat = { kind: "directory", mode: 0o755, uid: 0, gid: 0, device: 1, inode, ...changes };
    this.pathStats.set(path, stat);
    return stat;
  }

  areWordsWhole(): boolean {
    return this.wordsAreWhole;
  }

  statPath(path: string): PathStat | Errno {
    const stat = this.pathStats.get(path);
    if (stat !== undefined) return currently(stat);
    return this.files.has(path) ? this.existing(path, { kind: "file", mode: this.modes.get(path) ?? 0o644 }) : ENOENT;
  }

  realPath(path: string): string | Errno {
    const real = this.realPaths.get(path);
    if (real !== undefined) return currently(real);
    const stat = this.statPath(path);
    if (isErrno(stat)) return stat;
    return stat.kind === "link" ? linkErrno : path;
  }

  currentDirectory(): string | Errno {
    return this.directory;
  }

  umask(mask: number): void {
    this.acts.push(`umask ${mask.toString(8)}`);
  }

  lock(path: string): Handle | Errno {
    this.acts.push(`lock ${path}`);
    if (this.lockedByOthers.has(path) || [...this.#locks.values()].includes(path)) return EAGAIN;
    const handle = { fd: this.#nextDescriptor++ };
    this.#locks.set(handle.fd, path);
    return handle;
  }

  override close(handle: Handle): void {
    this.#locks.delete(handle.fd);
    super.close(handle);
  }

  handBack(request: HandBack): HandedBack | Errno {
    this.acts.push(`handBack ${request.path}`);
    this.handBacks.push(request);
    return this.handBackAnswer(request);
  }

  /** The answer of `program`, at once. */
  runInForeground(argv: string[], environment: Record<string, string> = {}): number {
    this.#execute(argv);
    this.foreground.push({ argv, how: { environment } });
    const program = this.program(argv.join(" ")) ?? { code: 0 };
    if (program === "hangs") throw new Error(`${argv.join(" ")} hangs, and so does whoever waits for it`);
    if ("errno" in program) return 127;
    this.clockMs += program.afterMs ?? 0;
    return program.code;
  }

  startInForeground(argv: string[], how: Foreground = {}): Child | Errno {
    this.#execute(argv);
    this.foreground.push({ argv, how });
    const program = this.program(argv.join(" ")) ?? { code: 0 };
    if (typeof program === "object" && "errno" in program) return program.errno;
    const child = new HandMadeChild(this, program);
    this.children.push(child);
    return child;
  }

  override startProgram(argv: string[], pipes?: { input?: boolean; output?: boolean }): Child | Errno {
    this.executed.push(argv);
    this.acts.push(`run ${argv.join(" ")}`);
    return super.startProgram(argv, pipes);
  }

  #execute(argv: string[]): void {
    this.executed.push(argv);
    this.acts.push(`run ${argv.join(" ")}`);
    this.commandLines.push(argv.join(" "));
  }

  rename(from: string, to: string): Errno {
    this.acts.push(`rename ${from} ${to}`);
    const refused = currently(this.writeAnswers.get(to)) ?? 0;
    const text = this.files.get(from);
    if (refused !== 0 || text === undefined) return refused !== 0 ? refused : ENOENT;
    this.files.set(to, text);
    this.files.delete(from);
    this.pathStats.delete(from);
    return 0;
  }

  bindDirectory(binding: Binding): Errno {
    this.acts.push(`bind ${binding.path} ${binding.place}`);
    const errno = this.bindAnswer(binding);
    if (errno === 0) this.mounted.set(binding.place, binding);
    return errno;
  }

  unbindDirectory(place: string): Errno {
    if (!this.mounted.delete(place)) return this.pathStats.has(place) ? EINVAL : ENOENT;
    this.acts.push(`unbind ${place}`);
    return 0;
  }

  relabel(request: Relabel): Relabelled | Errno {
    this.acts.push(`relabel ${request.path} ${request.to}`);
    this.relabels.push(request);
    return this.relabelAnswer(request);
  }

  ask(path: string, question: string): string | Errno {
    return this.answers(path, question);
  }

  fileContext(path: string): string | Errno {
    return this.fileContexts.get(path) ?? ENODATA;
  }

  makeNamedPipe(path: string): Handle | Errno {
    this.acts.push(`pipe ${path}`);
    const refused = currently(this.writeAnswers.get(path)) ?? 0;
    if (refused !== 0) return refused;
    this.files.set(path, "");
    return { fd: this.#nextDescriptor++ };
  }

  isSameFile(one: 0 | 1 | 2, other: 0 | 1 | 2): boolean {
    return this.sameFiles.some((files) => files.includes(one) && files.includes(other));
  }

  watchSignals(signals: readonly number[]): void {
    for (const signal of signals) this.watched.add(signal);
  }

  arrivedSignals(): number[] {
    const here = ({ signal, atMs }: { signal: number; atMs: number }) =>
      this.watched.has(signal) && atMs <= this.clockMs;
    const arrived = this.signalsToCome.filter(here).map(({ signal }) => signal);
    this.signalsToCome = this.signalsToCome.filter((coming) => !here(coming));
    return [...new Set(arrived)];
  }

  /** What the test said for the directory, and what there is below it besides. */
  override list(path: string): string[] | Errno {
    const said = super.list(path);
    if (isErrno(said) && said !== ENOENT) return said;
    const below = [...this.files.keys(), ...this.pathStats.keys()]
      .filter((other) => other.startsWith(`${path}/`))
      .map((other) => other.slice(path.length + 1).split("/")[0] as string);
    if (isErrno(said) && below.length === 0 && !this.pathStats.has(path)) return ENOENT;
    return [...new Set([...(isErrno(said) ? [] : said), ...below])];
  }

  override makeDirectory(path: string, mode = 0o755): Errno {
    this.acts.push(`makeDirectory ${path}`);
    if (this.pathStats.has(path) || this.directories.has(path)) return EEXIST;
    this.modes.set(path, mode);
    this.existing(path, { mode });
    return 0;
  }

  override createFile(path: string, text: string, mode = 0o644): Errno {
    this.acts.push(`create ${path}`);
    return this.#made(path, mode, super.createFile(path, text, mode));
  }

  override appendFile(path: string, text: string, mode = 0o644): Errno {
    this.acts.push(`append ${path}`);
    return this.#made(path, this.modes.get(path) ?? mode, super.appendFile(path, text));
  }

  override replaceFile(path: string, text: string, mode = 0o644): Errno {
    this.acts.push(`replace ${path}`);
    return this.#made(path, mode, super.replaceFile(path, text));
  }

  #made(path: string, mode: number, errno: Errno): Errno {
    if (errno === 0) this.modes.set(path, mode);
    return errno;
  }

  override remove(path: string): Errno {
    this.acts.push(`remove ${path}`);
    const wasThere = this.pathStats.delete(path);
    return super.remove(path) === 0 || wasThere ? 0 : ENOENT;
  }

  override writeFile(path: string, text: string): Errno {
    this.acts.push(`write ${path}`);
    return super.writeFile(path, text);
  }

  override signal(pid: number, signal: number): Errno {
    this.acts.push(`signal ${pid} ${signal}`);
    return super.signal(pid, signal);
  }
}
