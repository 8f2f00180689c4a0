// SPDX-License-Identifier: Apache-2.0
// Simulated time: what the processes of a world will do, and when. Time passes only because somebody uses it; no real
// clock is ever asked.

interface Appointment {
  atUs: number;
  order: number;
  act: () => void;
}

/** Appointments that one world may keep, so that a world which never settles fails instead of hanging a test. */
const mostAppointments = 4_000_000;

/** Microseconds since the world began, and a queue of what happens next. */
export class Timeline {
  nowUs = 0;
  #order = 0;
  readonly #heap: Appointment[] = [];

  /** Lets `act` happen `delayUs` from now; equal times keep the order in which they were asked for. */
  after(delayUs: number, act: () => void): void {
    this.#order++;
    if (this.#order > mostAppointments)
      throw new Error("this world keeps too many appointments: a temper never settles");
    this.#push({ atUs: this.nowUs + Math.max(0, delayUs), order: this.#order, act });
  }

  /** Lets time pass and everything that is due in it happen. */
  advance(us: number): void {
    const until = this.nowUs + us;
    for (let first = this.#heap[0]; first !== undefined && first.atUs <= until; first = this.#heap[0]) {
      this.#pop();
      if (first.atUs > this.nowUs) this.nowUs = first.atUs;
      first.act();
    }
    if (until > this.nowUs) this.nowUs = until;
  }

  #push(entry: Appointment): void {
    const heap = this.#heap;
    let index = heap.length;
    heap.push(entry);
    while (index > 0) {
      const above = (index - 1) >> 1;
      const parent = heap[above] as Appointment;
      if (sooner(parent, entry)) break;
      heap[index] = parent;
      index = above;
    }
    heap[index] = entry;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let index = 0;
    for (;;) {
      let below = 2 * index + 1;
      if (below >= heap.length) break;
      if (below + 1 < heap.length && sooner(heap[below + 1] as Appointment, heap[below] as Appointment)) below++;
      if (sooner(last, heap[below] as Appointment)) break;
      heap[index] = heap[below] as Appointment;
      index = below;
    }
    heap[index] = last;
  }
}

function sooner(one: Appointment, other: Appointment): boolean {
  return one.atUs < other.atUs || (one.atUs === other.atUs && one.order < other.order);
}
