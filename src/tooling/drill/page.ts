// SPDX-License-Identifier: Apache-2.0
// The evidence of a drill as text: JSON for programs, and the page for people that share/drill-page.html makes of it.

import { readFile } from "node:fs/promises";

import { inProject } from "../machine.ts";
import type { DrillRecord } from "./record.ts";

/** The page without evidence; the package installs the same file. */
export const templatePath = inProject("share", "drill-page.html");

/** The line of the template that gives way to the evidence. */
const place = /^@EVIDENCE@$/m;

/** One field on a line, and one look on a line. */
export function asJson(record: DrillRecord): string {
  const { samples, ...rest } = record;
  const looks = samples.map((sample) => `    ${JSON.stringify(sample)}`).join(",\n");
  return `${JSON.stringify(rest, null, 2).slice(0, -2)},\n  "samples": [\n${looks}\n  ]\n}\n`;
}

/**
 * @param json the evidence; whatever it holds, none of it can end the element that it stands in
 * @throws when the template has no place for it
 */
export async function asPage(json: string): Promise<string> {
  const template = await readFile(templatePath, "utf8");
  if (!place.test(template)) throw new Error(`${templatePath} has no line @EVIDENCE@`);
  return template.replace(place, () => json.trimEnd().replaceAll("<", "\\u003c"));
}
