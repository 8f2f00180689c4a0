// SPDX-License-Identifier: Apache-2.0
// A Debian tree of one suite, kept in the cache, with what compiles, links and asks an SELinux policy there: the build
// machine's own packages and settings stay as they are. Programs run in it by chroot; nothing of it is ever started.

import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { Refusal } from "../cleanup.ts";
import { debootstrapOnce, treeOptions } from "../lab/debootstrap.ts";
import { type Suite, suites } from "../lab/image.ts";
import { cacheDirectory, inProject, isRoot } from "../machine.ts";
import { type LoggedResult, logged, step } from "../progress.ts";
import { ensurePackages } from "../setup/apt.ts";
import { packagesFor } from "../setup/packages.ts";

/** What a tree has beside Debian's required packages. */
const PACKAGES = [
  ...["selinux-policy-dev", "checkpolicy", "policycoreutils", "semodule-utils", "secilc", "setools"],
  ...["make", "m4", "python3", "bzip2"],
];
const PREPARE = inProject("src", "tooling", "policy", "base-policy.sh");

export interface PolicyTree {
  suite: Suite;
  /** Of its recipe. */
  hash: string;
  path: string;
}

/** Makes sure that the tree of a suite is in the cache: a minute or two the first time, some 300 MB. */
export async function ensureTree(suite: Suite): Promise<PolicyTree> {
  if (!isRoot()) throw new Refusal("The SELinux policy is compiled in a tree of its own, by chroot: run this as root.");
  const hash = createHash("sha256").update(JSON.stringify([suite, optionsOf("acquire.conf")]));
  const tree = { suite, hash: hash.update(readFileSync(PREPARE)).digest("hex").slice(0, 12) };
  const path = join(cacheDirectory("policy"), `tree-${suite}-${tree.hash}`);
  if (!existsSync(path)) {
    await ensurePackages(packagesFor.policy);
    await step(`making the tree for the SELinux policy of ${suite} (a minute or two)`, () =>
      debootstrapOnce({
        suite,
        kept: path,
        options: optionsOf,
        environment: { PREPARE },
        log: `policy-tree-${suite}`,
      }),
    );
    removeOldTrees(suite, path);
  }
  return { ...tree, path };
}

/**
 * Runs a program in a folder inside the tree that holds copies of files, and goes again afterwards.
 * @param collect called with the folder's path when the program has ended, to take results out
 */
export async function inTree<T>(
  tree: PolicyTree,
  name: string,
  files: Record<string, string>,
  argv: string[],
  collect: (result: LoggedResult, folder: string) => T,
): Promise<T> {
  const folder = mkdtempSync(join(tree.path, "tmp", "policy-"));
  try {
    for (const [file, from] of Object.entries(files)) cpSync(from, join(folder, file));
    const script = 'cd "$1" && shift && exec "$@"';
    const inside = ["sh", "-c", script, "sh", `/tmp/${basename(folder)}`, ...argv];
    const result = await logged(`${name}-${tree.suite}`, ["chroot", tree.path, ...inside], {
      anyCode: true,
      env: { LC_ALL: "C.UTF-8", PATH: "/usr/sbin:/usr/bin:/sbin:/bin" },
    });
    return collect(result, folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function optionsOf(aptConfiguration: string): string[] {
  return [
    ...treeOptions(aptConfiguration, PACKAGES),
    `--customize-hook=cp "$PREPARE" "$1/tmp/prepare.sh" && chroot "$1" sh /tmp/prepare.sh && rm "$1/tmp/prepare.sh"`,
  ];
}

/** Those that an earlier recipe made, and what a run that was killed has left. */
function removeOldTrees(suite: Suite, current: string): void {
  const folder = cacheDirectory("policy");
  const old = readdirSync(folder).filter((name) => name.startsWith(`tree-${suite}-`));
  for (const name of old.filter((other) => !other.startsWith(basename(current))))
    rmSync(join(folder, name), { recursive: true, force: true });
}

export { type Suite, suites };
