// SPDX-License-Identifier: Apache-2.0
// The dice of a simulated world: one small generator per world, so that a seed tells the whole story again.

/** A seeded source of numbers (mulberry32). */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** A number from 0 (included) to 1 (not). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  }

  /** An integer, both ends included. */
  between(low: number, high: number): number {
    return low + Math.floor(this.next() * (high - low + 1));
  }

  /** A duration around `us`, a quarter more or less, so that nothing runs in step with its observer. */
  around(us: number): number {
    return Math.max(1, this.between(Math.floor(us * 0.75), Math.ceil(us * 1.25)));
  }
}
