// SPDX-License-Identifier: Apache-2.0
// Whose turn it is when several stops run in one world: time moves on only when every one of them sleeps.

import type { Timeline } from "./timeline.ts";

interface Sleeper {
  untilUs: number;
  wake: () => void;
}

export class Turns {
  readonly #timeline: Timeline;
  #running = 0;
  #sleepers: Sleeper[] = [];

  constructor(timeline: Timeline) {
    this.#timeline = timeline;
  }

  /** One more stop begins; call it for all of them before the first one runs. */
  enter(): void {
    this.#running++;
  }

  /** A stop has ended or was killed. */
  leave(): void {
    this.#running--;
    this.#wakeFirst();
  }

  sleep(us: number): Promise<void> {
    if (this.#running <= 1) {
      this.#timeline.advance(us);
      return Promise.resolve();
    }
    return new Promise((wake) => {
      this.#sleepers.push({ untilUs: this.#timeline.nowUs + us, wake });
      this.#wakeFirst();
    });
  }

  #wakeFirst(): void {
    if (this.#sleepers.length === 0 || this.#sleepers.length < this.#running) return;
    this.#sleepers.sort((one, other) => one.untilUs - other.untilUs);
    const first = this.#sleepers.shift() as Sleeper;
    this.#timeline.advance(Math.max(0, first.untilUs - this.#timeline.nowUs));
    first.wake();
  }
}
