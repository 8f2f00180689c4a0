// SPDX-License-Identifier: Apache-2.0
// The door of a simulated world: what a stop sees and does goes through here. Every call costs simulated time, so the
// world moves between any two of them; every call may meet a fault; and the helper may be killed at any of them.

import {
  type Child,
  EBADF,
  EINVAL,
  ENODEV,
  ENOENT,
  EROFS,
  type Errno,
  type FileStat,
  type Handle,
  type Host,
  isErrno,
  type Stream,
} from "../kernel.ts";
import { changeHands } from "./bystanders.ts";
import {
  type CgroupFile,
  cgroupFileAt,
  makeCgroupAt,
  namesIn,
  readCgroupFile,
  removeCgroup,
  statOf,
  writeCgroupFile,
} from "./cgroup-files.ts";
import { isFrozen } from "./cgroups.ts";
import type { Call, FaultList } from "./faults.ts";
import { abortFuse, fuseNames, fuseStat } from "./fuse.ts";
import { cgroupMount, hostText, processLink, processText, procNames } from "./proc-texts.ts";
import type { Process } from "./processes.ts";
import type { Services } from "./programs.ts";
import { Signalling } from "./signalling.ts";
import type { Turns } from "./turns.ts";
import type { World } from "./world.ts";

/** The helper executes nothing after this: it was killed, or sleeps in a frozen cgroup for ever. */
export class KilledHere extends Error {
  readonly why: "asked" | "own-kill" | "frozen";

  constructor(why: "asked" | "own-kill" | "frozen") {
    super(`the helper ends here (${why})`);
    this.why = why;
  }
}

/** How a helper is started and who sits in front of it. */
export interface HelperOptions {
  root: boolean;
  /** The number of the call before which it is killed. */
  killAtCall?: number;
  /** The number of the call before which the number that it is busy with changes hands. */
  recycleAtCall?: number;
  terminals: readonly (0 | 1 | 2)[];
  /** What is typed, and when after the question can be asked; nobody answers where it is empty. */
  typed: readonly { afterMs: number; text: string | undefined }[];
  /** Terminal or pipe that takes nothing. */
  stuckOutput: boolean;
  environment: Readonly<Record<string, string>>;
  loginuid: string;
  interruptions: readonly { atMs: number; signal: number }[];
}

export const detector: HelperOptions = {
  root: true,
  terminals: [],
  typed: [],
  stuckOutput: false,
  environment: { SUDO_UID: "1000", SUDO_USER: "olga" },
  loginuid: "1000",
  interruptions: [],
};

interface OpenFile extends Handle {
  file: CgroupFile | string;
  how: "read" | "write";
}

/** What calls cost, in microseconds. A census of one process is a look and some work: 26 µs measured. */
const costUs = {
  read: 22,
  entry: 0.7,
  list: 20,
  link: 6,
  stat: 4,
  open: 6,
  close: 2,
  hold: 5,
  signal: 6,
  write: 9,
  clock: 1,
  other: 3,
};

export class SimulatedHost implements Host {
  readonly world: World;
  readonly helper: Process;
  readonly options: HelperOptions;
  readonly signalling: Signalling;
  /** Every write to a cgroup or FUSE file: path and text. */
  readonly writes: { path: string; text: string }[] = [];
  readonly printed = { out: "", err: "", terminal: "" };
  calls = 0;
  /** Time of the last look at processes or cgroups. */
  lastLookUs = 0;
  /** Paths of the last calls, so that nothing impossible happens between a look at a process and what follows it. */
  readonly recent: string[] = [];
  endedBy: KilledHere | undefined;
  readonly #services: Services;
  readonly #turns: Turns;
  readonly #faults: FaultList;
  readonly #open = new Map<number, OpenFile>();
  readonly #startedUs: number;
  #nextDescriptor = 3;
  #questionUs: number | undefined;
  #typedCount = 0;
  #interruption = 0;
  readonly #ignored = new Set<number>();

  constructor(
    world: World,
    services: Services,
    turns: Turns,
    faults: FaultList,
    helper: Process,
    options: HelperOptions,
  ) {
    this.world = world;
    this.signalling = new Signalling(world);
    this.helper = helper;
    this.options = options;
    this.#services = services;
    this.#turns = turns;
    this.#faults = faults;
    this.#startedUs = world.timeline.nowUs;
  }

  get pid(): number {
    return this.helper.pid;
  }

  nowMs(): number {
    this.#pass(costUs.clock);
    return this.world.timeline.nowUs / 1000;
  }

  wallClockMs(): number {
    return 1_790_000_000_000 + Math.floor(this.world.timeline.nowUs / 1000);
  }

  readText(path: string): string | Errno {
    return this.#step("readText", path, costUs.read) ?? this.#read(path);
  }

  list(path: string): string[] | Errno {
    const refused = this.#step("list", path, costUs.list);
    if (refused !== undefined) return refused;
    if (path === "/proc") return this.#listProc();
    if (path === "/sys/fs/fuse/connections") return fuseNames(this.world);
    const file = this.#cgroupFile(path);
    if (file === undefined) return this.world.files.list(path);
    if (isErrno(file)) return file;
    return file.name === "" ? namesIn(this.world, file.cgroup) : EINVAL;
  }

  readLink(path: string): string | Errno {
    const refused = this.#step("readLink", path, costUs.link);
    if (refused !== undefined) return refused;
    if (path === "/proc/self") return String(this.pid);
    const place = this.#processPlace(path);
    return place === undefined ? ENOENT : processLink(this.world, place.pid, place.name);
  }

  lstat(path: string): FileStat | Errno {
    const refused = this.#step("lstat", path, costUs.stat);
    if (refused !== undefined) return refused;
    if (path.startsWith("/sys/fs/fuse/connections/")) return fuseStat(this.world, path);
    const file = this.#cgroupFile(path);
    if (file !== undefined) return isErrno(file) ? file : statOf(file);
    const place = this.#processPlace(path);
    if (place === undefined) return this.world.files.stat(path);
    const text = processText(this.world, place.pid, place.name === "" ? "status" : place.name);
    return isErrno(text)
      ? text
      : { kind: place.name === "" ? "directory" : "file", mode: 0o444, uid: 0, nlink: 1, rdev: 0, size: 0 };
  }

  open(path: string, how: "read" | "write"): Handle | Errno {
    const refused = this.#step("open", path, costUs.open);
    if (refused !== undefined) return refused;
    const file = this.#cgroupFile(path);
    if (isErrno(file)) return file;
    if (file !== undefined && how === "write" && this.world.host.readOnlyCgroups) return EROFS;
    if (file === undefined && isErrno(this.#read(path)) && !path.endsWith("/abort")) return this.#read(path) as Errno;
    const handle: OpenFile = { fd: this.#nextDescriptor++, file: file ?? path, how };
    this.#open.set(handle.fd, handle);
    return handle;
  }

  readAgain(handle: Handle): string | Errno {
    const open = this.#open.get(handle.fd);
    const refused = this.#step("readAgain", open === undefined ? "" : this.#pathOfOpen(open), costUs.read / 2);
    if (refused !== undefined) return refused;
    if (open === undefined) return EBADF;
    return typeof open.file === "string" ? this.#read(open.file) : readCgroupFile(open.file);
  }

  hold(pid: number): Handle | Errno {
    const refused = this.#step("hold", String(pid), costUs.hold);
    if (refused !== undefined) return refused;
    const handle = { fd: this.#nextDescriptor++ };
    const errno = this.signalling.hold(pid, handle.fd);
    return errno === 0 ? handle : errno;
  }

  close(handle: Handle): void {
    this.#pass(costUs.close);
    this.#open.delete(handle.fd);
    this.signalling.release(handle.fd);
  }

  environment(name: string): string | undefined {
    return this.options.environment[name];
  }

  signal(pid: number, signal: number): Errno {
    return this.#step("signal", String(pid), costUs.signal) ?? this.signalling.byNumber(pid, signal);
  }

  signalHeld(held: Handle, signal: number): Errno {
    const number = String(this.signalling.numberOf(held.fd));
    return this.#step("signal", number, costUs.signal) ?? this.signalling.byDescriptor(held.fd, signal);
  }

  write(handle: Handle, text: string): Errno {
    const open = this.#open.get(handle.fd);
    const refused = this.#step("write", open === undefined ? "" : this.#pathOfOpen(open), costUs.write);
    if (refused !== undefined) return refused;
    if (open === undefined || open.how !== "write") return EBADF;
    return this.#writeTo(open.file, text, this.#pathOfOpen(open));
  }

  writeFile(path: string, text: string): Errno {
    const refused = this.#step("writeFile", path, costUs.open + costUs.write);
    if (refused !== undefined) return refused;
    const file = this.#cgroupFile(path);
    if (isErrno(file)) return file;
    return this.#writeTo(file ?? path, text, path);
  }

  async sleep(ms: number): Promise<void> {
    this.#pass(0);
    await this.#turns.sleep(Math.max(0, ms) * 1000 + 60 * this.world.host.slowness);
    this.#runHandlers();
    this.#checkAlive();
  }

  interruption(): number {
    this.#pass(costUs.clock);
    return this.#interruption;
  }

  prepare(): void {
    this.#pass(costUs.other);
  }

  ignoreInterruptions(signals: readonly number[]): void {
    this.#pass(costUs.other);
    for (const signal of signals) this.#ignored.add(signal);
  }

  isRoot(): boolean {
    return this.options.root;
  }

  makeDirectory(path: string, mode: number): Errno {
    const refused = this.#step("makeDirectory", path, costUs.open);
    if (refused !== undefined) return refused;
    return this.#isCgroupPath(path)
      ? makeCgroupAt(this.world, this.#belowMount(path))
      : this.world.files.makeDirectory(path, mode);
  }

  createFile(path: string, text: string, mode: number): Errno {
    return this.#step("createFile", path, costUs.write) ?? this.world.files.create(path, text, mode);
  }

  appendFile(path: string, text: string, mode: number): Errno {
    return this.#step("appendFile", path, costUs.write) ?? this.world.files.append(path, text, mode);
  }

  /** The simulated disk writes whole lines or nothing. */
  appendLine(path: string, line: string, mode: number): Errno {
    return this.appendFile(path, line, mode);
  }

  replaceFile(path: string, text: string, mode: number): Errno {
    return this.#step("replaceFile", path, costUs.write) ?? this.world.files.replace(path, text, mode);
  }

  remove(path: string): Errno {
    const refused = this.#step("remove", path, costUs.write);
    if (refused !== undefined) return refused;
    return this.#isCgroupPath(path) ? removeCgroup(this.world, this.#belowMount(path)) : this.world.files.remove(path);
  }

  startProgram(argv: string[], _pipes: { input?: boolean; output?: boolean }): Child | Errno {
    return this.#step("startProgram", argv.join(" "), 300) ?? this.#services.startProgram(this.helper, argv);
  }

  startRecorder(): Child | Errno {
    return this.#step("startRecorder", "recorder", 300) ?? this.#services.startRecorder(this.helper);
  }

  isTerminal(descriptor: 0 | 1 | 2): boolean {
    return this.options.terminals.includes(descriptor);
  }

  terminalDevice(): number {
    return this.isTerminal(0) ? this.helper.terminal : 0;
  }

  print(stream: Stream, text: string): void {
    this.#pass(costUs.other);
    this.printed[stream] += text;
  }

  async flush(limitMs: number): Promise<boolean> {
    this.#pass(costUs.other);
    if (this.options.stuckOutput) await this.#turns.sleep(limitMs * 1000);
    this.#runHandlers();
    this.#checkAlive();
    return !this.options.stuckOutput;
  }

  closeOutput(limitMs: number): Promise<boolean> {
    return this.flush(limitMs);
  }

  discardTyped(): Promise<boolean> {
    this.#pass(costUs.other);
    this.#questionUs = this.world.timeline.nowUs;
    return Promise.resolve(true);
  }

  typed(): string | undefined {
    this.#pass(costUs.other);
    const next = this.options.typed[this.#typedCount];
    if (next === undefined || this.world.timeline.nowUs < (this.#questionUs ?? 0) + next.afterMs * 1000) return "";
    this.#typedCount++;
    return next.text;
  }

  /** The time that one call takes, in which the world acts. A helper that was killed or frozen meanwhile does no more. */
  #pass(us: number): void {
    this.#checkAlive();
    this.calls++;
    if (this.calls === this.options.killAtCall) this.#end(new KilledHere("asked"));
    if (this.calls === this.options.recycleAtCall) changeHands(this.world, this.signalling.lastNumber);
    this.world.timeline.advance(us * this.world.host.slowness);
    this.#checkAlive();
  }

  /** A call that a fault may hit: its errno, or undefined to go on. */
  #step(call: Call, path: string, us: number): Errno | undefined {
    this.recent.push(path);
    if (this.recent.length > 4) this.recent.shift();
    this.#pass(us);
    if (path.startsWith("/proc") || this.#isCgroupPath(path)) this.lastLookUs = this.world.timeline.nowUs;
    if (this.#faults.isEmpty) return undefined;
    const fault = this.#faults.strike(call, path);
    if (fault?.delayMs !== undefined) this.world.timeline.advance(fault.delayMs * 1000);
    return fault?.errno;
  }

  #checkAlive(): void {
    if (this.endedBy !== undefined) throw this.endedBy;
    if (this.helper.dying || this.helper.phase !== "alive") this.#end(new KilledHere("own-kill"));
    if (isFrozen(this.helper.cgroup)) this.#end(new KilledHere("frozen"));
  }

  #end(killed: KilledHere): never {
    this.endedBy = killed;
    this.#open.clear();
    if (killed.why !== "frozen") this.world.die(this.helper);
    throw killed;
  }

  #runHandlers(): void {
    if (this.#interruption !== 0) return;
    const sinceMs = (this.world.timeline.nowUs - this.#startedUs) / 1000;
    const arrived = this.options.interruptions.filter((one) => one.atMs <= sinceMs);
    this.#interruption = arrived.find((one) => !this.#ignored.has(one.signal))?.signal ?? 0;
  }

  /** Numbers ascending, read a few at a time while the world goes on: what comes below the position is missed. */
  #listProc(): string[] {
    const names: string[] = [];
    let at = 0;
    for (let seen = -1, all: string[] = []; ; ) {
      if (seen !== this.world.born) {
        all = procNames(this.world).filter((name) => !(Number(name) <= at));
        seen = this.world.born;
      }
      const some = all.splice(0, 64);
      if (some.length === 0) return names;
      for (const name of some) {
        const pid = Number(name);
        if (Number.isNaN(pid) || this.world.processes.has(pid)) names.push(name);
        if (pid > at) at = pid;
      }
      if (Number.isNaN(Number(some.at(-1)))) return names;
      this.world.timeline.advance(some.length * costUs.entry * this.world.host.slowness);
    }
  }

  #read(path: string): string | Errno {
    const place = this.#processPlace(path);
    if (place !== undefined) return this.#processFile(place.pid, place.name);
    if (path.startsWith("/proc/")) return hostText(this.world, path.slice("/proc/".length));
    const file = this.#cgroupFile(path);
    if (file !== undefined) return isErrno(file) ? file : readCgroupFile(file);
    return this.world.files.read(path);
  }

  #processFile(pid: number, name: string): string | Errno {
    if (name === "uid_map") return "         0          0 4294967295\n";
    if (pid === this.pid && name === "loginuid") return this.options.loginuid;
    if (name === "status") this.signalling.look(pid);
    if (pid === 1 && name === "cgroup" && this.world.host.layout === "cgroup-namespace")
      return "0::/../../init.scope\n";
    return processText(this.world, pid, name);
  }

  #processPlace(path: string): { pid: number; name: string } | undefined {
    if (!path.startsWith("/proc/")) return undefined;
    const slash = path.indexOf("/", 6);
    const word = slash < 0 ? path.slice(6) : path.slice(6, slash);
    const pid = word === "self" ? this.pid : Number(word);
    return Number.isNaN(pid) ? undefined : { pid, name: slash < 0 ? "" : path.slice(slash + 1) };
  }

  #isCgroupPath(path: string): boolean {
    const mount = cgroupMount(this.world);
    return this.world.host.layout !== "no-cgroup2" && (path === mount || path.startsWith(`${mount}/`));
  }

  #belowMount(path: string): string {
    return path.slice(cgroupMount(this.world).length);
  }

  /** undefined: the path is not in the cgroup hierarchy at all. */
  #cgroupFile(path: string): CgroupFile | Errno | undefined {
    return this.#isCgroupPath(path) ? cgroupFileAt(this.world, this.#belowMount(path)) : undefined;
  }

  #pathOfOpen(open: OpenFile): string {
    return typeof open.file === "string"
      ? open.file
      : `${cgroupMount(this.world)}/.../${open.file.cgroup.name}/${open.file.name}`;
  }

  #writeTo(file: CgroupFile | string, text: string, path: string): Errno {
    if (typeof file !== "string") {
      this.writes.push({ path, text });
      if (file.name === "cgroup.kill" && text.trim() === "1") this.#services.noticeKill();
      const answer = writeCgroupFile(this.world, file, text, this.helper);
      this.#checkAlive();
      return answer;
    }
    if (file.startsWith("/sys/fs/fuse/connections/")) {
      this.writes.push({ path, text });
      return abortFuse(this.world, file);
    }
    if (file.startsWith("/proc/")) return 0;
    return this.world.files.node(file) === undefined ? ENODEV : 0;
  }
}
