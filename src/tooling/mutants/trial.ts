// SPDX-License-Identifier: Apache-2.0
// What a trial of a mutant says: which tests went red, and whether that proves anything. Nothing here runs anything.

import type { Outcome } from "../test/report.ts";
import type { Mutant, Trap } from "./list.ts";

export interface Trial {
  name: string;
  sentence: string;
  /** Tests that went red, with the first line of why. */
  wentRed: { test: string; why: string }[];
  /** What the drill said of it, where it was tried. */
  drill: string | undefined;
  seconds: number;
  /** Why this proves nothing; empty when the mutant was noticed. */
  problems: string[];
}

/** What was seen of one mutant. */
export interface Seen {
  mutant: Mutant;
  /** Outcomes of its traps with the mutant installed. */
  red: readonly Outcome[];
  /** Outcomes of the same and other traps with the real helper, on the same host in the same session. */
  green: readonly Outcome[];
  /** What the drill complained of: "" is nothing, undefined that it was not tried. */
  drill: string | undefined;
  seconds: number;
}

/** A mutant was noticed when every one of its traps went red, and is green with the real helper. */
export function judge({ mutant, red, green, drill, seconds }: Seen): Trial {
  const problems = mutant.traps.flatMap((trap) => {
    const withMutant = red.filter((outcome) => isOf(trap, outcome));
    const withReal = green.filter((outcome) => isOf(trap, outcome));
    const where = `${trap.file}: ${trap.test}`;
    if (withMutant.length === 0) return [`no such test: ${where}`];
    return [
      ...withMutant
        .filter(({ result }) => result !== "failed")
        .map(({ name }) => `stayed green with the mutant: ${name}`),
      ...withMutant
        .filter(({ result, message }) => result === "failed" && !(trap.why ?? /^AssertionError/).test(message ?? ""))
        .map(({ name }) => `went red for another reason: ${name}`),
      ...withReal.filter(({ result }) => result !== "passed").map(({ name }) => `is red with the real helper: ${name}`),
      ...(withReal.length === 0 ? [`was not tried with the real helper: ${where}`] : []),
    ];
  });
  if (drill === "") problems.push("the drill did not notice it");
  const wentRed = red
    .filter(({ result }) => result === "failed")
    .map(({ name, message }) => ({ test: name, why: (message ?? "").trim().split("\n")[0] ?? "" }));
  return { name: mutant.name, sentence: mutant.sentence, wentRed, drill, seconds, problems };
}

function isOf(trap: Trap, { name }: Outcome): boolean {
  const [file = "", ...path] = name.split(" > ");
  return file === `tests/boundary/${trap.file}` && path.join(" ").includes(trap.test);
}

/** The table mutant × tests that went red. */
export function trialLines(trials: Trial[]): string[] {
  const lines = trials.flatMap(({ name, sentence, wentRed, drill, seconds, problems }) => [
    `${problems.length === 0 ? "noticed    " : "NOT NOTICED"} ${name} (${sentence}), ${seconds.toFixed(0)} s`,
    ...wentRed.map(({ test, why }) => `              red: ${test}: ${why.slice(0, 160)}`),
    ...(drill === undefined ? [] : [`              drill: ${drill.slice(0, 160)}`]),
    ...problems.map((problem) => `              PROBLEM: ${problem}`),
  ]);
  const noticed = trials.filter(({ problems }) => problems.length === 0).length;
  return [...lines, `mutants: ${noticed} of ${trials.length} noticed${noticed === trials.length ? "" : ": FAILED"}`];
}
