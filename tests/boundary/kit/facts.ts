// SPDX-License-Identifier: Apache-2.0
// What the kernel of a lab host says about the sandbox account, asked without any code of the helper.

import { look, type SeenProcess } from "../../../src/tooling/drill/observer.ts";
import type { LabHost } from "../../../src/tooling/lab/host.ts";
import { patienceFor } from "../../../src/tooling/lab/host-names.ts";
import { countersOnHost, tempersOnHost } from "../../../src/tooling/tempers/build-tempers.ts";
import { type Counter, movedSince, readCounters, watchCounters } from "../../../src/tooling/tempers/counters.ts";
import { accountUid } from "../../../src/tooling/tempers/payloads.ts";
import { whichHost } from "./host.ts";

/** How long nothing may move before it is called ended, in milliseconds; a counter that moves does so every 2 ms. */
const stillnessMs = 400;

/** Which payloads run: those whose counters move. */
export async function running(host: LabHost): Promise<string[]> {
  return payloadsOf(await movingCounters(host));
}

/** The counters that move, with what else they count. */
export async function movingCounters(host: LabHost): Promise<Counter[]> {
  return (await watchCounters(host, stillnessMs)).moved;
}

/** The names of the payloads that these counters belong to. */
export function payloadsOf(counters: readonly Counter[]): string[] {
  return [...new Set(counters.map(({ payload }) => payload))].sort();
}

/** The counters of one payload, and whether each of them moves. */
export async function countersOf(host: LabHost, payload: string): Promise<(Counter & { moves: boolean })[]> {
  const { moved, still } = await watchCounters(host, stillnessMs);
  return [...moved.map((c) => ({ ...c, moves: true })), ...still.map((c) => ({ ...c, moves: false }))]
    .filter((counter) => counter.payload === payload)
    .sort((a, b) => a.slot - b.slot);
}

/**
 * What a manager that was restored runs by itself on systemd 252 and 257: itself in its own scope, and a bus once somebody
 * has asked for one. By name and place both: whatever else sits there, or in any other unit of it, is none of it.
 */
export const restoredManager = {
  /** Below `user@UID.service`. */
  places: ["init.scope", "session.slice/dbus.service"],
  commands: ["systemd", "(sd-pam)", "dbus-daemon"],
} as const;

/**
 * The account's living processes apart from the restored manager's own, by `/proc` and by the slice's cgroups. Processes
 * that belong to bystanders of the lab are left out.
 */
export async function accountProcesses(host: LabHost): Promise<string[]> {
  const uid = await accountUid(host);
  const seen = await look(host, uid);
  const places = restoredManager.places.map((place) => `/user.slice/user-${uid}.slice/user@${uid}.service/${place}`);
  const isManagers = (cgroup: string) => places.includes(cgroup);
  const isManager = ({ name, cgroup }: SeenProcess) =>
    isManagers(cgroup) && (restoredManager.commands as readonly string[]).includes(name);
  const alive = seen.processes.filter((process) => !isDead(process) && !isBystander(process) && !isManager(process));
  const listed = new Set(seen.processes.map(({ pid }) => pid));
  const unseen = seen.sliceMembers.filter(({ pid, cgroup }) => !isManagers(cgroup) && !listed.has(pid));
  return [
    ...alive.map(({ pid, name, cgroup }) => `${pid} ${name} ${cgroup}`),
    ...unseen.map(({ pid, cgroup }) => `${pid} ? ${cgroup}`),
  ];
}

/**
 * Ends everything that a test started on the host, by the kernel's own means, and forgets its counters. Fails when something
 * of the account outlives that.
 */
export async function clearHost(host: LabHost): Promise<void> {
  const uid = await accountUid(host);
  const slice = `/sys/fs/cgroup/user.slice/user-${uid}.slice`;
  await host.sh(`
    systemctl kill -s KILL 'lab-*' 2>/dev/null
    rm -f ${countersOnHost}/*
    if [ -e ${slice}/cgroup.kill ]; then echo 1 >${slice}/cgroup.kill; echo 0 >${slice}/cgroup.freeze; fi
    ${tempersOnHost}/end-all ${uid} || exit
    systemctl reset-failed
    rm -f ${countersOnHost}/*`);
}

/** How a stop ends what lives in the slice: kernels before 5.14 have no kill for a whole cgroup. */
export async function killOfSlice(host: LabHost): Promise<"cgroup-kill" | "per-pid"> {
  const { code } = await host.run(["test", "-e", "/sys/fs/cgroup/user.slice/cgroup.kill"]);
  return code === 0 ? "cgroup-kill" : "per-pid";
}

/** What a script prints, without empty lines; whether it found all that it looked for is not asked. */
export async function linesOf(host: LabHost, script: string): Promise<string[]> {
  return (await host.sh(`${script}; true`)).split("\n").filter((line) => line !== "");
}

/**
 * Waits for something that the kernel or systemd will say soon.
 * @param limitMs on a container; see `patienceFor`
 */
export async function eventually(what: string, isSo: () => Promise<boolean>, limitMs = 10_000): Promise<void> {
  const deadline = Date.now() + limitMs * patienceFor(whichHost());
  while (!(await isSo())) {
    if (Date.now() > deadline) throw new Error(`${what}: not within ${limitMs} ms`);
    await new Promise((done) => setTimeout(done, 50));
  }
}

export { movedSince, readCounters };

function isDead({ state, threads }: SeenProcess): boolean {
  return state === "Z" && threads === 1;
}

function isBystander({ cgroup }: SeenProcess): boolean {
  return cgroup.startsWith("/system.slice/lab-bystander-");
}
