// SPDX-License-Identifier: Apache-2.0
// Promise: reclaiming gives the operator what the account owns in the project, all of it, and nothing beyond it, whatever
// the account does meanwhile.

import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { labHost } from "./kit/host.ts";
import {
  accountsFiles,
  beside,
  claimedProject,
  clearSessions,
  expectDone,
  inDirectory,
  owners,
} from "./kit/sessions.ts";

const host = await labHost();
const outside = "/srv/lab-outside";

beforeEach(async () => {
  await clearSessions(host);
  await host.sh(
    `rm -rf ${outside}; install -d -o ai-tools -g ai-tools ${outside}; install -o ai-tools /dev/null ${outside}/f`,
  );
});
afterEach(() => host.sh(`umount ${beside}/*/mnt* 2>/dev/null; rm -rf ${outside}`));

const reclaim = (path: string, user = "olga") => inDirectory(host, "/", ["--reclaim", path], { user });
const asAccount = (script: string) => host.sh(script, { user: "ai-tools" });

test("everything of the account's becomes the operator's, .git included, counts are shown, and nobody else's changes", async () => {
  const path = await claimedProject(host);
  await asAccount(
    `cd ${path} && mkdir -p a/b .git/objects && touch a/b/1 a/2 .git/objects/3 '.hidden' && ln -s /etc/passwd a/link && mkfifo a/fifo`,
  );
  await host.sh(`touch ${path}/roots; chown oscar ${path}/README`);
  const before = await accountsFiles(host, path);
  expect(before).toHaveLength(10);
  const done = await reclaim(path);
  await expectDone(done);
  expect(done.stdout).toMatch(/\b10\b/);
  expect(await accountsFiles(host, path)).toEqual([]);
  const after = await owners(host, path);
  expect(after).toContain("root roots");
  expect(after).toContain("oscar README");
  expect(after.filter((line) => line.startsWith("olga "))).toHaveLength(10);
  expect(await host.sh("stat -c %U /etc/passwd")).toBe("root\n");
});

test("a setuid file of the account does not become one of the operator's", async () => {
  const path = await claimedProject(host);
  await asAccount(`cd ${path} && cp /bin/sh s && chmod 6755 s`);
  await expectDone(await reclaim(path));
  expect(await host.sh(`stat -c '%U %a' ${path}/s`)).toBe("olga 755\n");
});

test.each([
  [
    "names with every kind of byte",
    `touch "$(printf 'a\\nb')" "$(printf '\\033[2J')" "$(printf '\\377\\376')" -- -rf ' ' '*'`,
  ],
  [
    "a tree deeper than PATH_MAX",
    `python3 -c 'import os
for i in range(60): os.mkdir("%0200d" % i); os.chdir("%0200d" % i)
open("f", "w")'`,
  ],
  ["1,000 levels", "i=0; while [ $i -lt 1000 ]; do mkdir d && cd d || exit; i=$((i+1)); done; touch f"],
  ["directories that it has closed to itself", "mkdir -p c/d && touch c/d/f && chmod 0 c/d c"],
  ["5,000 files in a directory", "mkdir many && cd many && seq 5000 | xargs touch"],
])("%s", async (_what, script) => {
  const path = await claimedProject(host);
  await asAccount(`cd ${path} && ${script}`);
  await expectDone(await reclaim(path));
  expect(await accountsFiles(host, path)).toEqual([]);
});

test("nothing is followed out of the project: links to directories and files, also while they are exchanged", async () => {
  const path = await claimedProject(host);
  await asAccount(`cd ${path} && ln -s ${outside} out && ln -s ${outside}/f f && mkdir -p d/e && touch d/e/f`);
  // Exchanges a directory with a link to one outside, as fast as it can, for as long as the file stands.
  const swapper = `import ctypes, os, time
os.chdir("${path}")
os.symlink("${outside}", "lure")
libc = ctypes.CDLL(None)
end = time.time() + 8
while time.time() < end:
    libc.renameat2(-100, b"d", -100, b"lure", 2)
`;
  await host.run(["sh", "-c", "cat >/run/lab/swapper.py"], { input: swapper });
  await host.sh("systemd-run --quiet --uid=ai-tools --unit=lab-swapper python3 /run/lab/swapper.py");
  for (let round = 0; round < 15; round++) await reclaim(path);
  await host.sh("systemctl stop lab-swapper");
  await expectDone(await reclaim(path));
  expect(await accountsFiles(host, path)).toEqual([]);
  expect(await host.sh(`stat -c %U ${outside} ${outside}/f`)).toBe("ai-tools\nai-tools\n");
});

test.each([
  ["another file system", "mount -t tmpfs tmpfs"],
  ["a bind mount of the same one", `mount --bind ${outside}`],
])("what is mounted in the project is left alone and said: %s", async (_what, mount) => {
  const path = await claimedProject(host);
  await asAccount(`cd ${path} && mkdir mnt && touch f`);
  await host.sh(`${mount} ${path}/mnt && chown ai-tools ${path}/mnt && install -o ai-tools /dev/null ${path}/mnt/in`);
  const { stdout } = await reclaim(path);
  expect(stdout).toMatch(/mount/);
  expect(await host.sh(`stat -c %U ${path}/f ${path}/mnt/in`)).toBe("olga\nai-tools\n");
});

test("works on a project of another file system", async () => {
  await host.sh(`mkdir ${beside}/disk && mount -t tmpfs tmpfs ${beside}/disk && chown olga ${beside}/disk`);
  try {
    const path = await claimedProject(host, `${beside}/disk/p`);
    await asAccount(`touch ${path}/f`);
    await expectDone(await reclaim(path));
    expect(await accountsFiles(host, path)).toEqual([]);
  } finally {
    await host.sh(`umount ${beside}/disk`);
  }
});

describe("who and where", () => {
  test("named by a directory below it too; the claim's operator and root alone", async () => {
    const path = await claimedProject(host);
    await asAccount(`mkdir ${path}/d && touch ${path}/d/f ${path}/g`);
    for (const user of ["oscar", "ursula"]) {
      expect((await reclaim(path, user)).code).not.toBe(0);
      expect(await accountsFiles(host, path)).toHaveLength(3);
    }
    // The whole project: a path below it could be a link by then.
    await expectDone(await reclaim(`${path}/d`));
    expect(await accountsFiles(host, path)).toEqual([]);
    await asAccount(`touch ${path}/h`);
    await expectDone(await reclaim(path, "root"));
    expect(await owners(host, path)).toContain("olga h");
  });

  test.each(["/", "/etc", "/var/lib/ai-tools", "/var/lib/ai-tools/home", "/usr", "/home/olga", "/srv"])(
    "%s is refused, by root too",
    async (path) => {
      for (const user of ["olga", "root"]) expect((await reclaim(path, user)).code).toBe(3);
      expect(await host.sh("stat -c %U /var/lib/ai-tools/home")).toBe("ai-tools\n");
    },
  );
});
