// SPDX-License-Identifier: Apache-2.0
// The laws of a stop, judged by the world's own truth and never by what the helper saw: what exit 0 means, who must be
// named, who must never be signalled, how long a run may take, and what a helper killed half-way may leave behind.

import { type Host, SIGTERM } from "../kernel.ts";
import { slicePath } from "./account.ts";
import { buildScene, openDoor, type Scene } from "./build-world.ts";
import { findCgroup, isBelow, membersBelow } from "./cgroups.ts";
import { permitsSuccess, plainRequest, type RequestPlan, type WorldPlan } from "./plans.ts";
import type { Process } from "./processes.ts";
import { kill } from "./signals.ts";
import { type HelperOptions, KilledHere, type SimulatedHost } from "./simulated-host.ts";

/** The story under test: `stopSessions`, or a variant of it that is meant to be caught. */
export type Story = (host: Host, request: RequestPlan) => Promise<number>;

/** Seconds that a run may take, without the question (60 s). */
const limitS = 40;
const questionS = 60;
/** A newcomer from outside that started this shortly before the last look is nobody's fault. */
const unseenUs = 80_000;

/** What one run did and said. */
export interface Outcome {
  /** undefined: the helper was killed, or threw. */
  code: number | undefined;
  thrown: unknown;
  host: SimulatedHost;
  tookS: number;
}

/** A broken law: which one, and what was seen. */
export interface Breach {
  law: string;
  seen: string;
}

/** Runs the story once in a scene. A helper that is killed executes nothing more, whatever its code would have done. */
export async function run(scene: Scene, story: Story, changes: Partial<HelperOptions> = {}): Promise<Outcome> {
  const host = openDoor(scene, changes);
  scene.turns.enter();
  return runAt(scene, story, host);
}

async function runAt(scene: Scene, story: Story, host: SimulatedHost): Promise<Outcome> {
  const begunUs = scene.world.timeline.nowUs;
  let code: number | undefined;
  let thrown: unknown;
  try {
    code = await story(host, { ...plainRequest, ...scene.plan.request });
  } catch (error) {
    thrown = error;
  }
  scene.turns.leave();
  // A killed helper's code may have swallowed the exception that ended it; what it returned then was never said.
  if (host.endedBy !== undefined) code = undefined;
  const tookS = (scene.world.timeline.nowUs - begunUs) / 1_000_000;
  if (host.helper.phase === "alive") scene.world.die(host.helper);
  return { code, thrown: host.endedBy ?? thrown, host, tookS };
}

/** Runs the story in a plan's world, twice at once where the plan says so, and judges it. */
export async function judgePlan(
  plan: WorldPlan,
  story: Story,
): Promise<{ breaches: Breach[]; outcome: Outcome; scene: Scene }> {
  const scene = buildScene(plan);
  const before = fingerprint(scene);
  if (plan.second !== true) {
    const outcome = await run(scene, story);
    return { breaches: judge(scene, outcome, before), outcome, scene };
  }
  const hosts = [openDoor(scene), openDoor(scene)] as const;
  for (const _ of hosts) scene.turns.enter();
  const judged = await Promise.all(
    hosts.map(async (host) => {
      const outcome = await runAt(scene, story, host);
      return { outcome, breaches: judge(scene, outcome, before) };
    }),
  );
  const breaches = judged.flatMap((one) => one.breaches);
  return { breaches, outcome: (judged[0] as (typeof judged)[0]).outcome, scene };
}

/** All the laws over one run that came to its end. */
export function judge(scene: Scene, outcome: Outcome, before: string): Breach[] {
  const breaches: Breach[] = [];
  const broken = (law: string, seen: string) => breaches.push({ law, seen });
  const { code, host } = outcome;
  if (code === undefined) {
    broken(
      "every run comes to its end",
      String(outcome.thrown instanceof Error ? outcome.thrown.stack : outcome.thrown),
    );
    return breaches;
  }
  const alive = aliveOfAccount(scene, host.lastLookUs);
  if (code === 0 && !isDryRun(scene) && alive.length > 0)
    broken("exit 0 implies that nothing of the account is alive", describe(alive));
  if (code === 1) {
    const unnamed = alive.filter((process) => !isNamed(process, scene, host));
    if (unnamed.length > 0) broken("whatever is alive is named", describe(unnamed));
  }
  const hit = bystandersHit(host);
  if (hit.length > 0) broken("no bystander is ever signalled", hit.join("; "));
  const astray = signalsAstray(scene, host);
  if (astray.length > 0) broken("a signal reaches whoever was looked at, or nobody", astray.join("; "));
  if (host.signalling.heldNow > 0 || host.signalling.mostHeld > 1)
    broken("one process is held at a time", `${host.signalling.heldNow} now, ${host.signalling.mostHeld} at once`);
  if (outcome.tookS > longestS(scene)) broken("every run ends within its limits", `${outcome.tookS} s`);
  if (mayNotTouch(scene, code) && wasTouched(host)) broken("nothing is touched without consent", describeTouch(host));
  if (code !== 0 && isOwed(scene, code))
    broken("what can be ended is ended", `exit ${code}: ${host.printed.out}${host.printed.err}`);
  const saver = saversAsked(host);
  if (saver.length > 0) broken("newcomers of the grace get no TERM", describe(saver));
  if (code === 0 && !isDryRun(scene) && isHindered(scene))
    broken("a slice that was found frozen or braked is free", slicePath);
  breaches.push(...leftovers(scene, outcome, before));
  return breaches;
}

/** No session could start in it, or would run. Nobody can mend that on a read-only hierarchy. */
function isHindered({ world }: Scene): boolean {
  const slice = findCgroup(world.root, slicePath);
  return !world.host.readOnlyCgroups && slice !== undefined && (slice.freeze || slice.maxDescendants !== "max");
}

/** Two stops that meet slow calls wait for each other's calls in the simulation, which they would not do on a host. */
function longestS(scene: Scene): number {
  const shared = scene.plan.second === true && (scene.plan.faults ?? []).some((fault) => fault.endsWith("-slow"));
  return (shared ? 2 : 1) * (limitS + (isAsked(scene) ? questionS : 0));
}

function isDryRun(scene: Scene): boolean {
  return scene.plan.request?.dryRun === true;
}

function isAsked(scene: Scene): boolean {
  return (scene.plan.helper?.terminals ?? []).includes(0) && scene.plan.request?.yes !== true;
}

/** Exit 0 is owed where the world permits it and nobody declined. */
function isOwed(scene: Scene, code: number): boolean {
  return code !== 4 && permitsSuccess(scene.plan);
}

/** The truth: everything of the account that lives, but what came with the restored manager or too late to be seen. */
export function aliveOfAccount(scene: Scene, lastLookUs: number): Process[] {
  const slice = findCgroup(scene.world.root, slicePath);
  const inSlice = (process: Process) => slice !== undefined && isBelow(process.cgroup, slice);
  return [...scene.world.processes.values()].filter((process) => {
    if (process.phase !== "alive" || process.restored) return false;
    if (process.owner !== "account" && !(process.owner === "bystander" && inSlice(process))) return false;
    return !(process.newcomer && process.startedUs > lastLookUs - unseenUs);
  });
}

/** Its own number, another number of its lineage (it moves on), or a sentence that says what could not be seen. */
function isNamed(process: Process, scene: Scene, host: SimulatedHost): boolean {
  const said = host.printed.out + host.printed.err;
  const mentions = (pid: number) => new RegExp(`(^|[^0-9])${pid}([^0-9]|$)`).test(said);
  if (mentions(process.pid)) return true;
  if (/UNKNOWN|"unknown": \[\s*"/.test(said) || /more alive|"survivorsNotShown": [1-9]/.test(said)) return true;
  const moves = /chain|storm|respawning|manager/.test(process.lineage);
  return moves && scene.world.lineages.get(process.lineage)?.some(mentions) === true;
}

/** Any signal number but 0 counts, and the target is what the number meant at that moment. */
function bystandersHit(host: SimulatedHost): string[] {
  return host.signalling.sent
    .filter(
      ({ signal, target, inSlice }) => signal !== 0 && target !== undefined && target.owner !== "account" && !inSlice,
    )
    .map(({ pid, signal, target }) => `pid ${pid} (${target?.lineage}) got signal ${signal}`);
}

/** Where nobody can be held, only numbers can be signalled: no law forbids what cannot be helped. */
function signalsAstray(scene: Scene, host: SimulatedHost): string[] {
  if (!scene.world.host.pidfds || scene.plan.faults?.some((fault) => /held|hold/.test(fault)) === true) return [];
  return host.signalling.sent
    .filter(({ signal, target, lookedAt }) => signal !== 0 && target !== undefined && target !== lookedAt)
    .map(({ pid, signal, target }) => `pid ${pid} (${target?.lineage}) got signal ${signal}`);
}

/** Runs that refused, were declined, only looked, or were interrupted before they had consent. */
function mayNotTouch(scene: Scene, code: number): boolean {
  return code === 2 || code === 4 || code === 5 || isDryRun(scene);
}

function wasTouched(host: SimulatedHost): boolean {
  return (
    host.signalling.sent.some(({ signal }) => signal !== 0) ||
    host.writes.some(({ path }) => !path.endsWith("cgroup.procs"))
  );
}

function describeTouch(host: SimulatedHost): string {
  return `signals ${host.signalling.sent.length}, writes ${host.writes.map(({ path, text }) => `${path}=${text}`).join(" ")}`;
}

/** Programs that a handler started after this stop's first SIGTERM to save its work, and that got one all the same. */
function saversAsked(host: SimulatedHost): Process[] {
  const terms = host.signalling.sent.filter(({ signal }) => signal === SIGTERM);
  const firstUs = terms[0]?.atUs ?? 0;
  return terms.flatMap(({ target }) => (target?.comm === "saver" && target.startedUs >= firstUs ? [target] : []));
}

/** What a run that is over, or was killed, may not leave on the host. */
export function leftovers(scene: Scene, outcome: Outcome, before: string): Breach[] {
  const breaches: Breach[] = [];
  const slice = findCgroup(scene.world.root, slicePath);
  const wasFrozen = before.includes("frozen");
  const wasBraked = before.includes("braked");
  if (slice?.freeze === true && !wasFrozen) breaches.push({ law: "nothing is left frozen", seen: slicePath });
  if (slice !== undefined && slice.maxDescendants !== "max" && !wasBraked) {
    breaches.push({ law: "no limit is left behind", seen: String(slice.maxDescendants) });
  }
  const made = cgroupsOfHelpers(scene).filter((path) => path !== "");
  if (made.length > 0) breaches.push({ law: "no cgroup of a helper is left behind", seen: made.join(", ") });
  if (outcome.thrown instanceof KilledHere && outcome.thrown.why !== "asked") {
    breaches.push({ law: "a helper neither kills nor freezes itself", seen: outcome.thrown.message });
  }
  return breaches;
}

function cgroupsOfHelpers(scene: Scene): string[] {
  const found: string[] = [];
  const open = [scene.world.root];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    if (at.madeByHelper) found.push(at.name);
    open.push(...at.children.values());
  }
  return found;
}

/** How the slice was found: words that the leftovers are compared with. */
export function fingerprint(scene: Scene): string {
  const slice = findCgroup(scene.world.root, slicePath);
  return [
    slice?.freeze === true ? "frozen" : "",
    slice !== undefined && slice.maxDescendants !== "max" ? "braked" : "",
  ].join(" ");
}

function describe(processes: readonly Process[]): string {
  return processes
    .slice(0, 6)
    .map((process) => `pid ${process.pid} (${process.lineage}, ${process.comm}, uids ${process.uids.join(" ")})`)
    .join("; ");
}

/** A helper killed before its `call`-th step, and then a second stop: nothing is left behind, and the second is clean. */
export async function judgeKilledAt(
  plan: WorldPlan,
  story: Story,
  call: number,
): Promise<{ breaches: Breach[]; reached: boolean }> {
  const scene = buildScene(plan);
  const before = fingerprint(scene);
  const first = await run(scene, story, { killAtCall: call });
  const reached = first.host.endedBy !== undefined;
  const breaches = leftovers(scene, first, before);
  scene.world.timeline.advance(2_000);
  const second = await run(scene, story);
  breaches.push(...judge(scene, second, before).map(({ law, seen }) => ({ law: `second run: ${law}`, seen })));
  return { breaches, reached };
}

/** The number that the helper is busy with goes to another user's process before its `call`-th step. */
export async function judgeRecycledAt(
  plan: WorldPlan,
  story: Story,
  call: number,
): Promise<{ breaches: Breach[]; reached: boolean; recycled: boolean }> {
  const scene = buildScene(plan);
  const before = fingerprint(scene);
  const outcome = await run(scene, story, { recycleAtCall: call });
  const recycled = [...scene.world.processes.values()].some((process) => process.comm === "recycled");
  return { breaches: judge(scene, outcome, before), reached: outcome.host.calls >= call, recycled };
}

/** For tests of the laws themselves: ends everything of the account at once, behind the helper's back. */
export function endEverything(scene: Scene): void {
  const slice = findCgroup(scene.world.root, slicePath);
  for (const process of slice === undefined ? [] : membersBelow(slice)) kill(scene.world, process.pid, 9);
}
