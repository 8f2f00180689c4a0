// SPDX-License-Identifier: Apache-2.0
// The account's processes of a plan: each temper by its name, with the uids, parents and neighbours that belong to it.

import { accountUid, accountUids, managerPath, type Place, places, recordedUid, subordinateUid } from "./account.ts";
import { ensureCgroup } from "./cgroups.ts";
import type { ProcessPlan, TemperName } from "./plans.ts";
import type { Process, Uids } from "./processes.ts";
import * as tempers from "./tempers.ts";
import type { Birth, World } from "./world.ts";

/**
 * Starts one process of a plan; everything that comes from it has the lineage `INDEX temper`. A subordinate uid that is
 * not the account's alone makes a bystander outside the slice.
 */
export function letLoose(world: World, plan: ProcessPlan, index: number, subordinatesAreOurs: boolean): Process {
  const stranger = plan.temper === "subordinate" && plan.place === "stray" && !subordinatesAreOurs;
  const birth: Birth = {
    owner: stranger ? "bystander" : "account",
    cgroup: placeFor(world, plan.place),
    uids: uidsOf(plan.temper),
    comm: plan.temper === "hostile-name" ? ") R 1 (\nUid:\t0" : `agent-${index}`.slice(0, 15),
    lineage: `${index} ${plan.temper}`,
  };
  const process = world.spawn(parentFor(world, plan, birth), birth);
  if (process === undefined) throw new Error("no number is free for a process of the plan");
  behave(world, process, plan.temper);
  process.cwd = "/srv/project";
  return process;
}

function placeFor(world: World, place: Place) {
  const cgroup = ensureCgroup(world.root, places[place]);
  if (place === "threaded") cgroup.threaded = true;
  return cgroup;
}

function uidsOf(temper: TemperName): Uids {
  const same = (uid: number): Uids => [uid, uid, uid, uid];
  if (temper === "setuid") return [accountUid, 0, 0, 0];
  if (temper === "other-user") return same(1001);
  if (temper === "subordinate") return same(subordinateUid + 7);
  if (temper === "recorded-number") return same(recordedUid);
  return accountUids;
}

/** PID 1 for most; a few tempers are what they are because of their parent. */
function parentFor(world: World, plan: ProcessPlan, birth: Birth): Process | undefined {
  switch (plan.temper) {
    case "corpse-of-another": {
      const parent = bystander(world, "/user.slice/user-1000.slice/session-1.scope", [1000, 1000, 1000, 1000], "tmux");
      if (parent !== undefined) parent.reaps = false;
      return parent;
    }
    case "own-namespace-of-root":
      return bystander(world, "/user.slice/user-0.slice/session-9.scope", [0, 0, 0, 0], "bash");
    case "setuid-sandbox":
      return world.spawn(world.init, { ...birth, comm: "firejail" });
    case "sandbox-made-root": {
      // Wholly root's by now, so nobody's to end; but the kernel keeps who executed it.
      const outer = bystander(world, "/", [0, 0, 0, 0], "sandbox");
      if (outer !== undefined) outer.executedBy = accountUid;
      return outer;
    }
    default:
      return plan.place === "app" ? managerOf(world) : world.init;
  }
}

function managerOf(world: World): Process {
  for (const process of world.processes.values())
    if (process.lineage === "manager" && process.subreaper) return process;
  const cgroup = ensureCgroup(world.root, `${managerPath}/init.scope`);
  const manager = world.spawn(world.init, {
    owner: "account",
    cgroup,
    uids: accountUids,
    comm: "systemd",
    lineage: "manager",
  });
  if (manager === undefined) return world.init;
  manager.subreaper = true;
  return manager;
}

function bystander(world: World, path: string, uids: Uids, comm: string): Process | undefined {
  const cgroup = ensureCgroup(world.root, path);
  return world.spawn(world.init, { owner: "bystander", cgroup, uids, comm, lineage: `bystander ${comm}` });
}

function behave(world: World, process: Process, temper: TemperName): void {
  const act = simple[temper];
  act?.(world, process);
  switch (temper) {
    case "traced-by-operator": {
      const tracer = bystander(
        world,
        "/user.slice/user-1000.slice/session-1.scope",
        [1000, 1000, 1000, 1000],
        "strace",
      );
      if (tracer !== undefined) world.traceExit(tracer, process);
      return;
    }
    case "traced-by-account": {
      const cgroup = ensureCgroup(world.root, places.stray);
      const tracer = world.spawn(world.init, {
        owner: "account",
        cgroup,
        uids: accountUids,
        comm: "tracer",
        lineage: process.lineage,
      });
      if (tracer !== undefined) world.traceExit(tracer, process);
      return;
    }
    case "respawning":
      tempers.respawning((manager) => {
        const cgroup = ensureCgroup(manager.cgroup, "/again.service");
        return cgroup.removed ? undefined : world.fork(manager, { cgroup, comm: "again" });
      })(world, process);
      return;
    case "corpse-of-another":
      world.die(process);
      return;
    default:
      return;
  }
}

const simple: Partial<Record<TemperName, tempers.Temper>> = {
  deaf: tempers.deaf,
  polite: tempers.polite(300),
  "slow-polite": tempers.polite(30_000),
  defiant: tempers.defiant,
  stopped: tempers.stopped,
  stuck: tempers.stuck(),
  "stuck-a-while": tempers.stuck(3_000),
  "stuck-in-fuse": tempers.stuckInFuse(accountUid),
  vforking: tempers.vforking,
  headless: tempers.headless,
  "headless-stuck": tempers.headlessAndStuck(),
  "headless-stuck-a-while": tempers.headlessAndStuck(3_000),
  "headless-chain": tempers.chain(300, tempers.headless),
  chain: tempers.chain(300),
  "slow-chain": tempers.chain(2_000),
  hopping: tempers.hopping(120),
  storm: tempers.storm(60, 24),
  "keeping-a-corpse": tempers.keepingACorpse,
  "own-namespace": tempers.ownPidNamespace("user:[4026532888]"),
  "own-namespace-of-root": tempers.ownPidNamespace("user:[4026532888]"),
  "setuid-sandbox": tempers.ownPidNamespace("user:[4026531837]"),
  "sandbox-made-root": tempers.ownPidNamespace("user:[4026531837]"),
};
