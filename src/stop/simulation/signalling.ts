// SPDX-License-Identifier: Apache-2.0
// The signals of one helper in a simulated world, by number and by descriptor, with whom they hit in truth and who had
// been looked at: the laws compare the two.

import { EBADF, EINVAL, ENOSYS, EPERM, type Errno, ESRCH } from "../kernel.ts";
import { slicePath } from "./account.ts";
import { pathOf } from "./cgroups.ts";
import type { Process } from "./processes.ts";
import { isThere, signalTo } from "./signals.ts";
import type { World } from "./world.ts";

/** A signal that the helper sent, with the process that it hit in truth. */
export interface SentSignal {
  atUs: number;
  pid: number;
  signal: number;
  /** undefined: it hit nobody. */
  target: Process | undefined;
  /** Who had the number when its status was last read. */
  lookedAt: Process | undefined;
  /** The target was in the account's slice, where everything counts. */
  inSlice: boolean;
}

export class Signalling {
  readonly sent: SentSignal[] = [];
  /** How many processes were held at once, at most. */
  mostHeld = 0;
  /** The number that was held, looked at or signalled last. */
  lastNumber = 0;
  readonly #world: World;
  readonly #held = new Map<number, Process>();
  readonly #lookedAt = new Map<number, Process>();

  constructor(world: World) {
    this.#world = world;
  }

  /** How many processes are held now. */
  get heldNow(): number {
    return this.#held.size;
  }

  /** The number of a process that is held, for faults. */
  numberOf(fd: number): number {
    return this.#held.get(fd)?.pid ?? 0;
  }

  /** The status of whoever has this number is read. */
  look(pid: number): void {
    const process = this.#world.lookUp(pid);
    this.lastNumber = pid;
    if (process !== undefined) this.#lookedAt.set(process.pid, process);
  }

  /** `pidfd_open(2)`: 0, or why not. */
  hold(pid: number, fd: number): Errno {
    this.lastNumber = pid;
    if (!this.#world.host.pidfds) return ENOSYS;
    const process = this.#world.lookUp(pid);
    if (process === undefined || !isThere(process)) return ESRCH;
    if (process.pid !== pid) return EINVAL;
    this.#held.set(fd, process);
    this.mostHeld = Math.max(this.mostHeld, this.#held.size);
    return 0;
  }

  release(fd: number): void {
    this.#held.delete(fd);
  }

  /** `pidfd_send_signal(2)`. */
  byDescriptor(fd: number, signal: number): Errno {
    const process = this.#held.get(fd);
    return process === undefined ? EBADF : this.#send(process, process.pid, signal);
  }

  /** `kill(2)`. */
  byNumber(pid: number, signal: number): Errno {
    if (!Number.isInteger(pid) || pid <= 1) return EPERM;
    return this.#send(this.#world.lookUp(pid), pid, signal);
  }

  #send(process: Process | undefined, pid: number, signal: number): Errno {
    this.lastNumber = pid;
    const target = process !== undefined && isThere(process) ? process : undefined;
    const inSlice = target !== undefined && `${pathOf(target.cgroup)}/`.startsWith(`${slicePath}/`);
    const lookedAt = this.#lookedAt.get(target?.pid ?? pid);
    this.sent.push({ atUs: this.#world.timeline.nowUs, pid, signal, target, lookedAt, inSlice });
    return signalTo(this.#world, target, signal);
  }
}
