// SPDX-License-Identifier: Apache-2.0
// The two modules that QuickJS 2025.04.26 has, as far as the static executables may use them (source: its
// quickjs-libc.c). What must not be used is not declared: `std.loadFile` (empty for every file of procfs and cgroupfs,
// null for every error), `std.open` and its FILE (buffered), `std.popen`, `std.urlGet`, `std.evalScript`,
// `std.loadScript`, `os.sleep` (no signal handler runs in it), `os.Worker`.
//
// What QuickJS does not have: no umask, setpgid, setsid, getuid, getppid, poll, ioctl, fcntl, fsync, chmod, chown, link,
// sockets, setpriority or pidfds (see the module "pidfd" below), no O_NONBLOCK, O_NOFOLLOW, O_NOCTTY, O_CLOEXEC, O_DIRECTORY and no SIGKILL, SIGHUP:
// own numbers. Paths and arguments go through UTF-8 both ways: other bytes come back mangled and do not go out again.
// Descriptors that it opens have no close-on-exec flag, but `os.exec` closes everything above 2 in the child.
// A rejected promise that nobody awaits is silent, and the program then ends with 0: the entry file awaits at top
// level, where an error is printed and the exit code is 1.

/** A call that answers 0 or more on success and a negative errno on failure. */
declare type QuickjsResult = number;

declare module "os" {
  export const O_RDONLY: number;
  export const O_WRONLY: number;
  export const O_RDWR: number;
  export const O_APPEND: number;
  export const O_CREAT: number;
  export const O_EXCL: number;
  export const O_TRUNC: number;
  export const S_IFMT: number;
  export const S_IFIFO: number;
  export const S_IFCHR: number;
  export const S_IFDIR: number;
  export const S_IFBLK: number;
  export const S_IFREG: number;
  export const S_IFSOCK: number;
  export const S_IFLNK: number;
  export const S_ISGID: number;
  export const S_ISUID: number;
  export const WNOHANG: number;
  export const platform: string;

  /** `open(2)`; a descriptor or a negative errno. `mode` is 0o666 when absent, less the process's umask. */
  export function open(path: string, flags: number, mode?: number): QuickjsResult;
  export function close(fd: number): QuickjsResult;
  /** `lseek(2)`; the new offset or a negative errno. A bigint in gives a bigint out. */
  export function seek(fd: number, offset: number, whence: number): number;
  export function seek(fd: number, offset: bigint, whence: number): bigint;
  /** `read(2)` into `buffer` at `offset`; the count of bytes, 0 at end of file, or a negative errno. Throws when it does not fit. */
  export function read(fd: number, buffer: ArrayBuffer, offset: number, length: number): QuickjsResult;
  /** `write(2)` from `buffer`; the count of bytes, which may be short, or a negative errno. */
  export function write(fd: number, buffer: ArrayBuffer, offset: number, length: number): QuickjsResult;
  export function isatty(fd: number): boolean;
  /** Raw mode (signals stay on); the old mode comes back when the process exits, and not before. */
  export function ttySetRaw(fd: number): void;
  /** Columns and rows, null where there are none (or fewer than 4 of either). */
  export function ttyGetWinSize(fd: number): [number, number] | null;
  /** `remove(3)`: a file, or an empty directory. */
  export function remove(path: string): QuickjsResult;
  export function rename(from: string, to: string): QuickjsResult;
  export function symlink(target: string, path: string): QuickjsResult;
  /** Path and errno (positive, 0 for success). Cut off at 4,095 bytes. */
  export function readlink(path: string): [string, number];
  export function realpath(path: string): [string, number];
  export function getcwd(): [string, number];
  export function chdir(path: string): QuickjsResult;
  /** `mode` is 0o777 when absent, less the process's umask. */
  export function mkdir(path: string, mode?: number): QuickjsResult;
  /** Names with `.` and `..`, and errno (positive, 0 for success): what was read before the error is in the list. */
  export function readdir(path: string): [string[], number];
  /** The status and errno (positive, 0 for success); null with an error. */
  export function stat(path: string): [Stat | null, number];
  export function lstat(path: string): [Stat | null, number];
  /** Milliseconds since 1970. */
  export function utimes(path: string, accessedMs: number, modifiedMs: number): QuickjsResult;

  /** Times are milliseconds since 1970. */
  export interface Stat {
    dev: number;
    ino: number;
    mode: number;
    nlink: number;
    uid: number;
    gid: number;
    rdev: number;
    size: number;
    blocks: number;
    atime: number;
    mtime: number;
    ctime: number;
  }

  /** Calls `handler` from the event loop whenever the descriptor is readable (or at its end); null takes it back. select(2): below 1,024. */
  export function setReadHandler(fd: number, handler: (() => void) | null): void;
  export function setWriteHandler(fd: number, handler: (() => void) | null): void;
  /**
   * null: the default action; undefined: ignored; a function: called from the event loop only. Numbers below 64. A
   * number is an argument here, since most names are missing.
   */
  export function signal(signal: number, handler: (() => void) | null | undefined): void;
  /** `kill(2)`. An undefined signal would be sent as 0 and succeed. */
  export function kill(pid: number, signal: number): QuickjsResult;

  /** CLOCK_MONOTONIC in milliseconds, with fractions. */
  export function now(): number;
  export function setTimeout(handler: () => void, delayMs: number): number;
  export function clearTimeout(timer: number): void;
  export function sleepAsync(delayMs: number): Promise<void>;

  export interface ExecOptions {
    /** Wait for the end (default). */
    block?: boolean;
    /** Look for the program in PATH (default); otherwise `execve(2)` as it is. */
    usePath?: boolean;
    /** What is executed, when it is not the first argument. */
    file?: string;
    cwd?: string;
    /** Descriptors for the child's 0, 1 and 2; its own where absent. */
    stdin?: number;
    stdout?: number;
    stderr?: number;
    /** The whole environment; this process's own when absent. */
    env?: Record<string, string>;
    uid?: number;
    gid?: number;
  }
  /**
   * `fork(2)` and `execve(2)`. With `block` the exit code, or -n for a signal n; without it the child's pid. A program
   * that cannot be executed shows as exit code 127. Ignored signals stay ignored in the child.
   * @throws TypeError when the fork fails, without saying why
   */
  export function exec(argv: string[], options?: ExecOptions): number;
  /** `waitpid(2)`: pid (0: still running, negative: errno) and the raw status of wait(2). */
  export function waitpid(pid: number, options: number): [number, number];
  export function getpid(): number;
  /** `[readable, writable]`, null on an error. */
  export function pipe(): [number, number] | null;
  export function dup(fd: number): QuickjsResult;
  export function dup2(fd: number, fd2: number): QuickjsResult;
}

/** Ours, see pidfd.c. */
declare module "pidfd" {
  /** `pidfd_open(2)`; a descriptor that is closed on exec, or a negative errno. */
  export function open(pid: number): QuickjsResult;
  /** `pidfd_send_signal(2)`; 0 or a negative errno. */
  export function signal(fd: number, signal: number): QuickjsResult;
}

declare module "std" {
  export const SEEK_SET: number;
  export const SEEK_CUR: number;
  export const SEEK_END: number;
  /** Ends the process at once through `exit(3)`. */
  export function exit(code: number): never;
  export function gc(): void;
  export function getenv(name: string): string | undefined;
  export function setenv(name: string, value: string): void;
  export function unsetenv(name: string): void;
  export function getenviron(): Record<string, string>;
  /** Text of a positive errno. */
  export function strerror(errno: number): string;
}

/** The program's arguments, its own name first. */
declare const scriptArgs: string[];

/** The version of the product, put in when the executable is built. */
declare const AI_TOOLS_VERSION: string;
