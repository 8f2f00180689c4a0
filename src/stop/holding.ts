// SPDX-License-Identifier: Apache-2.0
// Whom a signal reaches. A number is whoever's who has it now, and that may be somebody else than was looked at. A process
// that is held by a descriptor from before it is looked at stays the one that was looked at.

import { EINVAL, ENOENT, type Errno, ESRCH, type Handle, isErrno, type Kernel, type KernelView } from "./kernel.ts";

/** A process that was held before anything of it was read. Whoever holds it releases it. */
export interface Held {
  readonly pid: number;
  /** undefined where the kernel lets nobody be held (see `KernelView.hold`): signals go by number there. */
  readonly handle: Handle | undefined;
}

/** Holds the process that has this number now; undefined where nobody has it, or a thread of another process. */
export function hold(view: KernelView, pid: number): Held | undefined {
  const answer = view.hold(pid);
  if (!isErrno(answer)) return { pid, handle: answer };
  return answer === ESRCH || answer === EINVAL || answer === ENOENT ? undefined : { pid, handle: undefined };
}

export function release(view: KernelView, held: Held | undefined): void {
  if (held?.handle !== undefined) view.close(held.handle);
}

/** A signal to the process that is held, and to nobody who has its number by now; ESRCH when it is gone. */
export function signalHeld(kernel: Kernel, { pid, handle }: Held, signal: number): Errno {
  return handle === undefined ? kernel.signal(pid, signal) : kernel.signalHeld(handle, signal);
}
