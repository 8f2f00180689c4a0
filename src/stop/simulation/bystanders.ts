// SPDX-License-Identifier: Apache-2.0
// Processes that look like the account's, or get in the way, and must never be signalled.

import { accountUid, accountUids, subordinateUid } from "./account.ts";
import { ensureCgroup } from "./cgroups.ts";
import type { BystanderName } from "./plans.ts";
import type { Process } from "./processes.ts";
import { chain } from "./tempers.ts";
import type { Birth, World } from "./world.ts";

export function seatBystander(world: World, name: BystanderName): void {
  const birth: Birth = { owner: "bystander", cgroup: ensureCgroup(world.root, "/"), lineage: `bystander ${name}` };
  switch (name) {
    case "root-acting":
      world.spawn(world.init, {
        ...birth,
        comm: "smbd",
        cgroup: ensureCgroup(world.root, "/system.slice/smbd.service"),
        uids: [0, accountUid, 0, accountUid],
      });
      return;
    case "container":
      seatContainer(world, birth);
      return;
    case "busy-user": {
      const cgroup = ensureCgroup(world.root, "/user.slice/user-1001.slice/session-2.scope");
      const maker = world.spawn(world.init, { ...birth, cgroup, comm: "make", uids: [1001, 1001, 1001, 1001] });
      if (maker !== undefined) chain(400)(world, maker);
      return;
    }
    case "overlapping-range":
      world.spawn(world.init, {
        ...birth,
        comm: "podman",
        cgroup: ensureCgroup(world.root, "/user.slice/user-1001.slice/session-2.scope"),
        uids: allFour(subordinateUid + 3),
      });
      return;
    case "crowd":
      for (let number = 0; number < 150; number++) {
        world.spawn(world.init, {
          ...birth,
          comm: "worker",
          cgroup: ensureCgroup(world.root, "/system.slice/web.service"),
          uids: [33, 33, 33, 33],
        });
      }
      return;
    case "unreaping-user": {
      const cgroup = ensureCgroup(world.root, "/user.slice/user-1001.slice/session-2.scope");
      const parent = world.spawn(world.init, { ...birth, cgroup, comm: "lazy", uids: [1001, 1001, 1001, 1001] });
      if (parent === undefined) return;
      parent.reaps = false;
      const corpse = world.fork(parent);
      if (corpse !== undefined) world.die(corpse);
    }
  }
}

/**
 * The process with this number ends, is reaped, and another user's has the number at once. Whoever cannot die now, is not
 * the account's, or has no such number keeps what it has.
 */
export function changeHands(world: World, pid: number): Process | undefined {
  const process = world.processes.get(pid);
  if (process === undefined || process.owner !== "account" || process.stuck) return undefined;
  for (const thread of process.threadIds) world.threads.delete(thread);
  process.threadIds = [];
  world.die(process);
  process.phase = "gone";
  process.parent?.children.delete(process);
  world.processes.delete(pid);
  return world.spawn(world.init, {
    owner: "bystander",
    cgroup: ensureCgroup(world.root, "/user.slice/user-1001.slice/session-2.scope"),
    uids: allFour(1001),
    comm: "recycled",
    lineage: "bystander recycled",
    pid,
  });
}

function allFour(uid: number): readonly [number, number, number, number] {
  return [uid, uid, uid, uid];
}

/** An engine's shim of root, and below it a process with the account's number in a pid namespace of its own. */
function seatContainer(world: World, birth: Birth): void {
  const cgroup = ensureCgroup(world.root, "/system.slice/docker-0a1b.scope");
  const engine = ensureCgroup(world.root, "/system.slice/containerd.service");
  const shim = world.spawn(world.init, { ...birth, cgroup: engine, comm: "containerd-shim", uids: [0, 0, 0, 0] });
  if (shim === undefined) return;
  shim.subreaper = true;
  const first = world.spawn(shim, { ...birth, cgroup, comm: "redis-server", uids: accountUids });
  if (first === undefined) return;
  first.namespacePids = [first.pid, 1];
  first.subreaper = true;
  world.spawn(first, { ...birth, cgroup, comm: "redis-worker", uids: accountUids });
}
