// SPDX-License-Identifier: Apache-2.0
// What mmdebstrap is told for every image of the lab: this machine's own archive and way of fetching, and the recipe by
// which a fresh Debian tree becomes a lab host.

import { Refusal } from "../cleanup.ts";
import { inProject } from "../machine.ts";
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

/** Packages, and the recipe that is in the folder RECIPE of the environment. */
export function mmdebstrapOptions(aptConfiguration: string, packages: readonly string[] = PACKAGES): string[] {
  return [
    "--variant=minbase",
    `--include=${packages.join(",")}`,
    `--aptopt=${aptConfiguration}`,
    '--aptopt=APT::Install-Recommends "false"',
    ...["man", "doc", "locale", "info"].map((folder) => `--dpkgopt=path-exclude=/usr/share/${folder}/*`),
    `--customize-hook=mkdir "$1/tmp/recipe" && cp "$RECIPE"/* "$1/tmp/recipe/"`,
    `--customize-hook=chroot "$1" sh /tmp/recipe/prepare.sh`,
    `--customize-hook=rm -r "$1/tmp/recipe"`,
  ];
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
