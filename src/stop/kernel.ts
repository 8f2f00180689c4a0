// SPDX-License-Identifier: Apache-2.0
// The one door to the world. `KernelView` only looks, `Kernel` also acts on processes and cgroups, and `Host` adds what
// a stop needs around the kill (children, records, the operator's terminal). Everything else in this folder receives
// one of these as an argument, so that the same code runs on a real Linux and in the simulation.

/** A positive error number of Linux (`errno(3)`), 0 for success. */
export type Errno = number;

export const EPERM = 1;
export const ENOENT = 2;
export const ESRCH = 3;
export const EINTR = 4;
export const EIO = 5;
export const ENXIO = 6;
export const EBADF = 9;
export const EAGAIN = 11;
export const EACCES = 13;
export const EBUSY = 16;
export const EEXIST = 17;
export const ENODEV = 19;
export const EINVAL = 22;
export const EMFILE = 24;
export const EROFS = 30;
export const ENAMETOOLONG = 36;
export const ENOSYS = 38;
export const EOPNOTSUPP = 95;

/** Signal numbers of Linux on every architecture that the package is built for. QuickJS has no name for most of them. */
export const SIGHUP = 1;
export const SIGINT = 2;
export const SIGQUIT = 3;
export const SIGUSR1 = 10;
export const SIGKILL = 9;
export const SIGUSR2 = 12;
export const SIGPIPE = 13;
export const SIGALRM = 14;
export const SIGTERM = 15;
export const SIGCHLD = 17;
export const SIGCONT = 18;
export const SIGSTOP = 19;
export const SIGTSTP = 20;
export const SIGTTIN = 21;
export const SIGTTOU = 22;
export const SIGXCPU = 24;
export const SIGXFSZ = 25;
export const SIGVTALRM = 26;
export const SIGPROF = 27;

/** Whether a look came back as an error instead of a value. */
export function isErrno(answer: unknown): answer is Errno {
  return typeof answer === "number";
}

/** What `lstat(2)` says, as far as a stop needs it. */
export interface FileStat {
  kind: "file" | "directory" | "link" | "other";
  /** Permission bits, e.g. 0o755. */
  mode: number;
  uid: number;
  nlink: number;
  /** Device number of a device node (`st_rdev`), 0 elsewhere. */
  rdev: number;
  /** Bytes; 0 for every file of procfs and cgroupfs, whatever they hold. */
  size: number;
}

/**
 * An open file of procfs or cgroupfs that is read or written again and again, which stays with the cgroup it was opened
 * on; or a process that is held.
 */
export interface Handle {
  readonly fd: number;
}

/** Questions only: none of these changes anything on the host. */
export interface KernelView {
  /** This process. */
  readonly pid: number;
  /** Monotonic milliseconds; nothing that anybody does to the wall clock moves it. */
  nowMs(): number;
  /** The wall clock, milliseconds since 1970, for records only. */
  wallClockMs(): number;
  /**
   * The whole text of a file, one character per byte (so that no byte is lost or mangled). Read until end of file,
   * since the files of procfs and cgroupfs have size 0. `cutAfter`: of a file whose length others decide only the whole
   * lines of so many bytes; without it such a file is EIO.
   */
  readText(path: string, cutAfter?: number): string | Errno;
  /** The names in a directory, without `.` and `..`, in no order. A name that is not UTF-8 does not open again. */
  list(path: string): string[] | Errno;
  readLink(path: string): string | Errno;
  lstat(path: string): FileStat | Errno;
  open(path: string, how: "read" | "write"): Handle | Errno;
  /** Reads an open file from its beginning. ENODEV: the cgroup that it belongs to is gone. */
  readAgain(handle: Handle): string | Errno;
  /**
   * Holds the process with this number, whoever gets the number later (`pidfd_open(2)`). ESRCH: nobody has it. EINVAL or,
   * on newer kernels, ENOENT: it is a thread's. Anything else: the kernel holds nobody (ENOSYS before 5.3, and where a
   * filter of system calls could end the caller for asking), or not now (EMFILE).
   */
  hold(pid: number): Handle | Errno;
  close(handle: Handle): void;
  /** A variable of the environment; only sudo's two are ever asked for. */
  environment(name: string): string | undefined;
}

/** Acts of the kill path: signals, cgroup files, waiting. */
export interface Kernel extends KernelView {
  /** `kill(2)`. 0 is success, which proves nothing about death. */
  signal(pid: number, signal: number): Errno;
  /** `pidfd_send_signal(2)` to a process that is held; ESRCH once it has been reaped, whoever has its number by then. */
  signalHeld(held: Handle, signal: number): Errno;
  /** Writes to an open cgroup file; a short write is EIO. */
  write(handle: Handle, text: string): Errno;
  /** Opens an existing file write-only (no create, no link followed at the end), writes, closes. */
  writeFile(path: string, text: string): Errno;
  /** Lets time pass. The only place where signal handlers run. */
  sleep(ms: number): Promise<void>;
  /** The first of SIGINT and SIGTERM that has arrived since `prepare`, or 0. */
  interruption(): number;
}

/** A program that runs beside the stop and can hang without holding it up. */
export interface Child {
  /** undefined while it runs, then its exit code, or 128+n for a signal n. */
  exitCode(): number | undefined;
  /** Writes to its standard input without waiting; what does not fit now is written by later calls. */
  send(text: string): void;
  /** Whether all that was sent is through. */
  sentAll(): boolean;
  /** Closes its standard input once all that was sent is through, or at once with `drop`. */
  closeInput(drop?: boolean): void;
  /** What it has written to the pipes that the helper reads (standard output and error together). */
  output(): string;
  /** SIGKILL to it alone, for a child that outlived its limit, and no more waiting for it. */
  abandon(): void;
}

/** Standard output, standard error, and the terminal at descriptor 0 (for a question while standard output is redirected). */
export type Stream = "out" | "err" | "terminal";

/** What a stop needs around the kill: records, children, the operator's terminal. Nothing here decides anything. */
export interface Host extends Kernel {
  /**
   * Steps of preparation that cannot fail the run: descriptors, directory, signals, out-of-memory score. The umask
   * stays the caller's (there is no call for it): every file is made with a mode of its own.
   */
  prepare(): void;
  /** These no longer interrupt, and one that came already is forgotten: somebody else at the terminal could send them. */
  ignoreInterruptions(signals: readonly number[]): void;
  /** Real and effective uid are 0. */
  isRoot(): boolean;
  makeDirectory(path: string, mode: number): Errno;
  /** A new file, never through a link; EEXIST when there is one. */
  createFile(path: string, text: string, mode: number): Errno;
  /** Appends to a regular file of root (made when absent); never through a link, never to a FIFO or device. */
  appendFile(path: string, text: string, mode: number): Errno;
  /** The same for a text that begins a line: where the file's last line has no end, that is written first. */
  appendLine(path: string, line: string, mode: number): Errno;
  /** Replaces `path` by a new file in one step (written beside it, then renamed). */
  replaceFile(path: string, text: string, mode: number): Errno;
  /** Removes a file or an empty directory. 0 for exactly one of several callers. */
  remove(path: string): Errno;
  /**
   * Starts a program by its absolute path with a fixed environment, `/dev/null` as standard input unless `input`, and
   * pipes as output only with `output`; else `/dev/null` as well.
   */
  startProgram(argv: string[], pipes: { input?: boolean; output?: boolean }): Child | Errno;
  /** Starts this very executable as the recorder (`recorder.ts`). */
  startRecorder(): Child | Errno;
  isTerminal(descriptor: 0 | 1 | 2): boolean;
  /** Device number of the terminal at descriptor 0, or 0. */
  terminalDevice(): number;
  /** Takes text for the operator without ever blocking; `flush` says whether it got there. */
  print(stream: Stream, text: string): void;
  /** Waits until what was printed is taken, at most so long; what is left after that is dropped. true: all was taken. */
  flush(limitMs: number): Promise<boolean>;
  /** The last `flush`: also waits, within the limit, until what goes through a child has arrived. */
  closeOutput(limitMs: number): Promise<boolean>;
  /** Throws away what was typed before the question, whole lines or not; false when that did not come to its end. */
  discardTyped(): Promise<boolean>;
  /** What was typed since: text, "" for nothing yet, undefined for end of input or an unreadable terminal. */
  typed(): string | undefined;
}
