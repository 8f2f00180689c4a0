// SPDX-License-Identifier: Apache-2.0
// From a plan to a world: furnishes the host, seats its people, lets the account's processes loose, and hands out doors
// for one or two stops.

import {
  type AccountOptions,
  accountUid,
  furnish,
  managerPath,
  ordinaryAccount,
  places,
  slicePath,
} from "./account.ts";
import { changeHands, seatBystander } from "./bystanders.ts";
import { ensureCgroup, findCgroup, removeTree } from "./cgroups.ts";
import { faultsOf } from "./fault-plans.ts";
import { FaultList } from "./faults.ts";
import { letLoose } from "./inhabitants.ts";
import type { EventPlan, WorldPlan } from "./plans.ts";
import type { Process } from "./processes.ts";
import { healthyPrograms, Services } from "./programs.ts";
import { killProcess, setFreeze } from "./signals.ts";
import { detector, type HelperOptions, SimulatedHost } from "./simulated-host.ts";
import { Turns } from "./turns.ts";
import { World } from "./world.ts";

/** A world that is ready for a stop. */
export interface Scene {
  readonly plan: WorldPlan;
  readonly world: World;
  readonly services: Services;
  readonly turns: Turns;
  readonly faults: FaultList;
  /** The first process of each process plan. */
  readonly founders: readonly Process[];
  readonly hosts: SimulatedHost[];
}

export function buildScene(plan: WorldPlan): Scene {
  const world = new World(plan.seed, plan.host);
  const account: AccountOptions = { ...ordinaryAccount, ...plan.account };
  // Whose process has a number of the range as well, the range is not the account's alone.
  if (plan.bystanders?.includes("overlapping-range") === true) account.subordinateRange = "overlapping";
  furnish(world, account);
  seatHost(world);
  for (const bystander of plan.bystanders ?? []) seatBystander(world, bystander);
  if (world.lastPid < world.host.pidMax - 60 && world.host.pidMax < 1_000) world.lastPid = world.host.pidMax - 40;
  if (plan.manager === true) startManager(world);
  const ownRange = account.subordinateRange === "own";
  const founders = plan.processes.map((process, index) => letLoose(world, process, index, ownRange));
  const slice = ensureCgroup(world.root, slicePath);
  const state = plan.slice ?? "ordinary";
  if (state.includes("frozen")) setFreeze(world, slice, true);
  if (state.includes("braked")) slice.maxDescendants = 0;
  world.timeline.advance(world.random.between(1_000, 30_000));
  const faults = new FaultList(faultsOf(plan, founders, world), () => world.random.next());
  const services = new Services(world, { ...healthyPrograms, ...plan.programs });
  const scene: Scene = { plan, world, services, turns: new Turns(world.timeline), faults, founders, hosts: [] };
  for (const event of plan.events ?? []) schedule(scene, event);
  return scene;
}

/** A door for one more stop in this world. */
export function openDoor(scene: Scene, changes: Partial<HelperOptions> = {}): SimulatedHost {
  const { world, plan } = scene;
  const inside = plan.helperInside === true && scene.hosts.length === 0;
  const cgroup = ensureCgroup(world.root, inside ? places.unit : operatorScope);
  const helper = world.spawn(world.init, { owner: "helper", cgroup, comm: "ai-tools-stop", lineage: "helper" });
  if (helper === undefined) throw new Error("no number is free for the helper");
  helper.terminal = (plan.helper?.terminals ?? []).length > 0 ? 34_816 : 0;
  const options = { ...detector, ...plan.helper, ...changes };
  const host = new SimulatedHost(world, scene.services, scene.turns, scene.faults, helper, options);
  scene.hosts.push(host);
  return host;
}

export const operatorScope = "/user.slice/user-1000.slice/session-1.scope";

/** What runs on any host: kernel threads, root's services, the operator, another user, and root acting for nobody. */
function seatHost(world: World): void {
  const seat = (comm: string, path: string, uid: number) =>
    world.spawn(world.init, {
      owner: uid === 0 ? "host" : "bystander",
      cgroup: ensureCgroup(world.root, path),
      uids: [uid, uid, uid, uid],
      comm,
      lineage: `bystander ${comm}`,
    });
  seat("kthreadd", "/", 0);
  seat("systemd-journal", "/system.slice/systemd-journald.service", 0);
  seat("cron", "/system.slice/cron.service", 0);
  seat("bash", operatorScope, 1000);
  seat("vim", "/user.slice/user-1001.slice/session-2.scope", 1001);
}

function startManager(world: World): void {
  const cgroup = ensureCgroup(world.root, `${managerPath}/init.scope`);
  const uids = [accountUid, accountUid, accountUid, accountUid] as const;
  const manager = world.spawn(world.init, { owner: "account", cgroup, uids, comm: "systemd", lineage: "manager" });
  if (manager === undefined) return;
  manager.subreaper = true;
  manager.term = "handler";
  manager.onTerm = () => world.timeline.after(20_000, () => world.die(manager));
  world.spawn(manager, { owner: "account", cgroup, comm: "(sd-pam)", lineage: "manager" });
}

function schedule(scene: Scene, event: EventPlan): void {
  const { world } = scene;
  world.timeline.after(event.atMs * 1000, () => {
    if (event.kind === "slice-removed") removeSlice(scene);
    else if (event.kind === "recycled-pid") recycle(scene);
    else begin(world, event.kind === "new-session" ? places.unit : places.stray);
  });
}

/** A session, or a cron job, that somebody starts while the stop runs. */
function begin(world: World, path: string): void {
  const uids = [accountUid, accountUid, accountUid, accountUid] as const;
  const cgroup = ensureCgroup(world.root, path);
  const process = world.spawn(world.init, {
    owner: "account",
    cgroup,
    uids,
    comm: "newcomer",
    lineage: "newcomer",
    newcomer: true,
  });
  if (process !== undefined) process.term = "ignore";
}

/** PID 1 removes the slice as soon as it is unpopulated; whoever comes next gets a new one of the same name. */
function removeSlice(scene: Scene): void {
  const slice = findCgroup(scene.world.root, slicePath);
  if (slice === undefined) return;
  if (slice.population === 0) removeTree(slice);
  else scene.world.timeline.after(500, () => removeSlice(scene));
}

/**
 * A process of the account ends and its number goes to a bystander at once. Never between a look at the number and what
 * follows that look: on a host where nobody can be held, kill(2) by number has that window of microseconds. What happens
 * in it where they can is the matter of `recycleAtCall`.
 */
function recycle(scene: Scene): void {
  const { world } = scene;
  const victim = scene.founders.find((process) => process.phase === "alive" && !process.stuck);
  if (victim === undefined) return;
  const place = `/proc/${victim.pid}/`;
  if (scene.hosts.some((host) => host.recent.some((path) => path.startsWith(place) || path === String(victim.pid)))) {
    world.timeline.after(150, () => recycle(scene));
    return;
  }
  changeHands(world, victim.pid);
}

/** Ends a process of a plan from outside, for tests. */
export function endFounder(scene: Scene, index: number): void {
  const founder = scene.founders[index];
  if (founder !== undefined) killProcess(scene.world, founder);
}
