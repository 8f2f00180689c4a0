// SPDX-License-Identifier: Apache-2.0
// A host that a unit test makes by hand: files, links, programs and a keyboard that say exactly what the test wrote down,
// and a clock that moves only in `sleep`. For tests only; it knows nothing about how Linux behaves (see simulation/).

import {
  type Child,
  EEXIST,
  EINVAL,
  ENOENT,
  type Errno,
  ESRCH,
  type FileStat,
  type Handle,
  type Host,
  type Stream,
} from "./kernel.ts";

/** What a look finds: the same each time, or computed at each look. */
export type Answer<T> = T | (() => T);

/** What a program does: ends with a code after a while (0 ms without), never ends, or does not start. */
export type Program = { code: number; output?: string; afterMs?: number } | "hangs" | { errno: Errno };

/** One answer after another; the last one stays. */
export function inTurn<T>(...answers: T[]): () => T {
  let turn = 0;
  return () => answers[Math.min(turn++, answers.length - 1)] as T;
}

function currently<T>(answer: Answer<T> | undefined): T | undefined {
  return typeof answer === "function" ? (answer as () => T)() : answer;
}

/** A child that follows its `Program`; it remembers what was sent to it. */
export class HandMadeChild implements Child {
  sent = "";
  inputClosed = false;
  abandoned = false;
  readonly #host: HandMadeHost;
  readonly #program: Exclude<Program, { errno: Errno }>;
  readonly #startedMs: number;

  constructor(host: HandMadeHost, program: Exclude<Program, { errno: Errno }>) {
    this.#host = host;
    this.#program = program;
    this.#startedMs = host.clockMs;
  }

  exitCode(): number | undefined {
    if (this.#program === "hangs") return undefined;
    const endsMs = this.#startedMs + (this.#program.afterMs ?? 0);
    return this.#host.clockMs >= endsMs ? this.#program.code : undefined;
  }

  send(text: string): void {
    this.sent += text;
  }

  sentAll(): boolean {
    return true;
  }

  closeInput(): void {
    this.inputClosed = true;
  }

  output(): string {
    return this.#program === "hangs" ? "" : (this.#program.output ?? "");
  }

  abandon(): void {
    this.abandoned = true;
  }
}

export class HandMadeHost implements Host {
  pid = 400;
  clockMs = 1_000_000;
  root = true;
  terminals: (0 | 1 | 2)[] = [];
  device = 0;
  /** Whether terminals and pipes take what is printed. */
  takesOutput = true;
  /** The signal that has arrived, from `arrivesMs` on. */
  signalArrived = { signal: 0, arrivesMs: 0 };
  /** Whether the terminal could be emptied before the question. */
  emptiesTerminal = true;
  recorder: Answer<Program> = { code: 0, output: "done\n" };
  /** What a program does, by its command line joined by blanks; it ends with 0 where nothing is said. */
  program: (commandLine: string) => Program | undefined = () => undefined;
  /** What the keyboard gives, and from when on; undefined is end of input. */
  keys: { atMs: number; text: string | undefined }[] = [];
  readonly files = new Map<string, Answer<string | Errno>>();
  readonly links = new Map<string, Answer<string | Errno>>();
  readonly directories = new Map<string, Answer<string[] | Errno>>();
  readonly stats = new Map<string, Answer<FileStat | Errno>>();
  readonly variables = new Map<string, string>();
  /** What an open handle says from now on, by the path that it was opened by. */
  readonly handles = new Map<string, Answer<string | Errno>>();
  /** What a write, creation, append or replacement says, by path; success where nothing is said. */
  readonly writeAnswers = new Map<string, Answer<Errno>>();
  readonly writes: { path: string; text: string }[] = [];
  /** Those that reached somebody, by number or by descriptor. */
  readonly signals: { pid: number; signal: number }[] = [];
  /** Why nobody can be held; 0: everybody can who has a status. */
  holdRefusal: Errno = 0;
  /** Descriptors of processes that are held now, with their numbers. */
  readonly held = new Map<number, number>();
  /** Numbers whose processes were reaped since they were held, whoever has them by now. */
  readonly reaped = new Set<number>();
  readonly reads: string[] = [];
  readonly commandLines: string[] = [];
  readonly children: HandMadeChild[] = [];
  readonly ignored: number[] = [];
  readonly printed: Record<Stream, string> = { out: "", err: "", terminal: "" };
  readonly closed: Handle[] = [];
  /** Called at every look at a file, so that a test can change the host between two looks. */
  onRead: (path: string) => void = () => undefined;
  readonly #paths = new Map<number, string>();
  #holds = 0;

  nowMs(): number {
    return this.clockMs;
  }

  wallClockMs(): number {
    return Date.UTC(2026, 0, 2, 3, 4, 5) + this.clockMs;
  }

  readText(path: string, cutAfter = Infinity): string | Errno {
    this.reads.push(path);
    this.onRead(path);
    const text = currently(this.files.get(path)) ?? ENOENT;
    if (typeof text === "number" || text.length <= cutAfter) return text;
    return text.slice(0, text.lastIndexOf("\n", cutAfter) + 1);
  }

  list(path: string): string[] | Errno {
    this.reads.push(path);
    return currently(this.directories.get(path)) ?? ENOENT;
  }

  readLink(path: string): string | Errno {
    return currently(this.links.get(path)) ?? ENOENT;
  }

  lstat(path: string): FileStat | Errno {
    return currently(this.stats.get(path)) ?? ENOENT;
  }

  open(path: string): Handle | Errno {
    const text = currently(this.files.get(path)) ?? ENOENT;
    if (typeof text === "number") return text;
    const handle = { fd: 10 + this.#paths.size };
    this.#paths.set(handle.fd, path);
    return handle;
  }

  readAgain(handle: Handle): string | Errno {
    const path = this.#paths.get(handle.fd) ?? "";
    return currently(this.handles.get(path)) ?? currently(this.files.get(path)) ?? ENOENT;
  }

  hold(pid: number): Handle | Errno {
    if (this.holdRefusal !== 0) return this.holdRefusal;
    const status = this.files.get(`/proc/${pid}/status`);
    if (status === undefined || status === ENOENT) return ESRCH;
    if (typeof status === "string" && !status.includes(`\nTgid:\t${pid}\n`)) return EINVAL;
    const handle = { fd: 1_000 + this.#holds++ };
    this.held.set(handle.fd, pid);
    return handle;
  }

  signalHeld(held: Handle, signal: number): Errno {
    const pid = this.held.get(held.fd) ?? 0;
    return pid === 0 || this.reaped.has(pid) ? ESRCH : this.signal(pid, signal);
  }

  close(handle: Handle): void {
    if (!this.held.delete(handle.fd)) this.closed.push(handle);
  }

  environment(name: string): string | undefined {
    return this.variables.get(name);
  }

  signal(pid: number, signal: number): Errno {
    this.signals.push({ pid, signal });
    return 0;
  }

  write(handle: Handle, text: string): Errno {
    return this.writeFile(this.#paths.get(handle.fd) ?? "", text);
  }

  writeFile(path: string, text: string): Errno {
    this.writes.push({ path, text });
    return currently(this.writeAnswers.get(path)) ?? 0;
  }

  async sleep(ms: number): Promise<void> {
    this.clockMs += ms;
  }

  interruption(): number {
    return this.clockMs >= this.signalArrived.arrivesMs ? this.signalArrived.signal : 0;
  }

  prepare(): void {
    this.clockMs += 0;
  }

  ignoreInterruptions(signals: readonly number[]): void {
    this.ignored.push(...signals);
    // One that has not come yet is ignored when it comes, one that has come is forgotten.
    if (signals.includes(this.signalArrived.signal)) this.signalArrived = { signal: 0, arrivesMs: 0 };
  }

  isRoot(): boolean {
    return this.root;
  }

  makeDirectory(path: string): Errno {
    if (this.directories.has(path)) return EEXIST;
    this.directories.set(path, []);
    return 0;
  }

  createFile(path: string, text: string, _mode?: number): Errno {
    const refused = currently(this.writeAnswers.get(path)) ?? (this.files.has(path) ? EEXIST : 0);
    if (refused === 0) this.files.set(path, text);
    return refused;
  }

  appendFile(path: string, text: string): Errno {
    const refused = currently(this.writeAnswers.get(path)) ?? 0;
    if (refused === 0) this.files.set(path, `${currently(this.files.get(path)) ?? ""}${text}`);
    return refused;
  }

  appendLine(path: string, line: string): Errno {
    const before = String(currently(this.files.get(path)) ?? "");
    return this.appendFile(path, before === "" || before.endsWith("\n") ? line : `\n${line}`);
  }

  replaceFile(path: string, text: string): Errno {
    const refused = currently(this.writeAnswers.get(path)) ?? 0;
    if (refused === 0) this.files.set(path, text);
    return refused;
  }

  remove(path: string): Errno {
    return this.files.delete(path) ? 0 : ENOENT;
  }

  startProgram(argv: string[], _pipes?: { input?: boolean; output?: boolean }): Child | Errno {
    const commandLine = argv.join(" ");
    this.commandLines.push(commandLine);
    return this.#start(this.program(commandLine) ?? { code: 0 });
  }

  startRecorder(): Child | Errno {
    return this.#start(currently<Program>(this.recorder) as Program);
  }

  #start(program: Program): Child | Errno {
    if (typeof program === "object" && "errno" in program) return program.errno;
    const child = new HandMadeChild(this, program);
    this.children.push(child);
    return child;
  }

  isTerminal(descriptor: 0 | 1 | 2): boolean {
    return this.terminals.includes(descriptor);
  }

  terminalDevice(): number {
    return this.device;
  }

  print(stream: Stream, text: string): void {
    this.printed[stream] += text;
  }

  async flush(): Promise<boolean> {
    return this.takesOutput;
  }

  async closeOutput(_limitMs?: number): Promise<boolean> {
    return this.takesOutput;
  }

  discardTyped(): Promise<boolean> {
    if (this.emptiesTerminal) this.keys = this.keys.filter((key) => key.atMs > this.clockMs);
    return Promise.resolve(this.emptiesTerminal);
  }

  typed(): string | undefined {
    const key = this.keys[0];
    if (key === undefined || key.atMs > this.clockMs) return "";
    // End of input stays.
    if (key.text !== undefined) this.keys.shift();
    return key.text;
  }
}
