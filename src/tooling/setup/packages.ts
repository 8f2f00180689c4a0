// SPDX-License-Identifier: Apache-2.0
// The Debian packages that this project's commands use, each with what it is for. A program that is there from
// somewhere else (a vendor's Docker, say) counts as well.

export interface Need {
  /** The Debian package. */
  name: string;
  /** What it is for, for the person who has to install it by hand. */
  why: string;
  /** Paths of which one is enough, or programs looked for in PATH: with them the package counts as present. */
  provides: string[];
}

export const needs: Need[] = [
  { name: "gcc", why: "compiles the static executables", provides: ["gcc"] },
  {
    name: "libc6-dev",
    why: "the static C library",
    provides: ["/usr/lib/x86_64-linux-gnu/libc.a", "/usr/lib/aarch64-linux-gnu/libc.a", "/usr/lib64/libc.a"],
  },
  { name: "xz-utils", why: "unpacks QuickJS", provides: ["xz"] },
  { name: "binutils", why: "archives, links and strips the executables", provides: ["strip"] },
  { name: "rpm", why: "builds the package", provides: ["rpmbuild"] },
  { name: "rpmlint", why: "checks the package", provides: ["rpmlint"] },
  { name: "mandoc", why: "checks the man pages", provides: ["mandoc"] },
  { name: "sudo", why: "its visudo checks the sudoers drop-in", provides: ["/usr/sbin/visudo", "visudo"] },
  { name: "shellcheck", why: "checks the shell scripts that are shipped", provides: ["shellcheck"] },
  { name: "docker.io", why: "runs the test hosts", provides: ["dockerd", "/usr/sbin/dockerd"] },
  { name: "mmdebstrap", why: "makes the test hosts' images", provides: ["mmdebstrap"] },
  { name: "qemu-system-x86", why: "runs the virtual machines of the lab", provides: ["qemu-system-x86_64"] },
  { name: "openssh-client", why: "runs programs on the virtual machines", provides: ["ssh"] },
  {
    name: "policycoreutils",
    why: "its setfiles labels the disks of machines with SELinux",
    provides: ["/usr/sbin/setfiles"],
  },
  { name: "e2fsprogs", why: "makes the disks of the virtual machines", provides: ["/usr/sbin/mkfs.ext4", "mkfs.ext4"] },
  { name: "chromium", why: "shows the pages to their tests as it shows them to people", provides: ["chromium"] },
  { name: "strace", why: "watches the helper's system calls", provides: ["strace"] },
];

/** What each room uses; a room asks for its own before it starts. */
export const packagesFor = {
  build: ["gcc", "libc6-dev", "xz-utils", "binutils"],
  check: ["mandoc", "sudo", "shellcheck"],
  package: ["rpm", "rpmlint"],
  policy: ["mmdebstrap"],
  pages: ["chromium"],
  lab: ["docker.io", "mmdebstrap"],
  machines: ["qemu-system-x86", "openssh-client"],
  machineImages: ["mmdebstrap", "policycoreutils", "e2fsprogs", "gcc", "libc6-dev"],
};
