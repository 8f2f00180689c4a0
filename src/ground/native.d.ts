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
  /** `hand_back` of hand-back.c: paths of failures are bytes, relative to the directory, cut off after 1,000. */
  export function handBack(
    path: string,
    device: number,
    inode: number,
    from: number,
    uid: number,
    gid: number,
    withGit: boolean,
  ):
    | {
        changed: number;
        gitLeft: number;
        mounts: number;
        failed: number;
        failures: { path: ArrayBuffer; errno: number }[];
      }
    | number;
}
