// SPDX-License-Identifier: Apache-2.0
// What became of each row: computed from what was seen, so that nothing unknown is ever said to have ended.

import { describe, expect, test } from "vitest";
import type { Census, Found } from "./census.ts";
import type { Kill } from "./end-session.ts";
import { censusOf, found, scopeOf, slicePath } from "./hand-made-processes.fixture.ts";
import { outcomesOf, unknownOf } from "./outcomes.ts";
import { rowsOf } from "./rows.ts";

const scope = scopeOf();
const one = found({ pid: 20 });
const other = found({ pid: 21 });
const unit = (pid: number) => `ai-tools-claude-code-${pid}.service`;

interface Seen {
  table?: Census;
  left?: Census | undefined;
  force?: boolean;
  killed?: Found[];
  kill?: Partial<Kill>;
}

/** Unit and outcome of each row, and the reasons. */
function told(seen: Seen) {
  const kill: Kill = {
    proved: true,
    last: censusOf([]),
    slicePopulated: false,
    killed: new Map((seen.killed ?? []).map((process) => [process.pid, process])),
    mechanisms: ["cgroup-kill", "per-pid"],
    refusal: undefined,
    passes: 2,
    abortedConnections: [],
    ...seen.kill,
  };
  const rows = rowsOf(scope, seen.table ?? censusOf([one, other]));
  const force = seen.force ?? false;
  return outcomesOf({ scope, rows, left: "left" in seen ? seen.left : censusOf([]), kill, force });
}

const short = (seen: Seen) => told(seen).map(({ row, outcome }) => [row.unit, outcome]);

describe("a row", () => {
  test("that was empty at the end of the grace has ended by itself", () => {
    expect(short({})).toEqual([
      [unit(20), "terminated"],
      [unit(21), "terminated"],
    ]);
  });

  test("that was still there was killed, and its neighbour was not", () => {
    expect(short({ left: censusOf([other]), killed: [other] })).toEqual([
      [unit(20), "terminated"],
      [unit(21), "killed"],
    ]);
  });

  test("with --force was killed at once, and says so", () => {
    const rows = told({ left: undefined, force: true, killed: [one, other] });
    expect(rows.map(({ outcome }) => outcome)).toEqual(["killed", "killed"]);
    expect(rows[0]?.reason).toContain("--force");
  });

  test("of which nobody could tell at the end of the grace is never said to have ended by itself", () => {
    expect(short({ left: undefined })).toEqual([
      [unit(20), "killed"],
      [unit(21), "killed"],
    ]);
  });

  test("that was only held at the end of the grace has not ended by itself", () => {
    expect(short({ left: censusOf([], { held: [one] }) })[0]).toEqual([unit(20), "killed"]);
  });

  test("that came back during the kill was killed, though it was empty at the end of the grace", () => {
    const newcomer = found({ pid: 900, cgroup: one.cgroup ?? "" });
    expect(short({ killed: [newcomer] })[0]).toEqual([unit(20), "killed"]);
  });

  test("first met while the stop ran is named too, and never said to have ended by itself", () => {
    const rows = told({ killed: [found({ pid: 900, cgroup: "/system.slice/cron.service" })] });
    expect(rows.map(({ row, outcome }) => [row.unit, row.kind, outcome])).toContainEqual([
      "cron.service",
      "stray",
      "killed",
    ]);
    expect(rows.at(-1)?.reason).toContain("it came while the stop ran");
  });
});

describe("alive beats everything else", () => {
  const notProved = { proved: false, slicePopulated: true };

  test("a row with somebody in the last census is alive, whatever was seen before", () => {
    const seen = { left: censusOf([]), kill: { ...notProved, last: censusOf([one]) } };
    expect(short(seen)).toEqual([
      [unit(20), "alive"],
      [unit(21), "terminated"],
    ]);
    expect(short({ ...seen, force: true, left: undefined })[0]).toEqual([unit(20), "alive"]);
  });

  test("a survivor of the table is alive in its own row though the kill did not read its place", () => {
    const last = censusOf([{ ...one, cgroup: undefined }], { held: [{ ...other, cgroup: undefined }] });
    expect(short({ force: true, left: undefined, kill: { ...notProved, last } })).toEqual([
      [unit(20), "alive"],
      [unit(21), "alive"],
    ]);
  });

  test("a row with somebody who is only held is alive", () => {
    expect(short({ kill: { ...notProved, last: censusOf([], { held: [other] }) } })[1]).toEqual([unit(21), "alive"]);
  });

  test("a newcomer that stays is alive", () => {
    const newcomer = found({ pid: 900, cgroup: "/system.slice/cron.service" });
    const rows = short({ killed: [newcomer], kill: { ...notProved, last: censusOf([newcomer]) } });
    expect(rows).toContainEqual(["cron.service", "alive"]);
  });

  test("where no census was finished every row is alive, whatever the slice says", () => {
    const table = censusOf([one, found({ pid: 22, cgroup: "/system.slice/cron.service" })]);
    for (const slicePopulated of [true, false]) {
      expect(short({ table, kill: { proved: false, slicePopulated, last: undefined } })).toEqual([
        [unit(20), "alive"],
        ["cron.service", "alive"],
      ]);
    }
  });

  test("a process that nobody can read any more is alive in its row", () => {
    const last = censusOf([], { unreadable: [20] });
    expect(short({ left: last, kill: { ...notProved, slicePopulated: false, last } })).toEqual([
      [unit(20), "alive"],
      [unit(21), "terminated"],
    ]);
  });

  test("a process that nobody could read at the end of the grace has not ended by itself", () => {
    expect(short({ left: censusOf([], { unreadable: [20] }) })[0]).toEqual([unit(20), "killed"]);
  });

  test("where the slice still says that somebody is in it and nobody is found, no row of it is said to have ended", () => {
    const stray = found({ pid: 22, cgroup: "/system.slice/cron.service" });
    const rows = short({ table: censusOf([one, stray]), kill: { ...notProved, last: censusOf([]) } });
    expect(rows).toEqual([
      [unit(20), "alive"],
      ["cron.service", "terminated"],
    ]);
  });

  test("a proof outweighs an older census: nobody is alive then", () => {
    expect(short({ kill: { proved: true, last: censusOf([one]) } }).map(([, outcome]) => outcome)).not.toContain(
      "alive",
    );
  });
});

test("a held process that proves to be a bystander is in no row: nothing was done to it", () => {
  const root = found({ pid: 30, uids: [0, 990, 0, 990], cgroup: "/system.slice/smbd.service" });
  const bystanders = [{ found: root, reason: "a root process acting for the account" }];
  const rows = short({ table: censusOf([one], { held: [root] }), kill: { last: censusOf([], { bystanders }) } });
  expect(rows).toEqual([[unit(20), "terminated"]]);
});

describe("what could not be told is said", () => {
  test("no finished census", () => expect(unknownOf(scopeOf(), undefined, false)[0]).toContain("may be alive"));

  test("processes that cannot be read, with their number and a few pids", () => {
    const sentences = unknownOf(scopeOf(), censusOf([], { unreadable: [1, 2, 3, 4, 5, 6, 7] }), false);
    expect(sentences).toHaveLength(1);
    expect(sentences[0]).toContain("status of 7 process(es) cannot be read (pid 1, 2, 3, 4, 5)");
  });

  test("a slice that says populated with nobody found", () => {
    expect(unknownOf(scopeOf(), censusOf([]), true)[0]).toContain("slice still says");
    expect(unknownOf(scopeOf(), censusOf([one]), true)).toEqual([]);
    expect(unknownOf(scopeOf(), censusOf([], { held: [found({ pid: 20, cgroup: slicePath })] }), true)).toEqual([]);
  });

  test("a slice that says populated while everybody that was found is outside it, or was not placed", () => {
    const stray = found({ pid: 20, cgroup: "/system.slice/cron.service" });
    const unplaced = { ...found({ pid: 21 }), cgroup: undefined };
    for (const alive of [[stray], [unplaced], [stray, unplaced]]) {
      expect(unknownOf(scopeOf(), censusOf(alive), true)[0]).toContain("slice still says");
    }
    expect(unknownOf(scopeOf(), censusOf([stray, one]), true)).toEqual([]);
    expect(unknownOf(scopeOf(), censusOf([stray]), false)).toEqual([]);
  });

  test("nothing where everything is known", () => expect(unknownOf(scopeOf(), censusOf([one]), false)).toEqual([]));
});
