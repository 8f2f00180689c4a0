// SPDX-License-Identifier: Apache-2.0
// What mmdebstrap is told for every image of the lab: this machine's own archive and way of fetching, and the recipe by
// which a fresh Debian tree becomes a lab host.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Refusal } from "../cleanup.ts";
import { inProject } from "../machine.ts";
import { logged } from "../progress.ts";
import { runProgram } from "./program.ts";

/** What every host has beside Debian's required packages. */
export const PACKAGES = [
  ...["systemd", "systemd-sysv", "dbus", "dbus-user-session", "libpam-systemd", "sudo"],
  ...["procps", "iproute2", "util-linux", "passwd", "logrotate", "cron", "at", "strace", "python3", "acl", "git"],
  // Two setuid sandboxes and a container engine, as sessions and bystanders; file systems to freeze.
  ...["firejail", "chromium-sandbox", "crun", "e2fsprogs"],
  ...["rpm", "dnf"],
];

/** Its scripts run inside the tree: those of every host. */
export const RECIPE_FOLDER = inProject("src", "tooling", "lab", "image");

/** These packages and what they need, without what only people read. */
export function treeOptions(aptConfiguration: string, packages: readonly string[]): string[] {
  return [
    "--variant=minbase",
    `--include=${packages.join(",")}`,
    `--aptopt=${aptConfiguration}`,
    '--aptopt=APT::Install-Recommends "false"',
    ...["man", "doc", "locale", "info"].map((folder) => `--dpkgopt=path-exclude=/usr/share/${folder}/*`),
  ];
}

/** Packages, and the recipe that is in the folder RECIPE of the environment. */
export function mmdebstrapOptions(aptConfiguration: string, packages: readonly string[] = PACKAGES): string[] {
  return [
    ...treeOptions(aptConfiguration, packages),
    `--customize-hook=mkdir "$1/tmp/recipe" && cp "$RECIPE"/* "$1/tmp/recipe/"`,
    `--customize-hook=chroot "$1" sh /tmp/recipe/prepare.sh`,
    `--customize-hook=rm -r "$1/tmp/recipe"`,
  ];
}

/** The trap makes the shell wait for mmdebstrap, which takes its tree away when it is interrupted. */
const MAKE_ONCE = `
  trap 'exit 143' INT TERM
  exec 9>"$KEPT.lock"
  flock 9
  test -e "$KEPT" || { mmdebstrap "$@" && mv "$UNFINISHED" "$KEPT"; }`;

export interface Debootstrap {
  suite: string;
  /** Where the tree, or its archive, is to be: a path in the cache. */
  kept: string;
  /** Of the unfinished one beside it: its form, for mmdebstrap (`.tar`), or nothing. */
  ending?: string;
  /** Of mmdebstrap, with the path of apt's configuration. */
  options(aptConfiguration: string): string[];
  environment: Record<string, string>;
  /** Name of the log. */
  log: string;
}

/**
 * Makes a tree or its archive under another name first, so that an interrupted run leaves no half one; the lock lets a
 * second run wait for the first one's instead of making its own.
 */
export async function debootstrapOnce({ suite, kept, ending = "", options, environment, log }: Debootstrap) {
  const work = mkdtempSync(join(tmpdir(), "ai-tools-debootstrap-"));
  const unfinished = `${kept}.${process.pid}${ending}`;
  try {
    const aptConfiguration = join(work, "acquire.conf");
    writeFileSync(aptConfiguration, await acquireConfiguration());
    const argv = [...options(aptConfiguration), suite, unfinished, `deb ${await mirrorOf(suite)} ${suite} main`];
    await logged(log, ["sh", "-c", MAKE_ONCE, "sh", ...argv], {
      env: { ...environment, KEPT: kept, UNFINISHED: unfinished },
    });
  } finally {
    rmSync(work, { recursive: true, force: true });
    rmSync(unfinished, { recursive: true, force: true });
  }
}

/**
 * The archive that this machine itself installs from, asked for another suite where need be.
 * `apt-get indextargets` knows every format of the sources, apt-get(8).
 */
export async function mirrorOf(suite: string): Promise<string> {
  const format = "$(RELEASE) $(COMPONENT) $(REPO_URI)";
  const { stdout } = await runProgram(["apt-get", "indextargets", "--format", format, "Created-By: Packages"]);
  const targets = stdout.split("\n").map((line) => line.split(" "));
  const inMain = targets.filter(([release, component]) => component === "main" && !release?.includes("-"));
  const uri = (inMain.find(([release]) => release === suite) ?? inMain[0])?.[2];
  if (uri !== undefined) return uri;
  throw new Refusal(
    `apt on this machine has no Debian archive to make the ${suite} image from: add one to /etc/apt/sources.list.d and run apt-get update.`,
  );
}

/** How this machine's apt fetches (proxies, time checks, ...), without what only describes the formats of archives. */
export async function acquireConfiguration(): Promise<string> {
  const { stdout } = await runProgram(["apt-config", "dump", "Acquire"]);
  const lines = stdout
    .split("\n")
    .filter((line) => !/^Acquire(::(IndexTargets|cdrom|Changelogs|CompressionTypes)\b.*)? /.test(line));
  return lines.join("\n");
}
