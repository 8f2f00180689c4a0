// SPDX-License-Identifier: Apache-2.0
// A kernel with SELinux that enforces a policy in which the module `ai_tools` is, and a launcher with its label. A test
// breaks one thing. For tests only.

import { EINVAL, ENOENT } from "../stop/kernel.ts";
import type { HandMadeGround } from "./hand-made-ground.fixture.ts";
import { launcherPath } from "./places.ts";

/** @param changes of the whole: `flags` of each decision, levels, and the types that the policy knows */
export function enforcing(
  ground: HandMadeGround,
  changes: { flags?: number; levels?: boolean; knows?: readonly string[] } = {},
): void {
  const { flags = 0, levels = true, knows = ["ai_tools_t", "ai_tools_project_t"] } = changes;
  const ending = levels ? ":s0" : "";
  ground.files.set("/sys/fs/selinux/enforce", "1");
  ground.files.set("/sys/fs/selinux/mls", levels ? "1" : "0");
  ground.files.set("/sys/fs/selinux/class/process/index", "2");
  const contexts = knows.flatMap((type) => ["system_r", "object_r"].map((role) => `system_u:${role}:${type}${ending}`));
  ground.answers = (path, question) => {
    if (path === "/sys/fs/selinux/context") return contexts.includes(question) ? question : EINVAL;
    if (path !== "/sys/fs/selinux/access") return ENOENT;
    const [source = "", target = "", number] = question.split(" ");
    if (!contexts.includes(source) || !contexts.includes(target) || number !== "2") return EINVAL;
    return `3ff ffffffff 0 ffffffff 1 ${flags.toString(16)}`;
  };
  ground.fileContexts.set(launcherPath, `system_u:object_r:ai_tools_exec_t${ending}`);
}
