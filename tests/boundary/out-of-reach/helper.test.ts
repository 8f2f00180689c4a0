// SPDX-License-Identifier: Apache-2.0
// Promise: nobody of the account can read, write, execute, replace, link over or trace a helper of root's, whether or not
// it runs.

import { afterAll, expect, test } from "vitest";

import {
  type Acts,
  attempt,
  expectAllDone,
  expectAllRefused,
  expectOutOfReach,
  standingSession,
} from "../kit/from-inside.ts";
import { gatedHost } from "../kit/journal-gate.ts";
import { frontDoor, question } from "../kit/stop.ts";

const { host, gate } = await gatedHost("a session tries to reach the helpers");
const folder = "/usr/libexec/ai-tools";
const names = (await host.sh(`ls ${folder}`)).split("\n").filter((name) => name !== "");
const decoy = `${folder}/lab-decoy`;

afterAll(() => host.sh(`rm -f ${decoy} ${folder}/lab-link ${folder}/lab-planted`));

/** Every act on a helper that leaves it as it was. */
function actsOn(name: string): Acts {
  const path = `${folder}/${name}`;
  return {
    [`look at ${name}`]: ["look", path],
    [`read ${name}`]: ["read", path],
    [`open ${name} for writing`]: ["opened", path],
    [`execute ${name}`]: ["execute", path, "--version"],
    [`change the mode of ${name}`]: ["chmod", path],
    [`move ${name} away`]: ["rename", path],
    [`link ${name} into the account's home`]: ["link", path, "/var/lib/ai-tools/home"],
    [`mount over ${name}`]: ["overmount", path],
  };
}

test("no helper is in reach: not to be seen, read, opened for writing, executed, moved, linked or mounted over", async () => {
  expect(names).toEqual(expect.arrayContaining(["ai-tools-stop", "ai-tools-run", "ai-tools-claim", "ai-tools-hold"]));
  await expectOutOfReach(host, Object.assign({}, ...names.map(actsOn)));
});

test("nothing can be put into the helpers' folder or over a helper, and none can be removed", async () => {
  const before = `rm -f ${decoy} ${folder}/lab-*; cp -a ${folder}/ai-tools-ended ${decoy}`;
  const acts: Acts = {
    "list the folder": ["names", folder],
    "change the folder's mode": ["chmod", folder],
    "make a file in it": ["create", folder],
    "make a folder in it": ["mkdir", `${folder}/lab-folder`],
    "make a link in it": ["symlink", `${folder}/lab-link`],
    "move a file over a helper": ["over", decoy],
    "remove a helper": ["unlink", decoy],
    "plant a program": ["plant", `${folder}/lab-planted`, "#!/bin/sh\n"],
    "move the folder away": ["rename", folder],
  };
  await expectOutOfReach(host, acts, { before });
  expect(await host.sh(`rm ${decoy}; ls ${folder}`)).toBe(`${names.join("\n")}\n`);
});

/** Every act on a process that leaves it as it was. */
function actsOnProcess(what: string, pid: string): Acts {
  return {
    [`trace ${what}`]: ["trace", pid],
    [`open the memory of ${what}`]: ["memory", pid],
    [`signal ${what}`]: ["sent", pid, "18"],
    [`take a descriptor of ${what}`]: ["descriptor", pid, "1"],
    [`change the limits of ${what}`]: ["limits", pid],
    [`change the priority of ${what}`]: ["nice", pid],
    [`read the environment of ${what}`]: ["read", `/proc/${pid}/environ`],
    [`read the memory map of ${what}`]: ["read", `/proc/${pid}/maps`],
    [`list the descriptors of ${what}`]: ["names", `/proc/${pid}/fd`],
    [`see the files of ${what}`]: ["names", `/proc/${pid}/root`],
    [`execute the program of ${what}`]: ["execute", `/proc/${pid}/exe`, "--version"],
    [`change the out-of-memory score of ${what}`]: ["opened", `/proc/${pid}/oom_score_adj`],
    [`enter the mounts of ${what}`]: ["entered", pid, "mnt"],
  };
}

/** The processes that execute one of the helpers. */
async function runningHelpers(name: string): Promise<string[]> {
  const text = await host.sh(
    `for process in /proc/[0-9]*; do [ "$(readlink $process/exe)" = ${folder}/${name} ] && echo \${process#/proc/}; done; true`,
  );
  return text.split("\n").filter((pid) => pid !== "");
}

test("a helper at work, the launcher of the session itself, cannot be traced, signalled, read or entered", async () => {
  const session = await standingSession(host);
  const [launcher = "none"] = await runningHelpers("ai-tools-run");
  const acts = actsOnProcess("the launcher", launcher);
  await expectOutOfReach(host, acts, { outOfReachFor: ["account", "unit"] });
  expectAllRefused(await session.ask(acts), "session");
  await session.end();
});

test("a stop that waits for its answer cannot be traced, signalled, read or entered, nor its terminal be typed into", async () => {
  const session = await standingSession(host);
  const terminal = host.terminal([frontDoor, "--stop"], { user: "olga" });
  await terminal.waitFor(question, 30_000);
  const stops = await runningHelpers("ai-tools-stop");
  expect(stops.length).toBeGreaterThan(0);
  const keyboard = (await host.sh(`readlink /proc/${stops[0]}/fd/0`)).trim();
  const acts: Acts = Object.assign({}, ...stops.map((pid, index) => actsOnProcess(`helper ${index}`, pid)), {
    "open its terminal": ["opened", keyboard],
    "type into its terminal": ["type_into", keyboard],
  });
  expectAllRefused(await session.ask(acts), "session");
  expectAllRefused(await attempt(host, "account", acts), "account");
  const { "type into its terminal": typed, ...others } = await attempt(host, "root", acts);
  expectAllDone(others, "control: possible for root");
  // EIO: a kernel on which nobody but the administrator of that terminal's own login may type (dev.tty.legacy_tiocsti).
  expect(["done", "EIO"]).toContain(typed);
  terminal.type("\x7f\x7fn\r");
  expect({ code: await terminal.exit, screen: terminal.text() }).toMatchObject({ code: 4 });
  await session.end();
});

test("nothing was logged as an error, and nothing was denied, that is not told above", () => gate.expectQuiet());
