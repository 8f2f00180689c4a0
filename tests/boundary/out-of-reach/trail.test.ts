// SPDX-License-Identifier: Apache-2.0
// Promise: nobody of the account can read the trail or add to it, and no entry of the journal is under root's number that
// root has not written.

import { afterAll, beforeAll, expect, test } from "vitest";

import type { TrailEntry } from "../../../src/tooling/drill/observer.ts";
import {
  type Act,
  type Acts,
  attempt,
  expectAllDone,
  expectOutOfReach,
  insiders,
  isEnforcing,
  type Who,
} from "../kit/from-inside.ts";
import { gatedHost } from "../kit/journal-gate.ts";
import { journalOf, lastStop, stopWithReport, trailLog } from "../kit/stop.ts";

const { host, gate } = await gatedHost("a session tries to reach the trail and the journal");
const folder = "/var/log/ai-tools";
const uid = (await host.sh("id -u ai-tools")).trim();
let run = "";

beforeAll(async () => {
  // A real trail, and a rotated one beside it.
  run = (await stopWithReport(host, "--dry-run")).report.run;
  await host.sh(`cp -a ${trailLog} ${trailLog}.1`);
});
afterAll(() => host.sh(`rm -f ${trailLog}.1 ${folder}/lab-*`));

function actsOnFile(path: string): Acts {
  return {
    [`read ${path}`]: ["read", path],
    [`open ${path} for writing`]: ["opened", path],
    [`change the mode of ${path}`]: ["chmod", path],
    [`move ${path} away`]: ["rename", path],
    [`link ${path} into the account's home`]: ["link", path, "/var/lib/ai-tools/home"],
    [`mount over ${path}`]: ["overmount", path],
  };
}

test("the log cannot be read, written, moved, linked or mounted over, nor its folder be changed", async () => {
  await expectOutOfReach(host, {
    ...actsOnFile(trailLog),
    ...actsOnFile(`${trailLog}.1`),
    "list the folder": ["names", folder],
    "make a file in the folder": ["create", folder],
    "make a socket in the folder": ["listen", `${folder}/lab-socket`],
    "change the folder's mode": ["chmod", folder],
    "move the folder away": ["rename", folder],
  });
});

test("nothing can be added to the log, and it cannot be removed", async () => {
  const decoy = `${folder}/lab-decoy`;
  const before = `rm -f ${folder}/lab-*; cp -a ${trailLog} ${decoy}`;
  await expectOutOfReach(
    host,
    {
      "add a line": ["append", decoy, "{}\n"],
      "move a file over it": ["over", decoy],
      "remove it": ["unlink", decoy],
      "put a link in its place": ["symlink", `${folder}/lab-link`],
    },
    { before },
  );
});

test("the word about the last stop, and about stops at work, cannot be changed", async () => {
  await stopWithReport(host, "--yes");
  for (const who of insiders) {
    const { read = "" } = await attempt(host, who, { read: ["read", lastStop] });
    // A session's domain may only look whether it is there.
    if (who === "session" && (await isEnforcing(host))) expect(read).toBe("EACCES");
    else expectAllDone({ read }, `${who} reads it`);
  }
  await expectOutOfReach(host, {
    "open the last stop for writing": ["opened", lastStop],
    "move the last stop away": ["rename", lastStop],
    "announce a stop": ["create", "/run/ai-tools/stop"],
    "set the number of stops back": ["opened", "/run/ai-tools/stop/count"],
    "move the number of stops away": ["rename", "/run/ai-tools/stop/count"],
    "leave word of an end": ["create", "/run/ai-tools/ended"],
    "make a file beside them": ["create", "/run/ai-tools"],
    "move them away": ["rename", "/run/ai-tools"],
  });
});

test("the journal's files cannot be read or written, but by root", async () => {
  const file =
    (await host.sh("ls /var/log/journal/*/system.journal /run/log/journal/*/system.journal 2>/dev/null || true")).split(
      "\n",
    )[0] ?? "";
  expect(file).not.toBe("");
  await expectOutOfReach(host, {
    "read the journal": ["read", file],
    "open the journal for writing": ["opened", file],
    "move the journal away": ["rename", file],
  });
});

/** Entries whose message is this one, with the fields that journald itself adds. */
async function entriesOf(text: string): Promise<TrailEntry[]> {
  const lines = await host.sh(`journalctl --sync; journalctl MESSAGE='${text}' -o json --all --no-pager -q || true`);
  return lines
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as TrailEntry);
}

/** Every way to write to the journal, each as if it were the stop's. */
function forgeries(who: Who): Record<string, { act: Act; text: string }> {
  const text = (way: string) => `forged by ${who}, ${way}, beside ${run}`;
  const fields = [
    "SYSLOG_IDENTIFIER=ai-tools-stop",
    "AI_TOOLS_RESULT=stopped",
    "AI_TOOLS_VERDICT=stopped",
    `AI_TOOLS_RUN=${run}`,
    "_UID=0",
    "_PID=1",
    "_EXE=/usr/bin/logger",
    "_SYSTEMD_UNIT=init.scope",
    "_TRANSPORT=journal",
  ];
  return {
    native: { act: ["journal", text("native"), ...fields], text: text("native") },
    syslog: { act: ["syslog", text("syslog")], text: text("syslog") },
    stream: { act: ["stdout_of_service", text("stream"), "ai-tools-ended@1.service"], text: text("stream") },
  };
}

test.each(insiders)("what %s writes to the journal in the name of a stop bears its own number", async (who) => {
  const ways = forgeries(who);
  await attempt(host, who, Object.fromEntries(Object.entries(ways).map(([name, { act }]) => [name, act])));
  for (const [name, { text }] of Object.entries(ways)) {
    const entries = await entriesOf(text);
    expect({ name, numbers: [...new Set(entries.map((entry) => entry._UID))] }).toEqual({
      name,
      // A session's domain may not even be let to the socket.
      numbers: entries.length === 0 && who === "session" ? [] : [uid],
    });
    for (const entry of entries) {
      expect(entry._PID).not.toBe("1");
      expect(entry._SYSTEMD_UNIT ?? "none").not.toMatch(/ai-tools-ended|init\.scope/);
    }
  }
  // Asked for with root's number, the journal shows the real run alone.
  const byRoot = (await journalOf(host, run)).filter((entry) => entry._UID === "0");
  expect(byRoot.map((entry) => entry.MESSAGE).filter((text) => /forged/.test(text ?? ""))).toEqual([]);
  expect(byRoot.length).toBeGreaterThan(0);
});

const claimOf = (who: Who) => `credentials of PID 1 by ${who}, beside ${run}`;

test("an entry under root's number, with another process's credentials, is root's alone to write", async () => {
  const acts = (who: Who): Acts => ({ "say it was PID 1": ["as_pid_1", claimOf(who)] });
  expectAllDone(await attempt(host, "root", acts("root")), "control: possible for root");
  expect(await entriesOf(claimOf("root"))).toMatchObject([{ _UID: "0", _PID: "1" }]);
  for (const who of insiders) {
    expect(await attempt(host, who, acts(who))).toEqual({
      "say it was PID 1": expect.stringMatching(/^(EPERM|EACCES)$/),
    });
    expect(await entriesOf(claimOf(who))).toEqual([]);
  }
});

test("nothing was logged as an error, and nothing was denied, that is not told above", () => gate.expectQuiet());
