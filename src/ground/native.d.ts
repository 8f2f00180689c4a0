// SPDX-License-Identifier: Apache-2.0
// The module "native" of the executables beside the stop (native.c). Errors are negative errnos.

declare module "native" {
  /** `umask(2)`: the old mask. */
  export function umask(mask: number): number;
  /** `flock(2)`, exclusive, without waiting. */
  export function flock(fd: number): number;
  /** The directory; -EILSEQ where its name is no UTF-8. */
  export function getcwd(): string | number;
  /** `realpath(3)`; -EILSEQ where the answer is no UTF-8. */
  export function realpath(path: string): string | number;
  /** `mount(2)`, MS_BIND of that very directory alone, private; -ESTALE where it is another one. */
  export function bindDirectory(path: string, device: number, inode: number, uid: number, place: string): number;
  /** `umount2(2)`, lazily; -EINVAL where nothing is mounted. */
  export function unbindDirectory(place: string): number;
  /** `mkfifo(3)`. */
  export function mkfifo(path: string, mode: number): number;
  /** `lgetxattr(2)` of `security.selinux`. */
  export function fileContext(path: string): string | number;
  /** `hand_back` of hand-back.c: paths of failures are bytes, relative to the directory, cut off after 1,000. */
  export function handBack(
    path: string,
    device: number,
    inode: number,
    from: number,
    uid: number,
    gid: number,
    withGit: boolean,
  ): Walked | number;
  /** `relabel` of relabel.c: types that are changed each between two spaces, and what they become. */
  export function relabel(
    path: string,
    device: number,
    inode: number,
    owner: number,
    account: number,
    from: string,
    to: string,
  ): Walked | number;
  /** What a walk did (project-walk.c). */
  export interface Walked {
    changed: number;
    left: number;
    gitLeft: number;
    mounts: number;
    failed: number;
    failures: { path: ArrayBuffer; errno: number }[];
  }
}
