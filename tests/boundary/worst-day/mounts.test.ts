// SPDX-License-Identifier: Apache-2.0
// Promise: no stop is refused because the list of mounts is long. Its length is the account's to choose: a mount point's
// path is printed whole, each blank as four bytes, and a directory above a mount point can be renamed to any depth.

import { afterEach, expect, test } from "vitest";

import { expectAftermath, expectStopped, freshHost, measured, stopWatched } from "../kit/aftermath.ts";
import { startCounting, temper } from "../kit/commands.ts";
import { labHost } from "../kit/host.ts";

const host = await labHost();
const place = "/var/tmp/lab-mounts";

/** The bottom of so many directories of 250 blanks below the place, by a way that needs no long path. */
const atBottom = (levels: number) => `python3 -c '
import os, sys
os.chdir("${place}")
for level in range(${levels}):
    name = " " * 250
    if not os.path.isdir(name): os.mkdir(name)
    os.chdir(name)
home = os.open("${place}", os.O_PATH)
os.rename("above", "above", src_dir_fd=home)
'`;

// A tree of its own, so that everything in it can be unmounted by one short name.
afterEach(() => host.sh(`umount -l ${place} && rmdir ${place}`));

test.each([["--force"], []])("mounts of 5 MB in the account's directory: %s", async (...options) => {
  await freshHost(host);
  // What fusermount3 does for the account is done by root here: mounts on directories of the account's own.
  await host.sh(`mkdir -p ${place} && mount -t tmpfs lab ${place} && mkdir -p ${place}/above/1 ${place}/above/2 ${place}/above/3 && chown -R ai-tools ${place}
    for number in 1 2 3; do mount -t tmpfs lab ${place}/above/$number || exit; done`);
  await host.sh(atBottom(1_600), { user: "ai-tools" });
  const bytes = Number(await host.sh("wc -c </proc/self/mountinfo"));
  measured("list of mounts", { bytes });
  expect(bytes).toBeGreaterThan(4_500_000);
  await startCounting(host, "3601", "session", temper("deaf", "3601"));
  await startCounting(host, "3602", "exec", temper("deaf", "3602"));
  const result = await stopWatched(host, "--yes", ...options);
  await expectStopped(host, result);
  await expectAftermath(host, result.report);
});
