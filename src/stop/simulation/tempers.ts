// SPDX-License-Identifier: Apache-2.0
// How processes of a simulated world behave: polite, deaf, stopped, stuck, hopping, forking, coming back. Each temper takes
// a fresh process and gives it its ways.

import { type Cgroup, ensureCgroup, isFrozen } from "./cgroups.ts";
import { isFree, type Process } from "./processes.ts";
import { release } from "./signals.ts";
import type { World } from "./world.ts";

export type Temper = (world: World, process: Process) => void;

/** Dies from a TERM of default disposition. */
export const obedient: Temper = (_world, process) => {
  process.term = "default";
};

export const deaf: Temper = (_world, process) => {
  process.term = "ignore";
};

/** Its handler starts a program that saves the work, waits for it and then ends: the saver must get no TERM of its own. */
export function polite(saveMs: number): Temper {
  return (world, process) => {
    process.term = "handler";
    process.onTerm = () => {
      const saver = world.fork(process, { comm: "saver" });
      if (saver === undefined) return world.die(process);
      process.onChildDeath = (child) => {
        if (child === saver && isFree(process)) world.timeline.after(200, () => isFree(process) && world.die(process));
      };
      world.timeline.after(saveMs * 1000, () => isFree(saver) && !isFrozen(saver.cgroup) && world.die(saver));
    };
  };
}

/** On TERM it leaves a deaf child behind and ends. */
export const defiant: Temper = (world, process) => {
  process.term = "handler";
  process.onTerm = () => {
    const child = world.fork(process);
    if (child !== undefined) child.term = "ignore";
    world.die(process);
  };
};

/** Stopped by SIGSTOP: TERM stays pending until CONT. */
export const stopped: Temper = (_world, process) => {
  process.letter = "T";
  process.wchan = "do_signal_stop";
};

/** In D; with `forMs` it is let go after a while, without it never. */
export function stuck(forMs?: number): Temper {
  return (world, process) => {
    process.letter = "D";
    process.stuck = true;
    process.wchan = "percpu_rwsem_wait";
    if (forMs !== undefined) world.timeline.after(forMs * 1000, () => release(world, process));
  };
}

/** Waits for a hung FUSE daemon of the account until that connection is aborted. */
export function stuckInFuse(uid: number): Temper {
  return (world, process) => {
    stuck()(world, process);
    process.wchan = "request_wait_answer";
    world.fuse.set(40 + world.fuse.size, { uid, waiting: [process] });
  };
}

/** A vfork parent shows D and is killable all the same. */
export const vforking: Temper = (_world, process) => {
  process.letter = "D";
  process.wchan = "kernel_clone";
};

/** Its main thread has ended, another one lives: `cgroup.kill` passes it by, and it looks like a zombie. */
export const headless: Temper = (world, process) => {
  process.term = "ignore";
  world.leaveOnlyAThread(process);
};

/** A zombie leader whose living thread is in D: what looks dead is alive, and SIGKILL does not change that at once. */
export function headlessAndStuck(forMs?: number): Temper {
  return (world, process) => {
    headless(world, process);
    stuck(forMs)(world, process);
  };
}

/** Forks and exits, a hop each `hopUs`: always a new number, never more than one (or, for an instant, two) alive. */
export function chain(hopUs: number, links: Temper = obedient): Temper {
  return (world, process) => {
    process.comm = "forker";
    const hop = (link: Process) => {
      world.timeline.after(world.random.around(hopUs), () => {
        if (link.phase !== "alive" || link.dying) return;
        if (!isFree(link) || isFrozen(link.cgroup)) return hop(link);
        const next = world.fork(link);
        if (next === undefined) return hop(link);
        links(world, next);
        hop(next);
        world.timeline.after(15, () => world.die(link));
      });
    };
    hop(process);
  };
}

/** Grows to `most` processes and fills every gap, one fork each `everyUs` for all of them together. */
export function storm(most: number, everyUs: number): Temper {
  return (world, founder) => {
    founder.comm = "forker";
    const alive: Process[] = [];
    const admit = (process: Process) => {
      alive.push(process);
      process.onDeath = () => {
        alive[alive.indexOf(process)] = alive.at(-1) as Process;
        alive.pop();
      };
    };
    const grow = () => {
      if (alive.length === 0) return;
      const parent = alive.length < most ? anyFree(world, alive) : undefined;
      const child = parent === undefined ? undefined : world.fork(parent);
      if (child !== undefined) admit(child);
      world.timeline.after(world.random.around(child === undefined ? 20 * everyUs : everyUs), grow);
    };
    admit(founder);
    world.timeline.after(everyUs, grow);
  };
}

/** Some member that can fork now, found from a random one on. */
function anyFree(world: World, alive: readonly Process[]): Process | undefined {
  const from = world.random.between(0, alive.length - 1);
  for (let step = 0; step < alive.length; step++) {
    const process = alive[(from + step) % alive.length] as Process;
    if (isFree(process) && !isFrozen(process.cgroup)) return process;
  }
  return undefined;
}

/** Moves between two cgroups below its own, all the time. */
export function hopping(everyUs: number): Temper {
  return (world, process) => {
    process.term = "ignore";
    const home = process.cgroup;
    const rooms: [Cgroup, Cgroup] = [ensureCgroup(home, "/one"), ensureCgroup(home, "/two")];
    const hop = (to: 0 | 1) => {
      world.timeline.after(world.random.around(everyUs), () => {
        if (process.phase !== "alive" || process.dying) return;
        if (isFree(process) && !isFrozen(process.cgroup) && !rooms[to].removed) world.move(process, rooms[to]);
        hop(to === 0 ? 1 : 0);
      });
    };
    hop(0);
  };
}

/** A manager whose unit is back 4 ms after it died alone (`Restart=always`). */
export function respawning(makeUnit: (manager: Process) => Process | undefined): Temper {
  return (world, manager) => {
    manager.term = "ignore";
    manager.subreaper = true;
    makeUnit(manager);
    manager.onChildDeath = () => {
      const again = () => {
        if (manager.phase !== "alive" || manager.dying) return;
        if (isFrozen(manager.cgroup)) world.timeline.after(4_000, again);
        else makeUnit(manager);
      };
      world.timeline.after(4_000, again);
    };
  };
}

/** Has a dead child that it never reaps: `Z` with one thread, its uids still there, dead all the same. */
export const keepingACorpse: Temper = (world, process) => {
  process.reaps = false;
  process.term = "ignore";
  const child = world.fork(process, { comm: "corpse" });
  if (child !== undefined) world.die(child);
};

/** The init of a pid namespace of the account's own: a TERM of default disposition from outside is ignored. */
export function ownPidNamespace(userNamespace: string): Temper {
  return (_world, process) => {
    process.term = "ignore";
    process.userNamespace = userNamespace;
    process.namespacePids = [process.pid, 1];
  };
}
