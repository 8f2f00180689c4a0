// SPDX-License-Identifier: Apache-2.0
// What `ai-tools-ended` tells a launcher that still waits: how the session ended, since systemd-run reports 0 for some
// signals and 255 for others, and what was handed back. A file of root's, of this boot, one for each waiting launcher.

import type { Ground, HandedBack } from "../ground/ground.ts";
import { decodeUtf8, encodeUtf8 } from "../ground/records.ts";
import { readStatus } from "../stop/census.ts";
import { type Errno, isErrno, type KernelView } from "../stop/kernel.ts";
import { decimal } from "../stop/proc-files.ts";
import { isLauncherAtWork, ownMark, unitForm, waitingDirectory, waitingPath } from "./session-records.ts";

export interface Word {
  /** The session's exit status: its own code, or 128+n for a signal n. */
  code: number;
  /** In words, e.g. "ended with 3". */
  how: string;
  /** It ended by itself. */
  clean: boolean;
  /** What was handed back, or why nothing was; absent while that is at work. */
  after?: HandedBack | string;
  /** The unit of another session of the project that runs, to which the handback was left. */
  waitsFor?: string;
}

/** This launcher waits from now on. Files of launchers that are gone are cleared away, so that they stay few. */
export function beginWaiting(ground: Ground, unit: string): Errno {
  ground.makeDirectory("/run/ai-tools", 0o755);
  ground.makeDirectory(waitingDirectory, 0o755);
  const names = ground.list(waitingDirectory);
  for (const name of isErrno(names) ? [] : names) {
    if (isLeftOver(ground, name)) ground.remove(`${waitingDirectory}/${name}`);
  }
  return ground.replaceFile(waitingPath(unit), ownMark(ground), 0o644);
}

/** Many launchers come here at once: what a living one is just writing (`UNIT.PID.new`) is nobody else's to remove. */
function isLeftOver(view: KernelView, name: string): boolean {
  const writer = decimal(/\.([0-9]+)\.new$/.exec(name)?.[1]);
  if (writer !== undefined) return readStatus(view, writer) === "gone";
  return unitForm.test(name) && !isLauncherAtWork(view, name);
}

/** The launcher is done with this unit. */
export function endWaiting(ground: Ground, unit: string): void {
  ground.remove(waitingPath(unit));
}

/** What was left for the launcher of a unit so far. */
export function readWord(view: KernelView, unit: string): Word | undefined {
  const text = view.readText(waitingPath(unit));
  if (isErrno(text)) return undefined;
  return parseWord(text.slice(text.indexOf("\n") + 1));
}

function parseWord(text: string): Word | undefined {
  try {
    const word = JSON.parse(decodeUtf8(text)) as Partial<Word> | null;
    const isWord = typeof word?.code === "number" && typeof word.how === "string" && typeof word.clean === "boolean";
    return isWord ? (word as Word) : undefined;
  } catch {
    // Nothing has been left yet: the file holds the launcher's mark alone.
    return undefined;
  }
}

/** Leaves word for the launcher of a unit, if one waits. */
export function leaveWord(ground: Ground, unit: string, word: Word): void {
  const text = ground.readText(waitingPath(unit));
  if (isErrno(text) || !isLauncherAtWork(ground, unit)) return;
  const mark = text.slice(0, text.indexOf("\n") + 1);
  ground.replaceFile(waitingPath(unit), `${mark}${encodeUtf8(JSON.stringify(word))}\n`, 0o644);
}
