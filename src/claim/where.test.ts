// SPDX-License-Identifier: Apache-2.0
// Which paths can be projects: each closed tree at its top, below it, and beside it.

import { describe, expect, test } from "vitest";
import { isBroughtIn, whyNoProject } from "./where.ts";

const homes = [
  { name: "olga", path: "/home/olga" },
  { name: "ursula", path: "/home/ursula" },
  { name: "root", path: "/root" },
  { name: "git", path: "/srv/git" },
  { name: "ai-tools", path: "/var/lib/ai-tools" },
];

describe("no project", () => {
  test.each([
    "/",
    "/data",
    "/home",
    "/srv",
    "/opt",
    "/mnt",
    "/media",
    "/tmp",
    "/var",
    "/root",
    "/var/tmp",
    "/var/www",
    "/lost+found",
  ])("%s, as a whole", (path) => expect(whyNoProject(path, homes)).toBeDefined());

  test.each(
    ["/etc", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/libx32", "/boot", "/dev", "/proc", "/sys", "/run"].concat(
      ["/var/lib", "/var/log", "/var/spool", "/var/cache", "/var/mail", "/var/run", "/var/lock", "/var/backups"],
      ["/var/lib/ai-tools", "/var/lib/ai-tools/home", "/etc/ai-tools", "/usr/lib/ai-tools", "/usr/local/src"],
    ),
  )("%s, and nothing below it", (path) => {
    expect(whyNoProject(path, homes)).toContain("belongs to the system");
    expect(whyNoProject(`${path}/x/y`, homes)).toContain("belongs to the system");
  });

  test.each([
    ["/home/olga", "is the home of olga"],
    ["/home/ursula", "is the home of ursula"],
    ["/srv/git", "is the home of git"],
    ["/home/olga/.ssh", "below .ssh in the home of olga"],
    ["/home/olga/.config/systemd/user", "below .config"],
    ["/home/olga/bin", "below bin"],
    ["/home/ursula/.x/y", "below .x in the home of ursula"],
    ["/srv/git/.ssh", "below .ssh"],
    ["/root/.ssh/x", "below .ssh"],
  ])("%s: %s", (path, why) => expect(whyNoProject(path, homes)).toContain(why));

  test("what contains somebody's home", () => {
    expect(whyNoProject("/srv/all", [{ name: "carol", path: "/srv/all/people/carol" }])).toContain("home of carol");
  });

  test("names in the answer are printable", () => {
    expect(whyNoProject("/home/olga/.\x1b[2J", homes)).toMatch(/^[\x20-\x7e]+$/);
  });
});

describe("a project can be", () => {
  test.each([
    "/home/olga/work",
    "/home/olga/work/.hidden",
    "/home/olga/binary",
    "/home/olga/work/bin",
    "/srv/git/repo",
    "/srv/site",
    "/data/x",
    "/opt/x",
    "/media/olga/disk",
    "/tmp/x",
    "/var/tmp/x",
    "/var/www/site",
    "/home/olga2",
    "/etcetera/x",
    "/variable/lib/x",
    "/home/olga/a b\nc",
  ])("%j", (path) => expect(whyNoProject(path, homes)).toBeUndefined());

  test("anywhere for all that an account without a home says", () => {
    expect(whyNoProject("/srv/site", [{ name: "nobody", path: "/nonexistent" }])).toBeUndefined();
  });
});

test("a session gets those projects mounted that lie in a tree which is its own", () => {
  for (const path of ["/home/olga/x", "/root/x", "/tmp/x", "/var/tmp/x"]) expect(isBroughtIn(path)).toBe(true);
  for (const path of ["/home", "/srv/x", "/homes/x", "/var/www/x", "/tmpx/y"]) expect(isBroughtIn(path)).toBe(false);
});
