// SPDX-License-Identifier: Apache-2.0
// The source of the SELinux policy says nothing that it may not, and the lint finds it where it does.

import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { policySource } from "./build.ts";
import { FORBIDDEN, lintPolicy } from "./lint.ts";

const te = readFileSync(policySource("ai_tools.te"), "utf8");

test("the policy calls no interface that gives more than it says, and explains each grant", () => {
  expect(te).toMatch(/^policy_module\(ai_tools,/);
  expect(lintPolicy(te)).toEqual([]);
});

describe("a policy is refused", () => {
  test.each([
    "auth_use_nsswitch",
    "auth_read_passwd",
    "init_dbus_chat",
    "init_stream_connect",
    "dbus_system_bus_client",
    "systemd_dbus_chat_logind",
    "unconfined_domain",
    "userdom_base_user_template",
    "userdom_login_user_template",
    "userdom_manage_user_home_content_files",
    "fs_manage_cgroup_files",
    "fs_rw_cgroup_files",
    "domain_dyntrans_type",
    "domain_type",
    "sudo_exec",
    "auth_domtrans_chk_passwd",
  ])("that calls %s", (name) => {
    const wrong = `${te}\n# For a reason.\n${name}(ai_tools_t)\n`;
    expect(lintPolicy(wrong)).toEqual([expect.stringContaining(`${name} must not be used`)]);
  });

  test("that calls one inside of another macro", () => {
    const wrong = "# For a reason.\ntunable_policy(`x',` auth_use_nsswitch(ai_tools_t) ')";
    expect(lintPolicy(wrong)).toHaveLength(1);
  });

  test.each([
    "allow ai_tools_t etc_t:file read;",
    "dev_rw_null(ai_tools_t)",
    "\tneverallow ai_tools_t etc_t:file write;",
  ])("that gives no reason for: %s", (grant) => {
    expect(lintPolicy(`${te}\n\n${grant}\n`)).toEqual([expect.stringContaining("say in a sentence")]);
  });
});

test("a name in a comment, or asked for by ifdef, is no call", () => {
  expect(lintPolicy("# Not auth_use_nsswitch(ai_tools_t).\nifdef(`systemd_x',`\n')")).toEqual([]);
});

test("each forbidden interface has its reason", () => {
  for (const { because } of FORBIDDEN) expect(because).toMatch(/\w \w/);
});
