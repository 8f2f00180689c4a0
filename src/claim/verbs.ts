// SPDX-License-Identifier: Apache-2.0
// The helper's three verbs: which one the words ask for, and what comes of an error of our own.

import type { Ground } from "../ground/ground.ts";
import { printable } from "../stop/printable.ts";
import { claim } from "./claim-verb.ts";
import { reclaim } from "./reclaim-verb.ts";
import { exitCodes, fail } from "./request.ts";
import { unclaim } from "./unclaim-verb.ts";

const verbs = { claim, unclaim, reclaim };

const usage = `Usage: ai-tools --claim PATH      let sessions work in a project of yours
       ai-tools --unclaim PATH    end that
       ai-tools --reclaim PATH    give back to you what sessions own in it
`;

/** A verb and one path, nothing else; returns the exit code. */
export async function claimVerbs(ground: Ground): Promise<number> {
  const [verb, path, ...more] = ground.words;
  if (path === undefined || more.length > 0 || (verb !== "claim" && verb !== "unclaim" && verb !== "reclaim")) {
    ground.print("err", usage);
    return exitCodes.usage;
  }
  if (path === "" || !ground.areWordsWhole()) {
    ground.print("err", `ai-tools: ${path === "" ? "the path is empty" : "the path is not UTF-8"}\n`);
    return exitCodes.usage;
  }
  try {
    return await verbs[verb](ground, path);
  } catch (error) {
    // What was done up to here is on record, and the same command again goes on from there.
    return fail(ground, `an error of its own (${printable(String(error))}); once more: ai-tools --${verb}`);
  }
}
