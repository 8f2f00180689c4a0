// SPDX-License-Identifier: Apache-2.0
// The status as one JSON document, for programs: the same facts as the text, under names that stay.

import { pastedPath } from "../claim/paths.ts";
import { exitCodes, type Facts, stateOf } from "./facts.ts";

/** ASCII; what is null could not be told. */
export function asJson(facts: Facts): string {
  const state = stateOf(facts);
  const { at, asRoot, stopRuns, hold, sessions, plumbing, strays, left, looseClaims, selinux, checks } = facts;
  const document = {
    state,
    exitCode: exitCodes[state],
    at,
    asRoot,
    stop: { running: stopRuns },
    hold: typeof hold === "string" ? { unreadable: hold } : hold,
    sessions,
    plumbing,
    strays,
    unclean: left.map((session) => ({ ...session, reclaim: `ai-tools --reclaim ${pastedPath(session.project)}` })),
    claims: looseClaims,
    selinux,
    checks,
  };
  const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return `${JSON.stringify(document, null, 2).replace(/[\u007f-\uffff]/g, escaped)}\n`;
}
