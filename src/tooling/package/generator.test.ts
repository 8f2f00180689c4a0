// SPDX-License-Identifier: Apache-2.0
// The generator of the drop-ins, run as PID 1 runs it, on a root folder made by hand.

import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { inProject } from "../machine.ts";

const generator = inProject("systemd", "ai-tools-generator");
const account = "ai-tools:x:647:647:Sandbox:/var/lib/ai-tools:/usr/sbin/nologin";
let root: string;
let out: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "generator-"));
  out = join(root, "out");
  mkdirSync(out);
});

afterEach(() => rmSync(root, { recursive: true, force: true }));

function given(path: string, text: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}

/** Runs it with these folders and says what it wrote, by path. */
function generate(...folders: string[]): Record<string, string> {
  const ran = spawnSync("/bin/sh", [generator, ...folders], {
    encoding: "utf8",
    env: { PATH: "/usr/bin:/bin", AI_TOOLS_GENERATOR_ROOT: root },
  });
  expect({ status: ran.status, stderr: ran.stderr, stdout: ran.stdout }).toEqual({ status: 0, stderr: "", stdout: "" });
  const files = readdirSync(out, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return Object.fromEntries(
    files.map((file) => {
      const path = join(file.parentPath, file.name);
      return [path.slice(out.length + 1), readFileSync(path, "utf8")];
    }),
  );
}

const sliceFile = "user-647.slice.d/50-ai-tools.conf";
const managerFile = "user@647.service.d/50-ai-tools.conf";

describe("with the account", () => {
  test("exactly the drop-ins of its slice and of its manager are written", () => {
    given("etc/passwd", `root:x:0:0::/root:/bin/sh\n${account}\nursula:x:1002:1002::/:/bin/sh\n`);
    given("sys/devices/system/cpu/online", "0-3\n");
    const written = generate(out, `${out}.early`, `${out}.late`);
    expect(Object.keys(written).sort()).toEqual([sliceFile, managerFile]);
    expect(written[sliceFile]?.split("\n").filter((line) => !line.startsWith("#"))).toEqual([
      "[Slice]",
      "CPUWeight=20",
      "IOWeight=20",
      "CPUQuota=350%",
      "TasksMax=8192",
      "MemoryHigh=80%",
      "",
    ]);
    expect(written[managerFile]?.split("\n").filter((line) => !line.startsWith("#"))).toEqual([
      "[Service]",
      "Environment=SYSTEMD_UNIT_PATH=/etc/systemd/user:/usr/lib/systemd/user",
      "",
    ]);
    expect(readdirSync(root).sort()).toEqual(["etc", "out", "sys"]);
    expect(statSync(join(out, sliceFile)).mode & 0o777).toBe(0o644);
  });

  test.each([
    ["0\n", "50%"],
    ["0-1\n", "150%"],
    ["0-3,6,8-9\n", "650%"],
  ])("half a processor of %j stays with everybody else", (online, quota) => {
    given("etc/passwd", `${account}\n`);
    given("sys/devices/system/cpu/online", online);
    expect(generate(out)[sliceFile]).toContain(`\nCPUQuota=${quota}\n`);
  });

  test.each([[undefined], [""], ["junk; reboot\n"], ["-\n"]])(
    "a list of processors like %j sets no quota",
    (online) => {
      given("etc/passwd", account);
      if (online !== undefined) given("sys/devices/system/cpu/online", online);
      expect(generate(out)[sliceFile]).not.toContain("CPUQuota");
    },
  );

  test("a second run writes the same again", () => {
    given("etc/passwd", `${account}\n`);
    expect(generate(out)).toEqual(generate(out));
  });
});

describe("nothing is written", () => {
  test.each([
    ["without a passwd", undefined],
    ["of an empty passwd", ""],
    ["without the account", "root:x:0:0::/root:/bin/sh\n"],
    ["for a name that only begins like it", "ai-tools2:x:647:647::/:/bin/sh\n"],
    ["for root's number", "ai-tools:x:0:0::/:/bin/sh\n"],
    ["for root's number in another spelling", "ai-tools:x:00:0::/:/bin/sh\n"],
    ["for no number", "ai-tools:x::0::/:/bin/sh\n"],
    ["for what would be another path", "ai-tools:x:../../etc:0::/:/bin/sh\n"],
    ["for a number that no uid has", "ai-tools:x:99999999999:0::/:/bin/sh\n"],
  ])("%s", (_name, passwd) => {
    if (passwd !== undefined) given("etc/passwd", passwd);
    expect(generate(out)).toEqual({});
  });

  test("without a folder to write to", () => {
    given("etc/passwd", `${account}\n`);
    expect(generate()).toEqual({});
  });
});
