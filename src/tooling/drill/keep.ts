// SPDX-License-Identifier: Apache-2.0
// What stays of a drill in `build/drill`: its evidence as JSON, the same as a page to look at, and everything that the
// observer saw, for whoever doubts both.

import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { inProject } from "../machine.ts";
import { type DrillResult, verdictLine } from "./drill.ts";
import { asJson, asPage } from "./page.ts";

const directory = inProject("build", "drill");

/** Paths of what one drill leaves. */
interface Kept {
  json: string;
  page: string;
  observed: string;
}

/** Writes `NAME.json`, `NAME.html` and `NAME-observed.json`. */
export async function keepEvidence(result: DrillResult, name = "evidence"): Promise<Kept> {
  await mkdir(directory, { recursive: true });
  const kept = pathsOf(name);
  const { record, ...observed } = result;
  const json = asJson(record);
  await writeFile(kept.json, json);
  await writeFile(kept.page, await asPage(json));
  await writeFile(
    kept.observed,
    `${JSON.stringify({ verdict: verdictLine(result.problems), ...observed }, null, 2)}\n`,
  );
  return kept;
}

/** Removes what an earlier drill saw, so that nobody takes it for this one's. */
export async function forgetEvidence(name = "evidence"): Promise<void> {
  for (const path of Object.values(pathsOf(name))) await rm(path, { force: true });
}

function pathsOf(name: string): Kept {
  const path = (end: string) => join(directory, `${name}${end}`);
  return { json: path(".json"), page: path(".html"), observed: path("-observed.json") };
}
