// SPDX-License-Identifier: Apache-2.0
// Makes the disk of a lab machine, with its kernel beside it: a Debian like that of the containers that can boot, is reached
// over ssh and, where its name says so, enforces SELinux. Kept in the cache under a hash of its recipe.

import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { Refusal } from "../cleanup.ts";
import { cacheDirectory, inProject, isRoot } from "../machine.ts";
import { lastLines, logged, step } from "../progress.ts";
import { ensurePackages } from "../setup/apt.ts";
import { packagesFor } from "../setup/packages.ts";
import { acquireConfiguration, mirrorOf, mmdebstrapOptions, PACKAGES, RECIPE_FOLDER } from "./debootstrap.ts";
import { type HostName, kindOf } from "./host-names.ts";

/** Paths of this machine. */
export interface MachineImage {
  disk: string;
  kernel: string;
  initrd: string;
}

/** The archive of this machine no longer has the release that a host is made of. */
export class NotInTheArchive extends Refusal {}

const MACHINE_RECIPE = inProject("src", "tooling", "lab", "machine");
const COMPILE = ["-O2", "-Wall", "-Wextra", "-static"];
/** The initial RAM disk holds what reaches disk and network, and nothing else: it is unpacked at each boot. */
const INITRAMFS = `mkdir -p "$1/etc/initramfs-tools/conf.d" "$1/usr/share/initramfs-tools/modules.d" &&
  printf 'MODULES=list\\n' >"$1/etc/initramfs-tools/conf.d/lab" &&
  printf 'virtio_pci\\nvirtio_blk\\nvirtio_net\\next4\\n' >"$1/usr/share/initramfs-tools/modules.d/lab"`;

/** Makes sure that the image of a machine is there. It is only read from then on. */
export async function ensureMachine(hostName: HostName): Promise<MachineImage> {
  const kept = join(cacheDirectory("lab"), `machine-${hostName}-${recipeHash(hostName)}`);
  if (!existsSync(kept)) {
    if (!isRoot() || !existsSync("/usr/bin/apt-get"))
      throw new Refusal(`The machine ${hostName} can only be made as root on Debian; nothing is needed to boot it.`);
    await ensurePackages([...packagesFor.machines, ...packagesFor.machineImages]);
    await step(`making the machine ${hostName} (some minutes)`, () => makeMachine(hostName, kept));
    removeOthers(hostName, kept);
  }
  return { disk: join(kept, "disk"), kernel: join(kept, "kernel"), initrd: join(kept, "initrd") };
}

/** Those that an earlier recipe made. A machine that runs on one keeps its open disk. */
function removeOthers(hostName: HostName, kept: string): void {
  for (const name of readdirSync(cacheDirectory("lab"))) {
    const path = join(cacheDirectory("lab"), name);
    const [, hash] = name.split(`machine-${hostName}-`);
    if (hash !== undefined && /^[0-9a-f]{12}(\.lock)?$/.test(hash) && !path.startsWith(kept))
      rmSync(path, { recursive: true, force: true });
  }
}

function recipeHash(hostName: HostName): string {
  const parts = [hostName, kindOf(hostName), packagesOf(hostName), mmdebstrapOptions("aptopt"), INITRAMFS, COMPILE];
  const hash = createHash("sha256").update(JSON.stringify(parts));
  for (const folder of [RECIPE_FOLDER, MACHINE_RECIPE])
    for (const name of readdirSync(folder).sort()) hash.update(readFileSync(join(folder, name)));
  return hash.digest("hex").slice(0, 12);
}

function packagesOf(hostName: HostName): string[] {
  const { selinux, kernelOf } = kindOf(hostName);
  const policy = ["selinux-policy-default", "policycoreutils", "selinux-utils", "semodule-utils", "auditd"];
  return [
    ...PACKAGES,
    ...["initramfs-tools", "udev", "kmod", "openssh-server"],
    kernelOf === undefined ? "linux-image-cloud-amd64" : `linux-image-cloud-amd64/${kernelOf}`,
    ...(selinux ? policy : []),
  ];
}

async function makeMachine(hostName: HostName, kept: string): Promise<void> {
  const { suite, selinux, kernelOf } = kindOf(hostName);
  const work = mkdtempSync(join(tmpdir(), "ai-tools-machine-"));
  try {
    writeFileSync(join(work, "acquire.conf"), await acquireConfiguration());
    await promisify(execFile)("gcc", [...COMPILE, "-o", join(work, "enter"), join(MACHINE_RECIPE, "enter.c")]);
    const prepare = `chroot "$1" sh /tmp/machine/prepare-machine.sh ${hostName}-host ${selinux ? 1 : 0}`;
    const options = [
      ...mmdebstrapOptions(join(work, "acquire.conf"), packagesOf(hostName)),
      // Half a tree is thrown away whole: dpkg need not wait for the disk after each file.
      "--dpkgopt=force-unsafe-io",
      `--essential-hook=${INITRAMFS}`,
      `--customize-hook=mkdir "$1/tmp/machine" && cp "$MACHINE"/* ${join(work, "enter")} "$1/tmp/machine/"`,
      `--customize-hook=${prepare}`,
      `--customize-hook=rm -r "$1/tmp/machine"`,
    ];
    const releases = [suite, ...(kernelOf === undefined ? [] : [kernelOf])];
    if (kernelOf !== undefined) await mustBeInTheArchive(kernelOf, join(work, "apt"));
    const sources = await Promise.all(releases.map(async (name) => `deb ${await mirrorOf(name)} ${name} main`));
    await logged(`machine-${hostName}`, ["sh", join(MACHINE_RECIPE, "make-machine.sh"), ...options], {
      env: {
        RECIPE: RECIPE_FOLDER,
        MACHINE: MACHINE_RECIPE,
        KEPT: kept,
        UNFINISHED: `${kept}.${process.pid}`,
        SUITE: suite,
        SOURCES: sources.join("\n"),
        SELINUX: selinux ? "1" : "0",
      },
    });
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** An old release leaves the archive one day; then the host cannot be made, and whoever asks for it is told so. */
async function mustBeInTheArchive(release: string, scratch: string): Promise<void> {
  for (const name of ["lists/partial", "cache/archives/partial"]) mkdirSync(join(scratch, name), { recursive: true });
  writeFileSync(join(scratch, "sources.list"), `deb ${await mirrorOf(release)} ${release} main\n`);
  const places = {
    "Dir::Etc::sourcelist": join(scratch, "sources.list"),
    "Dir::Etc::sourceparts": "-",
    "Dir::State::lists": join(scratch, "lists"),
    "Dir::Cache": join(scratch, "cache"),
    "APT::Update::Error-Mode": "any",
  };
  const options = Object.entries(places).flatMap(([name, value]) => ["-o", `${name}=${value}`]);
  const { code, output } = await logged(`archive-${release}`, ["apt-get", ...options, "update"], { anyCode: true });
  if (code !== 0)
    throw new NotInTheArchive(
      `${release} cannot be had from this machine's archive any more:\n${lastLines(output, 5)}`,
    );
}
