// SPDX-License-Identifier: Apache-2.0
// The records that root keeps, one JSON object in a file each. A record that cannot be read or does not have its form is
// told apart from one that is not there: unknown is never taken for absent.

import { ENOENT, type Errno, isErrno, type KernelView } from "../stop/kernel.ts";
import type { Ground } from "./ground.ts";

/** Somebody from passwd. */
export interface Person {
  name: string;
  uid: number;
  gid: number;
}

/** A project in which the account may work: who asked for it, when, and which directory it was then. */
export interface Claim {
  path: string;
  device: number;
  inode: number;
  operator: Person;
  /** ISO 8601. */
  since: string;
}

/** A session that was started, and how it ended. Removed when it ended by itself and its files were handed back. */
export interface SessionRecord {
  /** `ai-tools-<entrypoint>-<pid>.service`. */
  unit: string;
  entryPoint: string;
  /** Path of the claimed project; the session's directory may be below it. */
  project: string;
  device: number;
  inode: number;
  directory: string;
  operator: Person;
  /** ISO 8601. */
  since: string;
  /** `/proc/sys/kernel/random/boot_id` when it began: a session of an earlier boot does not run. */
  boot: string;
  /** The counter of stops when it began: whether a stop ran since. */
  stops: number;
  /** Whether its handback goes into `.git`: a session before it in this project did not end by itself. */
  withGit: boolean;
  /** Absent while it runs, or where nobody could tell. */
  ended?: {
    at: string;
    /** In words, e.g. "ended with 3", "killed by signal 9", "ended while a stop ran". */
    how: string;
    /** It ended by itself: the clean-exit marker. */
    clean: boolean;
  };
}

/** New sessions are refused until it is lifted. */
export interface Hold {
  operator: string;
  since: string;
  reason: string;
}

/** The record at a path; undefined when there is none; EINVAL-like text of an errno or "not a record" otherwise. */
export function readRecord<T>(view: KernelView, path: string, isRecord: (value: unknown) => value is T) {
  const text = view.readText(path);
  if (text === ENOENT) return undefined;
  if (isErrno(text)) return `${path} cannot be read (errno ${text})`;
  const value = parseJson(decodeUtf8(text));
  return isRecord(value) ? value : `${path} is not a record of ai-tools`;
}

/** Makes or replaces the record in one step: whole, or (with an errno) as it was before. */
export function writeRecord(ground: Ground, path: string, record: object): Errno {
  return replaceWhole(ground, path, `${encodeUtf8(JSON.stringify(record))}\n`);
}

/** The same for any text that everybody may read: where it does not get there, nothing is left beside it either. */
export function replaceWhole(ground: Ground, path: string, text: string): Errno {
  const errno = ground.replaceFile(path, text, 0o644);
  // A full disk, or the caller's limit of file sizes, leaves a torn one under the name that it was written under.
  if (errno !== 0) ground.remove(`${path}.${ground.pid}.new`);
  return errno;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Not JSON, and so no record of anything.
    return undefined;
  }
}

/** One character per byte, as the door takes and gives texts. */
export function encodeUtf8(text: string): string {
  return unescapeBytes(encodeURIComponent(text));
}

/** The text of bytes, one character each; bytes that are no UTF-8 stay as they are. */
export function decodeUtf8(bytes: string): string {
  try {
    return decodeURIComponent(escapeBytes(bytes));
  } catch {
    // No UTF-8: a record of ours always is.
    return bytes;
  }
}

function unescapeBytes(text: string): string {
  return text.replace(/%([0-9A-F]{2})/g, (_all, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)));
}

function escapeBytes(bytes: string): string {
  return bytes.replace(/[^A-Za-z0-9]/g, (byte) => `%${byte.charCodeAt(0).toString(16).padStart(2, "0")}`);
}
