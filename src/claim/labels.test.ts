// SPDX-License-Identifier: Apache-2.0
// SELinux labels at a claim and at its end: what is changed, what is remembered, and what keeps its own.

import { beforeEach, describe, expect, test } from "vitest";
import { relabelled } from "../ground/hand-made-ground.fixture.ts";
import { enforcing } from "../ground/hand-made-selinux.fixture.ts";
import { EACCES, EIO } from "../stop/kernel.ts";
import { claimOf, claimRecordPath } from "./claims.ts";
import { account, atHome, HandMadeProjects } from "./hand-made-projects.fixture.ts";
import { claimVerbs } from "./verbs.ts";

let ground: HandMadeProjects;

beforeEach(() => {
  ground = new HandMadeProjects();
  enforcing(ground);
  labelled("user_home_t");
});

function labelled(type: string): void {
  ground.fileContexts.set(atHome, `unconfined_u:object_r:${type}:s0`);
}

function asked(verb: "claim" | "unclaim"): Promise<number> {
  ground.called(verb, atHome);
  return claimVerbs(ground);
}

const inOrder = () =>
  ground.acts.filter((act) => /^relabel|setfacl|handBack|(replace|remove) \/var\/lib\/ai-tools\/claims\//.test(act));

describe("a claim", () => {
  test("remembers the directory's type first, and gives the type of projects to plain content of the two", async () => {
    expect(await asked("claim")).toBe(0);
    const file = claimRecordPath(atHome);
    expect(inOrder()).toEqual([
      `replace ${file}`,
      expect.stringContaining("setfacl -m"),
      expect.stringContaining("setfacl -R"),
      `relabel ${atHome} ai_tools_project_t`,
      `replace ${file}`,
    ]);
    expect(ground.relabels).toMatchObject([{ device: 1, inode: 71, owner: 1001, account, to: "ai_tools_project_t" }]);
    const from = ground.relabels[0]?.from ?? [];
    expect(from).toEqual(expect.arrayContaining(["user_home_t", "var_t", "unlabeled_t"]));
    for (const special of ["ssh_home_t", "bin_t", "httpd_sys_content_t", "etc_t"]) expect(from).not.toContain(special);
    expect(ground.recorded(atHome)).toMatchObject({ formerType: "user_home_t" });
  });

  test("once more labels what came in since, and remembers what was before the first", async () => {
    await asked("claim");
    labelled("ai_tools_project_t");
    expect(await asked("claim")).toBe(0);
    expect(ground.relabels).toHaveLength(2);
    expect(ground.recorded(atHome)).toMatchObject({ formerType: "user_home_t" });
  });

  test("says what keeps a type of its own, and names what could not be labelled", async () => {
    ground.relabelAnswer = () => relabelled({ left: 3, failed: 1, failures: ["a: no room"] });
    expect(await asked("claim")).toBe(1);
    expect(ground.printed.out).toContain("3 of what is in it has an SELinux type of its own and keeps it");
    expect(ground.printed.err).toContain("1 could not be given the SELinux type ai_tools_project_t:\n  a: no room");
  });

  test("of a directory that a policy has put under a type of its own is refused, with what would change that", async () => {
    labelled("ssh_home_t");
    expect(await asked("claim")).toBe(3);
    expect(ground.printed.err).toContain(`has the SELinux type ssh_home_t`);
    expect(ground.printed.err).toContain(`chcon -R -t user_home_t ${atHome}`);
    expect(inOrder()).toEqual([]);
  });

  test.each<[string, () => unknown]>([
    ["there is no SELinux", () => ground.files.delete("/sys/fs/selinux/enforce")],
    ["its policy has no type for projects", () => enforcing(ground, { knows: ["ai_tools_t"] })],
  ])("changes no label where %s", async (_what, change) => {
    change();
    expect(await asked("claim")).toBe(0);
    expect(ground.relabels).toEqual([]);
    expect(ground.recorded(atHome)).not.toHaveProperty("formerType");
  });

  test.each<[string, () => unknown]>([
    ["the policy cannot be asked", () => (ground.answers = () => EACCES)],
    ["the directory's label cannot be read", () => ground.fileContexts.set(atHome, EIO)],
  ])("is refused where %s", async (_what, change) => {
    change();
    expect(await asked("claim")).toBe(3);
    expect(inOrder()).toEqual([]);
  });

  test("that could change no label is not finished, and cannot be used", async () => {
    ground.relabelAnswer = () => EIO;
    expect(await asked("claim")).toBe(1);
    expect(ground.printed.err).toContain("errno 5");
    expect(claimOf(ground, atHome)).toContain("was interrupted");
  });
});

describe("the end of a claim", () => {
  test("gives back the type that the directory had, last, and only to what a claim or a session has labelled", async () => {
    ground.claimed(atHome, { formerType: "user_home_t" });
    expect(await asked("unclaim")).toBe(0);
    expect(inOrder().slice(-2)).toEqual([`relabel ${atHome} user_home_t`, `remove ${claimRecordPath(atHome)}`]);
    expect(ground.relabels[0]?.from).toEqual(["ai_tools_project_t", "ai_tools_home_t", "ai_tools_tmp_t"]);
  });

  test("names what could not be labelled", async () => {
    ground.claimed(atHome, { formerType: "user_home_t" });
    ground.relabelAnswer = () => relabelled({ failed: 1, failures: ["a: no room"] });
    expect(await asked("unclaim")).toBe(1);
    expect(ground.printed.err).toContain("1 could not be given the SELinux type that the project had:\n  a: no room");
  });

  test("that can change no label stays to be finished", async () => {
    ground.claimed(atHome, { formerType: "user_home_t" });
    ground.relabelAnswer = () => EIO;
    expect(await asked("unclaim")).toBe(1);
    expect(ground.recorded(atHome)).toMatchObject({ unfinished: "unclaim" });
  });

  test.each<[string, () => unknown]>([
    ["the claim changed none", () => ground.claimed(atHome)],
    [
      "there is no SELinux any more",
      () => {
        ground.files.delete("/sys/fs/selinux/enforce");
        ground.claimed(atHome, { formerType: "user_home_t" });
      },
    ],
  ])("changes no label where %s", async (_what, change) => {
    change();
    expect(await asked("unclaim")).toBe(0);
    expect(ground.relabels).toEqual([]);
  });

  test("of a record with a type that is none is told to be unreadable", async () => {
    ground.claimed(atHome, { formerType: "a b:c" });
    expect(await asked("unclaim")).toBe(3);
    expect(ground.relabels).toEqual([]);
  });
});
