// SPDX-License-Identifier: Apache-2.0
// Starts any command on a lab host where a process of the account, of root's or of somebody else's can live, for cases
// in which who starts a temper matters as much as the temper.

import type { LabHost } from "../../../src/tooling/lab/host.ts";
import { countersOnHost, tempersOnHost } from "../../../src/tooling/tempers/build-tempers.ts";
import { eventually, readCounters } from "./facts.ts";

/**
 * Where a command lives and whose it is:
 * `session`: the account's, a unit of PID 1 in its slice, which may gain privileges;
 * `own-manager`: the account's, a unit of its own manager, which must run;
 * `system-unit`: the account's, a system unit with `User=` (a stray);
 * `exec`: the account's, without any unit (a stray), its parent gone;
 * `root-in-slice`: root's, a unit of PID 1 in the account's slice;
 * `root`: root's, a system unit.
 */
export type Where = "session" | "own-manager" | "system-unit" | "exec" | "root-in-slice" | "root";

/** The places of the account's own commands: in its slice and outside. */
export const accountPlaces: readonly Where[] = ["session", "own-manager", "system-unit", "exec"];

/** The life of a temper that a test starts by a command line, in seconds. */
const lifeS = 100;

/** The command line of a temper whose counters have this name. */
export function temper(program: string, name: string, ...words: string[]): string {
  return [`${tempersOnHost}/${program}`, `${countersOnHost}/${name}`, String(lifeS), ...words].join(" ");
}

/** The unit of a command of this name. */
export function unitOf(name: string): string {
  return `ai-tools-claude-code-${name}.service`;
}

/** Starts a command (for a shell: quotes and variables are this host's) and returns at once. */
export async function startCommand(host: LabHost, name: string, where: Where, command: string): Promise<void> {
  const slice = "user-$(id -u ai-tools).slice";
  const unit = `systemd-run --quiet --collect --unit=${unitOf(name)}`;
  const places: Record<Where, string> = {
    session: `${unit} --uid=ai-tools --gid=ai-tools --slice=${slice} ${command}`,
    "own-manager": `systemd-run --user -M ai-tools@.host --quiet --collect --unit=${unitOf(name)} ${command}`,
    "system-unit": `systemd-run --quiet --collect --unit=lab-stray-${name} --uid=ai-tools --gid=ai-tools ${command}`,
    exec: `cd / && setpriv --reuid=ai-tools --regid=ai-tools --clear-groups setsid --fork ${command} </dev/null >/dev/null 2>&1`,
    "root-in-slice": `${unit} --slice=${slice} ${command}`,
    root: `systemd-run --quiet --collect --unit=lab-command-${name} ${command}`,
  };
  await host.sh(places[where]);
}

/** Waits until so many processes of this name count, in whichever slots. */
export async function untilCounting(host: LabHost, name: string, processes = 1): Promise<void> {
  await eventually(`${processes} of ${name} count`, async () => {
    const counters = await readCounters(host);
    return counters.filter(({ payload, ticks }) => payload === name && ticks > 0).length >= processes;
  });
}

/** Starts a command and waits until so many of its processes count. */
export async function startCounting(
  host: LabHost,
  name: string,
  where: Where,
  command: string,
  processes = 1,
): Promise<void> {
  await startCommand(host, name, where, command);
  await untilCounting(host, name, processes);
}

/** The pid of the only process of this command name. */
export async function pidOf(host: LabHost, command: string): Promise<number> {
  const pids = (await host.sh(`pgrep -x ${command} || true`)).split("\n").filter((line) => line !== "");
  if (pids.length !== 1) throw new Error(`${pids.length} processes are called ${command}: ${pids.join(" ")}`);
  return Number(pids[0]);
}
