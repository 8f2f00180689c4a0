// SPDX-License-Identifier: Apache-2.0
// Reading and writing by descriptor, and the flags of open(2) that QuickJS has no names for. Text is one character per
// byte in both directions, so that no byte is lost or mangled.

import * as os from "os";
import { EAGAIN, EIO, type Errno } from "./kernel.ts";

/** Same value on every architecture of the package (asm-generic/fcntl.h). */
export const O_NOCTTY = 0o400;
export const O_NONBLOCK = 0o4000;
/** 0o400000 in general, 0o100000 on ARM and PowerPC (arch/*\/include/uapi/asm/fcntl.h). */
export const O_NOFOLLOW = isArmOrPowerpc() ? 0o100000 : 0o400000;

const buffer = new ArrayBuffer(65_536);
const bytes = new Uint8Array(buffer);

/** The machine of the running executable: `e_machine`, two bytes at offset 18 of its ELF header. */
function isArmOrPowerpc(): boolean {
  const fd = os.open("/proc/self/exe", os.O_RDONLY);
  if (fd < 0) return false;
  const header = new ArrayBuffer(20);
  os.read(fd, header, 0, 20);
  os.close(fd);
  const machine = new Uint8Array(header)[18];
  // EM_PPC 20, EM_PPC64 21, EM_ARM 40, EM_AARCH64 183
  return machine === 20 || machine === 21 || machine === 40 || machine === 183;
}

/** Path that opens again what a descriptor of this process refers to. */
export function descriptorPath(fd: number): string {
  return `/proc/self/fd/${fd}`;
}

/** Same value on every architecture of the package. */
const O_PATH = 0o10000000;

/**
 * Opens again, without blocking, what a descriptor refers to, and only for what the descriptor itself may do: root may
 * open anything again, and the caller's descriptor may be one that only names a file (O_PATH) or only reads it.
 * undefined where it may not, or where it cannot be opened.
 */
export function reopenWithinItsRights(fd: number, how: "read" | "write"): number | undefined {
  const flags = flagsOf(fd);
  if (flags === undefined || (flags & O_PATH) !== 0) return undefined;
  const access = flags & 3;
  if (access !== os.O_RDWR && access !== (how === "read" ? os.O_RDONLY : os.O_WRONLY)) return undefined;
  const open = (how === "read" ? os.O_RDONLY : os.O_WRONLY) | O_NONBLOCK | O_NOCTTY;
  const reopened = os.open(descriptorPath(fd), open);
  return reopened < 0 ? undefined : reopened;
}

/**
 * What a descriptor refers to, without asking the file itself: its file system may hang, and fstat(2) or isatty(3) with
 * it. The link below /proc/self/fd is the kernel's own word; only what stands in /dev is looked at.
 */
export function kindOf(fd: number): "device" | "pipe" | "other" | "closed" {
  const [link, errno] = os.readlink(descriptorPath(fd));
  if (errno !== 0) return "closed";
  if (link.startsWith("pipe:")) return "pipe";
  if (!link.startsWith("/dev/")) return "other";
  const [stat] = os.stat(descriptorPath(fd));
  return stat !== null && (stat.mode & os.S_IFMT) === os.S_IFCHR ? "device" : "other";
}

/** File status flags and access mode, from `/proc/self/fdinfo/FD` (proc_pid_fdinfo(5)): octal. */
function flagsOf(fd: number): number | undefined {
  const info = os.open(`/proc/self/fdinfo/${fd}`, os.O_RDONLY);
  if (info < 0) return undefined;
  const text = readWhole(info, 4_096);
  close(info);
  const flags = /^flags:\t([0-7]+)$/m.exec(String(text))?.[1];
  return flags === undefined ? undefined : Number.parseInt(flags, 8);
}

/** Closes, whatever it says: there is nothing that a caller could do about it. */
export function close(fd: number): void {
  os.close(fd);
}

/** Bytes of the shared buffer as text. */
function decode(count: number): string {
  let text = "";
  for (let at = 0; at < count; at += 4_096) {
    text += String.fromCharCode.apply(null, bytes.subarray(at, Math.min(count, at + 4_096)) as unknown as number[]);
  }
  return text;
}

/** Reads until end of file; a file that never ends is cut off and told as EIO. */
export function readWhole(fd: number, limitBytes: number): string | Errno {
  let text = "";
  for (;;) {
    const count = os.read(fd, buffer, 0, buffer.byteLength);
    if (count < 0) return -count;
    if (count === 0) return text;
    text += decode(count);
    if (text.length > limitBytes) return EIO;
  }
}

/** Reads whole lines until end of file or until so many bytes are read; what follows is left out. */
export function readLines(fd: number, cutAfterBytes: number): string | Errno {
  let text = "";
  while (text.length < cutAfterBytes) {
    const count = os.read(fd, buffer, 0, buffer.byteLength);
    if (count < 0) return -count;
    if (count === 0) return text;
    text += decode(count);
  }
  return text.slice(0, text.lastIndexOf("\n") + 1);
}

/** Reads what is there now: "" for nothing yet, undefined for end of file or an error. */
export function readAvailable(fd: number): string | undefined {
  const count = os.read(fd, buffer, 0, buffer.byteLength);
  if (count === -EAGAIN) return "";
  return count <= 0 ? undefined : decode(count);
}

/** One byte per character; everything that is written is ASCII. */
export function encode(text: string): ArrayBuffer {
  const out = new Uint8Array(text.length);
  for (let index = 0; index < text.length; index++) out[index] = text.charCodeAt(index);
  return out.buffer;
}

/** Writes all of it in one call; a short write is EIO. */
export function writeWhole(fd: number, data: ArrayBuffer): Errno {
  const count = os.write(fd, data, 0, data.byteLength);
  if (count < 0) return -count;
  return count === data.byteLength ? 0 : EIO;
}

/** A queue of bytes to a descriptor that does not block. */
export class Outgoing {
  #data = new ArrayBuffer(0);
  #at = 0;
  readonly #fd: number;

  constructor(fd: number) {
    this.#fd = fd;
  }

  add(text: string): void {
    const rest = new Uint8Array(this.#data).subarray(this.#at);
    const joined = new Uint8Array(rest.length + text.length);
    joined.set(rest);
    joined.set(new Uint8Array(encode(text)), rest.length);
    this.#data = joined.buffer;
    this.#at = 0;
  }

  /** Writes what is taken now; true when nothing is left. Nobody at the other end means that nothing is left. */
  pump(): boolean {
    while (this.#at < this.#data.byteLength) {
      const count = os.write(this.#fd, this.#data, this.#at, this.#data.byteLength - this.#at);
      if (count === -EAGAIN) return false;
      if (count <= 0) this.drop();
      else this.#at += count;
    }
    return true;
  }

  isEmpty(): boolean {
    return this.#at >= this.#data.byteLength;
  }

  drop(): void {
    this.#data = new ArrayBuffer(0);
    this.#at = 0;
  }
}
