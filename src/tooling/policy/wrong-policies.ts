// SPDX-License-Identifier: Apache-2.0
// Policies with one thing wrong, each of which one of the checks must refuse: the proof that the checks can fail.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Refusal } from "../cleanup.ts";
import { buildPolicy, policySource } from "./build.ts";
import { checkRules } from "./expected.ts";
import { lintPolicy } from "./lint.ts";
import type { Suite } from "./tree.ts";

interface WrongPolicy {
  /** What it would let a session do. */
  name: string;
  /** Lines at the end of the .te file. */
  added: string;
  /** A line of the file that is taken away. */
  without?: RegExp;
  /** Which of the checks has to refuse it; the others may, too. */
  refusedBy: "lint" | "neverallow" | "rules";
}

export const wrongPolicies: readonly WrongPolicy[] = [
  {
    name: "move to another control group",
    added: "allow ai_tools_t cgroup_t:file { open write };",
    refusedBy: "neverallow",
  },
  { name: "signal PID 1", added: "allow ai_tools_t init_t:process signal;", refusedBy: "neverallow" },
  { name: "trace a person's processes", added: "allow ai_tools_t userdomain:process ptrace;", refusedBy: "neverallow" },
  {
    name: "ask the system bus",
    added: "allow ai_tools_t system_dbusd_t:unix_stream_socket connectto;",
    refusedBy: "neverallow",
  },
  {
    name: "read the helpers",
    added: "allow ai_tools_t ai_tools_helper_exec_t:file { open read };",
    refusedBy: "neverallow",
  },
  {
    name: "append to the trail",
    added: "allow ai_tools_t ai_tools_log_t:file { open append };",
    refusedBy: "neverallow",
  },
  { name: "write a hold", added: "allow ai_tools_t ai_tools_var_lib_t:file { open write };", refusedBy: "neverallow" },
  { name: "plant a file in /etc", added: "allow ai_tools_t etc_t:file create;", refusedBy: "neverallow" },
  { name: "open a person's file", added: "allow ai_tools_t user_home_t:file open;", refusedBy: "neverallow" },
  { name: "have a capability", added: "allow ai_tools_t self:capability sys_ptrace;", refusedBy: "neverallow" },
  {
    name: "be entered by anybody",
    added: "allow unconfined_domain_type ai_tools_t:process transition;",
    refusedBy: "neverallow",
  },
  { name: "be entered through any program", added: "allow ai_tools_t bin_t:file entrypoint;", refusedBy: "neverallow" },
  { name: "ask PID 1 by an interface", added: "init_dbus_chat(ai_tools_t)", refusedBy: "lint" },
  { name: "read control groups by an interface", added: "auth_use_nsswitch(ai_tools_t)", refusedBy: "lint" },
  { name: "reach every port always", added: "corenet_tcp_connect_all_ports(ai_tools_t)", refusedBy: "rules" },
  {
    name: "hear of the kernel's events",
    added: "allow ai_tools_t self:netlink_kobject_uevent_socket create_socket_perms;",
    refusedBy: "rules",
  },
  { name: "be silent about control groups", added: "dontaudit ai_tools_t cgroup_t:dir search;", refusedBy: "rules" },
  {
    name: "come in without NoNewPrivileges alone",
    added: "",
    without: /^allow init_t ai_tools_t:process2 .*$/m,
    refusedBy: "rules",
  },
];

/** Tries every wrong policy on a suite; a sentence for each that its check does not refuse. */
export async function tryWrongPolicies(suite: Suite): Promise<string[]> {
  const right = readFileSync(policySource("ai_tools.te"), "utf8");
  const folder = mkdtempSync(join(tmpdir(), "ai-tools-wrong-policy-"));
  const missed: string[] = [];
  try {
    for (const { name, added, without, refusedBy } of wrongPolicies) {
      const wrong = `${without ? right.replace(without, "") : right}\n# Wrong on purpose.\n${added}\n`;
      if (without && !without.test(right)) throw new Refusal(`there is nothing to take away for: ${name}`);
      const by = await refusal(suite, wrong, join(folder, "ai_tools.te"));
      if (!by.includes(refusedBy)) missed.push(`${suite}: no ${refusedBy} check refused a policy to ${name}.`);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
  return missed;
}

async function refusal(suite: Suite, te: string, path: string): Promise<string[]> {
  if (lintPolicy(te).length > 0) return ["lint"];
  writeFileSync(path, te);
  try {
    const policy = await buildPolicy(suite, { "ai_tools.te": path });
    try {
      return (await checkRules(policy)).length > 0 ? ["rules"] : [];
    } finally {
      rmSync(dirname(policy.module), { recursive: true });
    }
  } catch (error) {
    if (error instanceof Refusal && error.message.includes("neverallow check failed")) return ["neverallow"];
    throw error;
  }
}
