// SPDX-License-Identifier: Apache-2.0
// Word of a session's end gets to the launcher that waits for it and to nobody else, and what is left over goes.

import { expect, test } from "vitest";
import { HandMadeSession, unit, word } from "./hand-made-session.fixture.ts";
import { isLauncherAtWork, waitingDirectory, waitingPath } from "./session-records.ts";
import { beginWaiting, endWaiting, leaveWord, readWord } from "./word.ts";

const other = (pid: number) => `${waitingDirectory}/ai-tools-shell-${pid}.service`;

test("a launcher that waits is left word, with every character of it", () => {
  const ground = new HandMadeSession();
  expect(beginWaiting(ground, unit)).toBe(0);
  expect(isLauncherAtWork(ground, unit)).toBe(true);
  expect(readWord(ground, unit)).toBeUndefined();
  const first = word({ after: "ü\n漢" });
  leaveWord(ground, unit, first);
  expect(readWord(ground, unit)).toEqual(first);
  leaveWord(ground, unit, word({ code: 3 }));
  expect(readWord(ground, unit)).toEqual(word({ code: 3 }));
  expect(isLauncherAtWork(ground, unit)).toBe(true);
  endWaiting(ground, unit);
  expect(readWord(ground, unit)).toBeUndefined();
});

test("what launchers left that are gone goes with the next one's coming, and nothing of those that live", () => {
  const ground = new HandMadeSession();
  ground.launcher(700);
  const stays = [
    [other(700), "launcher 700 1700\n"],
    [`${other(700)}.700.new`, ""],
    [`${waitingDirectory}/somebody-elses`, ""],
  ] as const;
  const goes = [
    [other(701), "launcher 701 1701\n"],
    [other(702), ""],
    [other(703), "launcher 700 9\n"],
    [`${other(704)}.704.new`, "launcher"],
  ] as const;
  for (const [path, text] of [...stays, ...goes]) ground.files.set(path, text);
  beginWaiting(ground, unit);
  for (const [path] of stays) expect(ground.files.has(path), path).toBe(true);
  for (const [path] of goes) expect(ground.files.has(path), path).toBe(false);
});

test.each([
  "",
  "launcher 400 1400",
  "launcher 400 1400\n{",
  'launcher 400 1400\n{"code":"0"}\n',
  "launcher 400 1400\nnull\n",
])("%j is no word", (text) => {
  const ground = new HandMadeSession();
  ground.files.set(waitingPath(unit), text);
  expect(readWord(ground, unit)).toBeUndefined();
});
