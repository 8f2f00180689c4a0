// SPDX-License-Identifier: Apache-2.0
// What a stop does not undo is named, and nothing else is.

import { describe, expect, test } from "vitest";
import { HandMadeHost } from "./hand-made-host.fixture.ts";
import { identity, stat } from "./hand-made-processes.fixture.ts";
import { EACCES } from "./kernel.ts";
import { leftBehind } from "./left-behind.ts";

function hintsOn(changes: (host: HandMadeHost) => void): string[] {
  const host = new HandMadeHost();
  changes(host);
  return leftBehind(host, identity);
}

describe("hints", () => {
  test("none where the account has neither crontab nor at jobs", () => {
    expect(hintsOn(() => undefined)).toEqual([]);
  });

  test.each(["/var/spool/cron/crontabs/ai-tools", "/var/spool/cron/ai-tools"])(
    "a crontab in %s, with its path",
    (path) => {
      const hints = hintsOn((host) => void host.stats.set(path, stat()));
      expect(hints).toHaveLength(1);
      expect(hints[0]).toContain(path);
      expect(hints[0]).toContain("crontab -r -u ai-tools");
    },
  );

  test.each(["/var/spool/cron/atjobs", "/var/spool/at"])("at jobs of the account in %s", (spool) => {
    const hints = hintsOn((host) => {
      host.directories.set(spool, ["a0001", "a0002"]);
      host.stats.set(`${spool}/a0001`, stat({ uid: 1000 }));
      host.stats.set(`${spool}/a0002`, stat({ uid: 990 }));
    });
    expect(hints).toEqual([expect.stringContaining("atrm NUMBER")]);
  });

  test("not jobs of others, not what is no file, not what cannot be looked at", () => {
    const hints = hintsOn((host) => {
      host.directories.set("/var/spool/at", ["a1", "spool", "gone"]);
      host.stats.set("/var/spool/at/a1", stat({ uid: 1000 }));
      host.stats.set("/var/spool/at/spool", stat({ kind: "directory", uid: 990 }));
      host.directories.set("/var/spool/cron/atjobs", EACCES);
      host.stats.set("/var/spool/cron/ai-tools", EACCES);
    });
    expect(hints).toEqual([]);
  });
});
