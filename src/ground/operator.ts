// SPDX-License-Identifier: Apache-2.0
// Who asks a root helper for something: an operator through sudo, known to passwd, or root itself. The environment's two
// variables of sudo count only as far as root's own facts bear them out (../stop/caller.ts).

import { findCaller } from "../stop/caller.ts";
import { accountName } from "../stop/identity.ts";
import { isErrno, type KernelView } from "../stop/kernel.ts";
import { printable } from "../stop/printable.ts";
import { decimal, parsePasswd } from "../stop/proc-files.ts";
import { decodeUtf8, type Person } from "./records.ts";

/** Somebody from passwd, and where their files are. */
export interface Operator {
  person: Person;
  /** As in passwd, decoded: to be used as a path. */
  home: string;
}

/** The operator who called through sudo, or a sentence (without a full stop) that says why there is none. */
export function operatorOf(view: KernelView): Operator | string {
  const caller = findCaller(view);
  if (caller.rejected !== undefined) return `it cannot be told who asks (${caller.rejected})`;
  if (caller.uid === 0) return "root itself asks: an operator does this, through sudo";
  const passwd = readPasswd(view);
  if (typeof passwd === "string") return passwd;
  const known = passwd.filter((entry) => entry.person.uid === caller.uid);
  if (known.some((entry) => entry.person.name === accountName)) return `${accountName} itself asks: it is no operator`;
  const operator = known.find((entry) => printable(entry.person.name) === caller.name);
  return operator ?? `${caller.name} (uid ${caller.uid}) is not in /etc/passwd`;
}

/** Whether root itself asks, not through sudo. false where that cannot be told. */
export function isAskedByRoot(view: KernelView): boolean {
  const caller = findCaller(view);
  return caller.uid === 0 && caller.rejected === undefined;
}

/** Whoever passwd has for a uid (its first name), undefined for nobody, or a sentence that passwd cannot be read. */
export function findPerson(view: KernelView, uid: number): Operator | undefined | string {
  const passwd = readPasswd(view);
  return typeof passwd === "string" ? passwd : passwd.find((entry) => entry.person.uid === uid);
}

/** Everybody in passwd, in its order. Lines without plain numbers as uid and gid are left out. */
export function readPasswd(view: KernelView): Operator[] | string {
  const text = view.readText("/etc/passwd");
  if (isErrno(text)) return `/etc/passwd cannot be read (errno ${text})`;
  return text.split("\n").flatMap((line) => {
    const [entry] = parsePasswd(line);
    // A gid is all that the stop has no use for.
    const gid = decimal(line.split(":")[3]);
    if (entry === undefined || gid === undefined) return [];
    const { name, uid, home } = entry;
    return [{ person: { name, uid, gid }, home: decodeUtf8(home) }];
  });
}
