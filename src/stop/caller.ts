// SPDX-License-Identifier: Apache-2.0
// Who asked for the stop, for the trail only. sudo's two variables count where they agree with each other and with the
// audit login uid; a stale SUDO_USER in a root shell does not.

import { isErrno, type KernelView } from "./kernel.ts";
import { printable } from "./printable.ts";
import { decimal, parsePasswd } from "./proc-files.ts";

export interface Caller {
  name: string;
  uid: number;
  /** What was claimed and not believed, in words; undefined when nothing was. */
  rejected: string | undefined;
}

/** `/proc/self/loginuid` of a process that no login started. */
const noLogin = 4_294_967_295;

/** The caller as far as root's own facts bear it out; root itself otherwise, also where an error of our own comes in. */
export function findCaller(view: KernelView): Caller {
  try {
    return believedCaller(view);
  } catch (error) {
    return { name: "root", uid: 0, rejected: `an error of our own: ${printable(String(error))}` };
  }
}

function believedCaller(view: KernelView): Caller {
  const claimedUid = view.environment("SUDO_UID");
  const claimedName = view.environment("SUDO_USER");
  if (claimedUid === undefined && claimedName === undefined) return { name: "root", uid: 0, rejected: undefined };
  const uid = decimal(claimedUid);
  const loginuid = loginUid(view);
  const known = namesOf(view, uid);
  const agree = claimedName !== undefined && (known.length > 0 ? known.includes(claimedName) : loginuid !== undefined);
  if (uid !== undefined && agree && (loginuid === undefined || loginuid === uid)) {
    return { name: printable(claimedName ?? ""), uid, rejected: undefined };
  }
  const login = loginuid === undefined ? "no login uid" : `login uid ${loginuid}`;
  const claim = `SUDO_USER=${claimedName ?? "(unset)"} SUDO_UID=${claimedUid ?? "(unset)"}, ${login}`;
  return { name: "root", uid: 0, rejected: printable(claim) };
}

function loginUid(view: KernelView): number | undefined {
  const text = view.readText("/proc/self/loginuid");
  const uid = isErrno(text) ? undefined : decimal(text.trim());
  return uid === noLogin ? undefined : uid;
}

function namesOf(view: KernelView, uid: number | undefined): string[] {
  const text = view.readText("/etc/passwd");
  if (isErrno(text) || uid === undefined) return [];
  return parsePasswd(text)
    .filter((entry) => entry.uid === uid)
    .map((entry) => entry.name);
}
