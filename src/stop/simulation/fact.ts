// SPDX-License-Identifier: Apache-2.0
// The form of a kernel fact, and the bench that the simulator's side is checked on: a small world with a door.

import type { Errno } from "../kernel.ts";
import { accountUids } from "./account.ts";
import { buildScene, openDoor } from "./build-world.ts";
import { type Cgroup, ensureCgroup } from "./cgroups.ts";
import type { WorldPlan } from "./plans.ts";
import type { Process } from "./processes.ts";
import type { SimulatedHost } from "./simulated-host.ts";
import type { World } from "./world.ts";

export interface KernelFact {
  /** The same in both lists; words joined by hyphens. */
  name: string;
  /** One sentence that is true of the kernel. */
  statement: string;
  /** Where it comes from: a manual page, the kernel's documentation or source, or a measurement. */
  source: string;
  /** Throws where the simulator does not have it so. */
  check(bench: Bench): void;
}

/** A world with an empty cgroup `/bench` to try things in. */
export class Bench {
  readonly world: World;
  readonly door: SimulatedHost;
  readonly cgroup: Cgroup;
  readonly path = "/sys/fs/cgroup/bench";

  constructor(plan: Partial<WorldPlan> = {}) {
    const scene = buildScene({ seed: 1, processes: [], ...plan });
    this.world = scene.world;
    this.door = openDoor(scene);
    this.cgroup = ensureCgroup(this.world.root, "/bench");
  }

  /** A process of the account in the bench's cgroup or in one below it. */
  spawn(below = ""): Process {
    const cgroup = ensureCgroup(this.cgroup, below);
    const process = this.world.spawn(this.world.init, { owner: "account", cgroup, uids: accountUids, comm: "payload" });
    if (process === undefined) throw new Error("no number is free");
    return process;
  }

  /** Lets simulated milliseconds pass. */
  wait(ms: number): void {
    this.world.timeline.advance(ms * 1000);
  }

  read(path: string): string {
    const text = this.door.readText(path);
    if (typeof text === "number") throw new Error(`${path} answers errno ${text}`);
    return text;
  }

  events(): string {
    return this.read(`${this.path}/cgroup.events`);
  }

  write(file: string, text: string): Errno {
    return this.door.writeFile(`${this.path}/${file}`, text);
  }

  status(process: Process): string {
    return this.read(`/proc/${process.pid}/status`);
  }
}

/** Throws with `what` unless it is so. */
export function expectThat(isSo: boolean, what: string): void {
  if (!isSo) throw new Error(`not so: ${what}`);
}
