// SPDX-License-Identifier: Apache-2.0
// Promise: an operator lets the account into a directory of their own and into nothing else, and takes it back.

import { beforeEach, describe, expect, test } from "vitest";

import { labHost } from "./kit/host.ts";
import {
  accountsFiles,
  atHome,
  beside,
  claimedProject,
  claims,
  clearSessions,
  expectDone,
  inDirectory,
  shellEntryPoint,
  startSession,
} from "./kit/sessions.ts";

const host = await labHost();

beforeEach(() => clearSessions(host));

const claim = (path: string, user = "olga", directory = "/") =>
  inDirectory(host, directory, ["--claim", path], { user });
const unclaim = (path: string, user = "olga") => inDirectory(host, "/", ["--unclaim", path], { user });
const recorded = () => host.sh(`cat ${claims}/*.json 2>/dev/null || true`);
const acl = (path: string) => host.sh(`getfacl --absolute-names --omit-header '${path}'`);
const make = (path: string, user = "olga") => host.sh(`mkdir -p '${path}'`, { user });

describe("a claim", () => {
  test("lets the account work in the project, and what either makes the other can change", async () => {
    const path = await claimedProject(host);
    await host.sh(`cd ${path} && echo more >>README && mkdir -p made/deep && echo new >made/deep/file`, {
      user: "ai-tools",
    });
    await host.sh(`cd ${path} && echo again >>made/deep/file && echo hers >hers`, { user: "olga" });
    await host.sh(`cd ${path} && echo too >>hers && rm made/deep/file`, { user: "ai-tools" });
  });

  test("is recorded by root: who, when, which directory", async () => {
    const path = await claimedProject(host);
    const [inode, uid] = (await host.sh(`stat -c '%i %u' ${path}`)).trim().split(" ");
    expect(JSON.parse(await recorded())).toMatchObject({
      path,
      inode: Number(inode),
      operator: { name: "olga", uid: Number(uid) },
      since: expect.stringMatching(/^20\d\d-\d\d-\d\dT/),
    });
    expect(await host.sh(`stat -c '%U %a' ${claims} ${claims}/*`)).toBe("root 755\nroot 644\n");
  });

  test("again is no error and changes nothing", async () => {
    const path = await claimedProject(host);
    const before = [await recorded(), await acl(path)];
    const again = await claim(path);
    expect(again.code).toBe(0);
    expect(again.stdout).toMatch(/already/);
    expect([await recorded(), await acl(path)]).toEqual(before);
  });

  test.each(["with  spaces", "new\nline", "caf\u00e9 \u4e16", 'it\'s $HOME `id` %h : "q" \\'])(
    "takes a path like %j",
    async (name) => {
      const path = `${beside}/${name}`;
      await host.run(["mkdir", "-p", path], { user: "olga" });
      await expectDone(await claim(path));
      expect(JSON.parse(await recorded()).path).toBe(path);
      await expectDone(await host.run(["touch", `${path}/x`], { user: "ai-tools" }));
    },
  );

  test("takes a relative path from where the operator is, dots and slashes too", async () => {
    await make(`${beside}/a/b`);
    await expectDone(await claim(".//b/../b/", "olga", `${beside}/a`));
    expect(JSON.parse(await recorded()).path).toBe(`${beside}/a/b`);
  });

  test("opens no directory above the project: one below a closed home stays out of everybody's reach", async () => {
    await make(`${atHome}/p`);
    await expectDone(await claim(`${atHome}/p`));
    expect(await acl("/home/olga")).not.toMatch(/ai-tools/);
    expect((await host.run(["ls", atHome], { user: "ai-tools" })).code).not.toBe(0);
  });
});

describe("refused, and nothing is changed:", () => {
  const refuses = async (path: string, says: RegExp, user = "olga") => {
    const { code, stdout, stderr } = await claim(path, user);
    expect(`${stdout}${stderr}`).toMatch(says);
    expect(code).toBe(3);
    expect(await recorded()).toBe("");
  };

  test.each(["/", "/etc", "/usr/share", "/var/lib/ai-tools", "/var/lib/ai-tools/home", "/run", "/proc/self", "/tmp"])(
    "%s: a system tree",
    (path) => refuses(path, /ai-tools: refused: .*(system|whole|link)/),
  );

  test("a home as a whole, and what holds its owner's keys and settings", async () => {
    await make("/home/olga/.ssh/x");
    for (const path of ["/home/olga", "/home/olga/.ssh", "/home/olga/.ssh/x"]) await refuses(path, /home|settings/);
    expect(await acl("/home/olga")).not.toMatch(/ai-tools/);
  });

  test("somebody else's directory, root's, and a file", async () => {
    await host.sh(
      `install -d -o oscar ${beside}/his; install -d ${beside}/roots; install -o olga /dev/null ${beside}/f`,
    );
    await refuses(`${beside}/his`, /not yours/);
    await refuses(`${beside}/roots`, /not yours/);
    await refuses(`${beside}/f`, /director/);
    await refuses(`${beside}/missing`, /not|no such/i);
  });

  test("a path through a link, also one whose link comes first", async () => {
    await make(`${beside}/real/p`);
    await host.sh(`ln -s ${beside}/real ${beside}/link; ln -s real/p ${beside}/end`, { user: "olga" });
    await refuses(`${beside}/link/p`, /link/);
    await refuses(`${beside}/end`, /link/);
  });

  test("a directory whose parents somebody else can exchange, or the account cannot pass", async () => {
    await host.sh(`install -d -m 0777 ${beside}/open; install -d -o olga ${beside}/open/p
      install -d -o olga -m 0700 ${beside}/shut; install -d -o olga ${beside}/shut/p`);
    await refuses(`${beside}/open/p`, /writ|exchange|others/);
    await refuses(`${beside}/shut/p`, /shut/);
  });

  test("inside or around what is claimed already", async () => {
    await make(`${beside}/a/b/c`);
    await expectDone(await claim(`${beside}/a/b`));
    for (const path of [`${beside}/a`, `${beside}/a/b/c`]) {
      const { code, stderr } = await claim(path);
      expect(code).toBe(3);
      expect(stderr).toContain(`${beside}/a/b`);
    }
  });

  test.each([[[]], [["a", "b"]], [[""]], [["--force"]]])("%j is no path: usage", async (words) => {
    const { code } = await inDirectory(host, "/", ["--claim", ...words]);
    expect(code).toBe(2);
    expect(await recorded()).toBe("");
  });

  test("whoever is no operator, and the account itself", async () => {
    await host.sh(`install -d -o ursula ${beside}/u; install -d -o ai-tools ${beside}/t`);
    for (const [user, path] of [
      ["ursula", `${beside}/u`],
      ["ai-tools", `${beside}/t`],
    ] as const) {
      expect((await claim(path, user)).code).not.toBe(0);
      expect(await recorded()).toBe("");
    }
  });

  test("an operator who comes as root: a project is somebody's", async () => {
    await make(`${beside}/p`);
    expect((await claim(`${beside}/p`, "root")).code).not.toBe(0);
    expect(await recorded()).toBe("");
  });
});

describe("taking a claim back", () => {
  test("gives the files back, and the account is out", async () => {
    const path = await claimedProject(host);
    await host.sh(`cd ${path} && mkdir -p d/.git && echo x >d/.git/y && echo z >z`, { user: "ai-tools" });
    await expectDone(await unclaim(path));
    expect(await recorded()).toBe("");
    expect(await accountsFiles(host, path)).toEqual([]);
    expect(await host.sh(`getfacl -R --absolute-names ${path}`)).not.toMatch(/ai-tools/);
    expect((await host.run(["touch", `${path}/d/w`], { user: "ai-tools" })).code).not.toBe(0);
    const again = await unclaim(path);
    expect(again.code).toBe(0);
    expect(`${again.stdout}${again.stderr}`).toMatch(/not claimed/);
  });

  test("is the claim's operator's and root's, and nobody else's", async () => {
    const path = await claimedProject(host);
    for (const user of ["oscar", "ursula"]) expect((await unclaim(path, user)).code).not.toBe(0);
    expect(JSON.parse(await recorded()).path).toBe(path);
    await expectDone(await unclaim(path, "root"));
  });

  test("is refused while a session works there", async () => {
    const path = await claimedProject(host);
    const shell = await shellEntryPoint(host);
    const { ended, unit } = await startSession(host, path, [shell, "--", "-c", "sleep 60"]);
    const { code, stderr } = await unclaim(path);
    expect(code).toBe(3);
    expect(stderr).toContain(unit);
    await host.sh(`systemctl kill -s KILL ${unit}`);
    await ended;
  });

  test("of a directory that is gone removes the record", async () => {
    const path = await claimedProject(host);
    await host.sh(`rm -rf ${path}`);
    await expectDone(await unclaim(path));
    expect(await recorded()).toBe("");
  });
});
