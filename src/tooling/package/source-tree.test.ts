// SPDX-License-Identifier: Apache-2.0
// What goes into the package and must be as it is: the sudo rule, the accounts, and a spec that says the same as the
// files that are the home of each fact.

import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { programs } from "../build/build.ts";
import { quickjs } from "../build/quickjs.ts";
import { inProject, productVersion } from "../machine.ts";
import { changelogTime, disagreementOf } from "./source-tree.ts";

const spec = readFileSync(inProject("rpm", "ai-tools.spec"), "utf8");

/** The lines of a file that are neither comments nor empty. */
function rules(...path: string[]): string[] {
  const lines = readFileSync(inProject(...path), "utf8").split("\n");
  return lines.filter((line) => line !== "" && !line.startsWith("#"));
}

describe("the sudoers drop-in", () => {
  test("grants the stop without an argument and the helpers of a session to the operators' group, and nothing else", () => {
    expect(rules("sudoers.d", "ai-tools").map((line) => line.trim())).toEqual([
      'Cmnd_Alias AI_TOOLS_STOP = /usr/libexec/ai-tools/ai-tools-stop ""',
      "Defaults!AI_TOOLS_STOP !use_pty, !pam_session, !pam_setcred, !requiretty, !log_input, !log_output, !syslog, !logfile",
      "%ai-ops ALL = (root) NOPASSWD: AI_TOOLS_STOP",
      "Cmnd_Alias AI_TOOLS_SESSION = /usr/libexec/ai-tools/ai-tools-claim, /usr/libexec/ai-tools/ai-tools-run, \\",
      "/usr/libexec/ai-tools/ai-tools-hold",
      "Defaults!AI_TOOLS_SESSION !use_pty, !pam_session, !pam_setcred, !requiretty, !log_input, !log_output",
      "%ai-ops ALL = (root) NOPASSWD: AI_TOOLS_SESSION",
    ]);
  });

  test("says why for each of its Defaults", () => {
    const text = readFileSync(inProject("sudoers.d", "ai-tools"), "utf8");
    const defaults =
      rules("sudoers.d", "ai-tools")
        .join("\n")
        .match(/![a-z_]+/g) ?? [];
    expect(defaults).toHaveLength(14);
    // One reason can be that of several.
    for (const setting of defaults) {
      expect(text).toMatch(new RegExp(`^# {3}(?:![a-z_]+, )*${setting}(?:, ![a-z_]+)* +\\w`, "m"));
    }
  });
});

test("the accounts are a locked one with root's home and a group without a member", () => {
  expect(rules("systemd", "ai-tools.sysusers")).toEqual([
    'u ai-tools 647 "Sandbox account of AI coding agents" /var/lib/ai-tools /usr/sbin/nologin',
    "g ai-ops -",
  ]);
});

describe("the spec", () => {
  test("compiles every program of the build, and installs each helper for root alone", () => {
    const compiled = /^for program in (.*); do$/m.exec(spec)?.[1]?.split(" ");
    expect(compiled).toEqual(Object.keys(programs));
    const installed = /^for helper in (ai-tools.*); do$/m.exec(spec)?.[1]?.split(" ");
    expect(installed).toEqual(Object.keys(programs).filter((name) => name !== "ai-tools"));
    for (const name of installed ?? [])
      expect(spec).toContain(`%attr(0700,root,root) %{_libexecdir}/ai-tools/${name}\n`);
  });

  test("has the version of package.json and the pinned QuickJS", () => {
    expect(disagreementOf(spec, productVersion())).toBeUndefined();
  });

  test("is refused with what to do where the version differs", () => {
    expect(disagreementOf(spec, "9.9.9")).toMatch(/package\.json says 9\.9\.9: set it there/);
  });

  test("is refused where it pins another archive", () => {
    expect(disagreementOf(spec.replace(quickjs.sha256, "0".repeat(64)), productVersion())).toMatch(/does not pin/);
  });

  test("replaces the sudo rule on an upgrade, also where it was edited", () => {
    expect(spec).toMatch(/^%attr\(0440,root,root\) %config %\{_sysconfdir\}\/sudoers\.d\/ai-tools$/m);
  });

  test("removes no account and restarts nothing", () => {
    expect(spec).not.toMatch(/^%(pre|post)un\b|userdel|groupdel|^%systemd_/m);
  });
});

test("the time of a build is midnight UTC of the newest changelog entry", () => {
  const text = "%changelog\n* Wed Dec  2 2026 Somebody - 2-1\n- b\n\n* Mon Nov 30 2026 Somebody - 1-1\n- a\n";
  expect(changelogTime(text).toISOString()).toBe("2026-12-02T00:00:00.000Z");
  expect(() => changelogTime("%changelog\n")).toThrow(/no changelog entry/);
});
