// SPDX-License-Identifier: Apache-2.0
// The launcher itself, by the shells that hosts have as /bin/sh, on a file tree that a test makes by hand: what no longer
// holds ends it with 125 before anything of the agent's is executed.

import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { holdPath, launcherPath } from "../ground/places.ts";
import { types } from "../ground/selinux.ts";
import { counterPath } from "../stop/announcement.ts";

const launcher = join(import.meta.dirname, "ai-tools-session");
const text = readFileSync(launcher, "utf8");
const looksAt = [counterPath, holdPath, "/proc/self/attr/current", "/sys/fs/selinux/enforce"];
const domain = "system_u:system_r:ai_tools_t:s0";
const other = "unconfined_u:unconfined_r:unconfined_t:s0-s0:c0.c1023";

let root: string;
let project: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "ai-tools-session-"));
  project = join(root, "project");
  mkdirSync(join(project, "sub"), { recursive: true });
});

afterEach(() => rmSync(root, { recursive: true }));

/** A file that the launcher looks at. */
function put(path: string, content: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), content);
}

/** What nobody can look at: a link to itself. */
function hide(path: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  symlinkSync(join(root, path), join(root, path));
}

interface Told {
  held?: string;
  id?: string;
  stops?: string;
  directory?: string;
  shell?: readonly string[];
}

/** Runs it with a program that says where it is; the paths that it looks at are in the tree. */
function launch({ held = "off", id, stops = "0", directory = join(project, "sub"), shell = ["dash"] }: Told = {}) {
  const script = join(root, "ai-tools-session");
  writeFileSync(
    script,
    looksAt.reduce((all, path) => all.replaceAll(path, join(root, path)), text),
  );
  const { dev, ino } = statSync(project);
  const words = [held, project, id ?? `${dev}:${ino}`, stops, directory, "/bin/sh", "-c", 'pwd; printf "<%s>" "$@"'];
  const [name = "", ...options] = shell;
  const ran = spawnSync(name, [...options, script, ...words, "agent", "a b", "", "$x"], { encoding: "utf8" });
  return { code: ran.status, out: ran.stdout, err: ran.stderr };
}

const started = () => ({ code: 0, out: `${join(project, "sub")}\n<a b><><$x>`, err: "" });
const refused = (why: string) => ({ code: 125, out: "", err: `ai-tools: ${why}: no session was started\n` });

describe.each([["dash"], ["bash", "--posix"]])("by %s", (...shell) => {
  test("it executes the agent's command line as it is, in its directory, where everything holds", () => {
    expect(launch({ shell })).toEqual(started());
    put(counterPath, "...");
    expect(launch({ shell, stops: "3" })).toEqual(started());
  });

  test.each([
    ["a stop has begun meanwhile", () => put(counterPath, "."), {}],
    ["whether a stop has begun meanwhile cannot be told", () => hide(dirname(counterPath)), {}],
    ["a hold was set meanwhile", () => put(holdPath, "{}"), {}],
    ["whether a hold was set meanwhile cannot be told", () => hide(dirname(holdPath)), {}],
    ["the project's directory is another one than the claimed one", () => undefined, { id: "1:1" }],
  ])("%s: it ends", (why, happens, told) => {
    happens();
    expect(launch({ ...told, shell })).toEqual(refused(why));
  });

  test("a directory that is gone ends it", () => {
    const { code, out, err } = launch({ shell, directory: join(project, "gone") });
    expect({ code, out }).toEqual({ code: 125, out: "" });
    expect(err).toContain("the directory cannot be entered");
  });

  describe("under SELinux", () => {
    const put0 = (context: string | undefined, enforce: string | undefined) => () => {
      if (context !== undefined) put("/proc/self/attr/current", `${context}\0`);
      if (enforce !== undefined) put("/sys/fs/selinux/enforce", enforce);
    };

    test.each([
      ["in its domain, which need not see whether it enforces", put0(domain, undefined), "ai_tools_t"],
      ["in its domain without levels", put0("system_u:system_r:ai_tools_t", "1"), "ai_tools_t"],
      ["in its domain, whatever was found before", put0(domain, "1"), "off"],
      ["permissive, without a domain for it", put0(other, "0"), "permissive"],
      ["in a container, which sees its own context and no kernel's answers", put0(other, undefined), "off"],
      ["another security module's word", put0("unconfined\n", undefined), "off"],
      ["a kernel that is just permissive", put0(other, "0"), "off"],
    ])("it goes on: %s", (_what, happens, held) => {
      happens();
      expect(launch({ held, shell })).toEqual(started());
    });

    const outside = "SELinux holds it in unconfined_t and not in ai_tools_t";
    const enforced = "SELinux is enforcing, and holds it in unconfined_t and not in ai_tools_t";
    const unknown = "whether SELinux is enforcing cannot be told, and it is not in ai_tools_t";
    test.each([
      ["another domain than was asked for", put0(other, "1"), "ai_tools_t", outside],
      ["the same where nothing is enforced", put0(other, "0"), "ai_tools_t", outside],
      ["no context at all", put0(undefined, "1"), "ai_tools_t", outside.replace("unconfined_t", "no domain")],
      [
        "a user or role of that name",
        put0("ai_tools_t:ai_tools_t:unconfined_t:ai_tools_t", "1"),
        "ai_tools_t",
        outside,
      ],
      ["enforcing since the look at permissive", put0(other, "1"), "permissive", enforced],
      ["enforcing although none was seen", put0(other, "1"), "off", enforced],
      ["permissive that cannot be seen any more", put0(other, undefined), "permissive", unknown],
      ["an answer that is none", put0(other, ""), "permissive", unknown],
      ["words of nobody's", put0(other, "0"), "whatever", unknown],
    ])("it ends: %s", (_what, happens, held, why) => {
      happens();
      expect(launch({ held, shell })).toEqual(refused(why));
    });

    test("it ends where the kernel's answer is there, empty as files of the kernel are, and cannot be opened", async () => {
      mkdirSync(join(root, "/sys/fs/selinux"), { recursive: true });
      const server = createServer().listen(join(root, "/sys/fs/selinux/enforce"));
      await once(server, "listening");
      expect(launch({ shell })).toEqual(refused(unknown));
      server.close();
    });

    test("it ends where the kernel's answer cannot be looked at", () => {
      hide("/sys/fs/selinux");
      expect(launch({ shell })).toEqual(refused(unknown));
    });
  });
});

test("without an agent's command line it does nothing", () => {
  const { status, stderr } = spawnSync("dash", [launcher, "off", "/", "0:0", "0", "/"], { encoding: "utf8" });
  expect(status).toBe(125);
  expect(stderr).toContain("for ai-tools --run alone");
});

test("it looks where the other programs write, and knows the domain by their name", () => {
  for (const word of [...looksAt, types.session, `Installed as ${launcherPath},`]) expect(text).toContain(word);
});
