// SPDX-License-Identifier: Apache-2.0
// What SELinux is to hold a session in: each state of a host has its outcome and its sentence.

import { describe, expect, test } from "vitest";
import type { Enabled } from "../ground/selinux.ts";
import { confinementOf } from "./confinement.ts";

const context = "system_u:system_r:ai_tools_t:s0";
const enforcing: Enabled = {
  mode: "enforcing",
  session: context,
  isDomainPermissive: false,
  launcher: "system_u:object_r:ai_tools_exec_t:s0",
};
const permissive: Enabled = { ...enforcing, mode: "permissive" };
const mislabelled = "system_u:object_r:bin_t:s0";

describe("a session starts", () => {
  test("as ever without SELinux", () => {
    expect(confinementOf({ mode: "off" })).toEqual({ context: undefined, held: "off" });
  });

  test("in its domain, and nothing needs to be said", () => {
    expect(confinementOf(enforcing)).toEqual({ context, held: "ai_tools_t" });
  });

  test.each([
    ["with the policy", permissive, { context, held: "ai_tools_t" }],
    ["without it", { ...permissive, session: undefined }, { context: undefined, held: "permissive" }],
    [
      "with a launcher that has another label",
      { ...permissive, launcher: mislabelled },
      { context, held: "ai_tools_t" },
    ],
  ] as const)("where SELinux is permissive, %s, and that is said", (_what, selinux, confinement) => {
    expect(confinementOf(selinux)).toEqual({ ...confinement, warning: "not confined: SELinux is permissive" });
  });

  test("where it is permissive for the domain alone, and that is said", () => {
    const warning = "not confined: SELinux is permissive for ai_tools_t";
    expect(confinementOf({ ...enforcing, isDomainPermissive: true })).toEqual({ context, held: "ai_tools_t", warning });
  });
});

describe("no session starts", () => {
  test.each([
    [
      "what holds cannot be told",
      { mode: "unknown", why: "enforce cannot be read (errno 13)" },
      "cannot be told: enforce",
    ],
    ["the policy is not there", { ...enforcing, session: undefined }, "as root: dnf install ai-tools-selinux"],
    [
      "the launcher has another label",
      { ...enforcing, launcher: mislabelled },
      "system_u:object_r:bin_t:s0 and not ai_tools_exec_t; as root: restorecon -RFv /usr/lib/ai-tools",
    ],
    ["the launcher has none", { ...enforcing, launcher: 61 }, "cannot be read (errno 61)"],
  ] as const)("where SELinux enforces and %s", (_what, selinux, sentence) => {
    const confinement = confinementOf(selinux);
    expect(confinement).toEqual(expect.any(String));
    expect(confinement).toContain(sentence);
  });
});
