// SPDX-License-Identifier: Apache-2.0
// Whose processes a stop ends: the numbers that belong to the sandbox account and to nobody else, read from files of
// root alone (no name service, no bus). Where the answer would be ambiguous there is none, and the stop refuses.

import { isErrno, type KernelView } from "./kernel.ts";
import { decimal, type PasswdEntry, parsePasswd, parseSubuid, type UidRange } from "./proc-files.ts";

/** Name of the sandbox account. */
export const accountName = "ai-tools";

/** Numbers that root recorded for the account, one in a line; the package and `--run` append to it. */
export const recordedNumbersPath = "/var/lib/ai-tools/uids";

export interface Identity {
  /** The account's uid. */
  uid: number;
  /** That number, and those that root recorded earlier and nobody has now. */
  numbers: ReadonlySet<number>;
  /** Subordinate ranges that count outside the slice too (inside it everything counts). */
  subordinate: readonly UidRange[];
  /** The account's home in passwd. */
  home: string;
  /** What the report says about numbers that do not count outside the slice. */
  notes: readonly string[];
}

/** The account's numbers, or the sentence that says why a stop cannot tell whom to end. */
export function findIdentity(view: KernelView): Identity | string {
  const text = view.readText("/etc/passwd");
  if (isErrno(text)) return `/etc/passwd cannot be read (errno ${text})`;
  const passwd = parsePasswd(text);
  const account = passwd.find((entry) => entry.name === accountName);
  if (account === undefined) return `there is no account ${accountName} in /etc/passwd`;
  if (account.uid === 0) return `the account ${accountName} has uid 0`;
  const sharers = passwd.filter((entry) => entry.uid === account.uid && entry.name !== accountName);
  if (sharers.length > 0) return `the uid ${account.uid} of ${accountName} belongs to another name as well`;
  const ranges = subordinateRanges(view, account, passwd);
  return {
    uid: account.uid,
    numbers: new Set([account.uid, ...recordedNumbers(view, passwd)]),
    subordinate: ranges.counted,
    home: account.home,
    notes: ranges.notes,
  };
}

/** Whether a uid is the account's, or one of its subordinate ones that nobody else could have. */
export function isOfAccount(identity: Identity, uid: number): boolean {
  if (identity.numbers.has(uid)) return true;
  return identity.subordinate.some((range) => uid >= range.from && uid < range.to);
}

function recordedNumbers(view: KernelView, passwd: readonly PasswdEntry[]): number[] {
  const text = view.readText(recordedNumbersPath);
  if (isErrno(text)) return [];
  const others = new Set(passwd.filter((entry) => entry.name !== accountName).map((entry) => entry.uid));
  const recorded = text.split("\n").map((line) => decimal(line.trim()));
  return recorded.filter((uid): uid is number => uid !== undefined && uid !== 0 && !others.has(uid));
}

function subordinateRanges(view: KernelView, account: PasswdEntry, passwd: readonly PasswdEntry[]) {
  const text = view.readText("/etc/subuid");
  const all = isErrno(text) ? [] : parseSubuid(text);
  const own = all.filter((range) => range.owner === account.name || range.owner === String(account.uid));
  const counted: UidRange[] = [];
  const notes: string[] = [];
  for (const range of own) {
    const overlaps = all.some((other) => other !== range && other.from < range.to && range.from < other.to);
    const taken = passwd.some((entry) => entry.uid >= range.from && entry.uid < range.to);
    if (overlaps || taken) {
      notes.push(
        `subordinate uids ${range.from}-${range.to - 1} are shared with others: they count inside the slice only`,
      );
    } else counted.push(range);
  }
  return { counted, notes };
}
