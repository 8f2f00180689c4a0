// SPDX-License-Identifier: Apache-2.0
// Starts sessions with arguments and unit properties that the plain payloads do not have, as a unit of PID 1 in the slice
// and outside it and as a unit of the account's own manager, and waits until they count.

import { expect } from "vitest";

import type { LabHost } from "../../../src/tooling/lab/host.ts";
import { countersOnHost, tempersOnHost } from "../../../src/tooling/tempers/build-tempers.ts";
import { eventually, readCounters } from "./facts.ts";
import { helper, type Report, type StopResult, stopByScript } from "./stop.ts";

/** Whose manager runs the unit: PID 1, in the account's slice; the account's own; or PID 1, outside the slice (a stray). */
export type Manager = "PID 1" | "own manager" | "PID 1 outside the slice";
/** In the slice. */
export const managers: readonly Manager[] = ["PID 1", "own manager"];
/** In the slice, and as a stray, which no kill of the slice reaches. */
export const everywhere: readonly Manager[] = [...managers, "PID 1 outside the slice"];

/** A thousand processes, at depth 2,000 at that, need their time on a busy machine. */
const startLimitMs = 150_000;

export interface WantedUnit {
  manager: Manager;
  /** Digits: the unit gets the name of a session, see `sessionUnit`. Also the name of the counter file. */
  name: string;
  temper: string;
  /** What follows the counter file and the seconds. */
  words?: string;
  /** Longest life in seconds. */
  seconds?: number;
  /** Options of systemd-run, e.g. `-p Delegate=yes`. */
  properties?: string;
  /** For a unit of PID 1 in the slice: the number, without a name, that it takes instead of the account's. */
  number?: number;
  /** How many of its processes carry a sign when all of them are there; 0: one that counts is enough. */
  signs?: number;
}

/** The unit's name. */
export function sessionUnit(name: string): string {
  return `ai-tools-claude-code-${name}.service`;
}

/** The beginning of a command line that starts a unit of the account: `systemd-run` and who runs it where. */
export function runsUnit(manager: Manager): string {
  const asAccount = "systemd-run --quiet --uid=ai-tools --gid=ai-tools";
  const places: Record<Manager, string> = {
    "PID 1": `${asAccount} --slice=user-$(id -u ai-tools).slice`,
    "own manager": "systemd-run --quiet --user -M ai-tools@.host",
    "PID 1 outside the slice": asAccount,
  };
  return places[manager];
}

/** Starts the unit and returns when its processes count. */
export async function startUnit(host: LabHost, unit: WantedUnit): Promise<void> {
  await host.sh(commandOf(unit));
  await counts(host, unit.name, unit.signs);
}

function commandOf({ manager, name, temper, words = "", seconds = 60, properties = "", number }: WantedUnit): string {
  const command = `${tempersOnHost}/${temper} ${countersOnHost}/${name} ${seconds} ${words}`;
  const unit = `--collect --unit=${sessionUnit(name)} ${properties}`;
  if (number === undefined) return `${runsUnit(manager)} ${unit} ${command}`;
  // PID 1 itself takes no number that nobody has.
  const asNumber = `setpriv --reuid=${number} --regid=${number} --clear-groups`;
  return `systemd-run --quiet --slice=user-$(id -u ai-tools).slice ${unit} ${asNumber} ${command}`;
}

/** Waits until a payload counts, and until so many of its processes carry a sign. */
export async function counts(host: LabHost, payload: string, signs = 0): Promise<void> {
  const isThere = async () => {
    const own = (await readCounters(host)).filter((counter) => counter.payload === payload && counter.ticks > 0);
    return own.length > 0 && own.reduce((sum, counter) => sum + counter.signs, 0) >= signs;
  };
  await eventually(`${payload} counts`, isThere, startLimitMs);
}

/** The manager is back; where this busy machine was too slow for that, the report says so and its advice brings it back. */
export async function expectManagerBack(host: LabHost, { manager }: Pick<Report, "manager">): Promise<void> {
  if (manager.outcome !== "restored") {
    expect(manager).toMatchObject({ outcome: "not-restored", reason: expect.stringMatching(/no answer in time/) });
    await host.sh(manager.mend ?? "false");
  }
  expect(await host.sh("systemctl is-active user@$(id -u ai-tools).service || true")).toBe("active\n");
}

/**
 * Starts the unit, waits until this test of a shell holds, and stops with `--json`, all by one script on the host: where a
 * session takes every processor, each call from outside takes half a minute. PID 1 is starved there like everybody
 * else until the stop, so that it is not asked how fast it answers.
 */
export async function stopAmid(
  host: LabHost,
  unit: WantedUnit,
  isThere: string,
  ...options: string[]
): Promise<StopResult & { report: Report }> {
  const result = await stopByScript(
    host,
    `set -- /proc/[0-9]*; before=$#
     ${commandOf(unit)} || exit
     looks=0; until ${isThere}; do looks=$((looks + 1)); [ $looks -lt 500 ] || exit 99; sleep 0.05; done
     exec ${helper} --json --yes ${options.join(" ")}`,
  );
  return withReport(result, result.stdout);
}

/** For a script that stops with `--json`: what came back, with the report. */
export function withReport(result: StopResult, json: string): StopResult & { report: Report } {
  if (json === "") throw new Error(`there is no report, and the script ended with ${result.code}: ${result.stderr}`);
  return { ...result, report: { ...(JSON.parse(json) as Report), lingered: result.lingered === true } };
}

/** For `stopAmid`: so many processes more than before are there, told by nothing but a shell's own reading of names. */
export function moreProcesses(count: number): string {
  return `set -- /proc/[0-9]*; [ $(($# - before)) -ge ${count} ]`;
}
