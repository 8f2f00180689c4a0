// SPDX-License-Identifier: Apache-2.0
// A gate behind each file of tests: whatever the host has logged as an error since it began, and whatever SELinux has
// denied, was announced beside the act that causes it, or the gate fails.

import { expect } from "vitest";

import type { LabHost } from "../../../src/tooling/lab/host.ts";
import { auditMark, denialsSince } from "./from-inside.ts";
import { labHost } from "./host.ts";
import { clearSessions } from "./sessions.ts";

/**
 * Denials of a session's own domain: for files that let a session try what it may not. Whatever another domain is denied
 * is still nobody's announced doing.
 */
const deniedToSession = /scontext=\S+:ai_tools_t:/;

interface Announced {
  pattern: RegExp;
  because: string;
}

export interface JournalGate {
  /** An error or a denial whose line matches is expected from here on, and why. */
  announce(pattern: RegExp, because: string): void;
  /** Fails with every line that nobody announced. */
  expectQuiet(): Promise<void>;
}

/**
 * What each of these files begins with: this worker's host, with nothing left of earlier sessions, and its gate open.
 * @param tried what its sessions try and may be denied, told here for the whole file; none where each act tells its own
 */
export async function gatedHost(tried?: string): Promise<{ host: LabHost; gate: JournalGate }> {
  const host = await labHost();
  await clearSessions(host);
  const gate = await journalGate(host);
  if (tried !== undefined) gate.announce(deniedToSession, tried);
  return { host, gate };
}

/** Opens the gate: everything that comes later counts. */
async function journalGate(host: LabHost): Promise<JournalGate> {
  const announced: Announced[] = [];
  const since = await auditMark(host);
  const cursor = /^-- cursor: (.*)$/m.exec(await host.sh("journalctl --sync; journalctl -n 0 --show-cursor"))?.[1];
  if (cursor === undefined) throw new Error("the journal has no cursor: nothing could be compared with it later");
  const isAnnounced = (line: string) => announced.some(({ pattern }) => pattern.test(line));
  return {
    announce: (pattern, because) => {
      announced.push({ pattern, because });
    },
    expectQuiet: async () => {
      const errors = `journalctl --sync; journalctl --after-cursor='${cursor}' -p err --no-pager -q -o short-iso`;
      const lines = (await host.sh(errors)).split("\n").filter((line) => line !== "");
      const denials = (await denialsSince(host, since)).map(({ line }) => line);
      expect([...lines, ...denials].filter((line) => !isAnnounced(line))).toEqual([]);
    },
  };
}
