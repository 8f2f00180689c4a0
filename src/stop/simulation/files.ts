// SPDX-License-Identifier: Apache-2.0
// The ordinary files of a simulated host: /etc, /run, /var, a home. Enough of a file system for a helper's records and
// for what an account may have planted.

import { EEXIST, ENOENT, type Errno, type FileStat } from "../kernel.ts";

/** ENOTDIR, EISDIR, ENOTEMPTY, ELOOP of Linux. */
const ENOTDIR = 20;
const EISDIR = 21;
const ENOTEMPTY = 39;
const ELOOP = 40;

export interface FileNode {
  kind: FileStat["kind"];
  mode: number;
  uid: number;
  text: string;
}

export class FileTree {
  readonly #nodes = new Map<string, FileNode>([["/", { kind: "directory", mode: 0o755, uid: 0, text: "" }]]);

  /** Puts a file there, with its directories; for whoever builds a world. */
  put(path: string, text: string, uid = 0, mode = 0o644): void {
    this.directory(path.slice(0, path.lastIndexOf("/")), 0);
    this.#nodes.set(path, { kind: "file", mode, uid, text });
  }

  directory(path: string, uid: number, mode = 0o755): void {
    for (let end = path.indexOf("/", 1); end > 0; end = path.indexOf("/", end + 1))
      this.#ensure(path.slice(0, end), 0, 0o755);
    if (path !== "") this.#ensure(path, uid, mode);
  }

  #ensure(path: string, uid: number, mode: number): void {
    if (!this.#nodes.has(path)) this.#nodes.set(path, { kind: "directory", mode, uid, text: "" });
  }

  node(path: string): FileNode | undefined {
    return this.#nodes.get(path);
  }

  read(path: string): string | Errno {
    const node = this.node(path);
    if (node === undefined) return ENOENT;
    return node.kind === "directory" ? EISDIR : node.text;
  }

  list(path: string): string[] | Errno {
    const node = this.node(path);
    if (node === undefined) return ENOENT;
    if (node.kind !== "directory") return ENOTDIR;
    const start = path === "/" ? "/" : `${path}/`;
    const names: string[] = [];
    for (const other of this.#nodes.keys()) {
      if (other.length > start.length && other.startsWith(start) && !other.includes("/", start.length)) {
        names.push(other.slice(start.length));
      }
    }
    return names;
  }

  stat(path: string): FileStat | Errno {
    const node = this.node(path);
    if (node === undefined) return ENOENT;
    const nlink = node.kind === "directory" ? 2 : 1;
    return { kind: node.kind, mode: node.mode, uid: node.uid, nlink, rdev: 0, size: node.text.length };
  }

  create(path: string, text: string, mode: number): Errno {
    if (this.node(path) !== undefined) return EEXIST;
    return this.#write(path, text, mode);
  }

  append(path: string, text: string, mode: number): Errno {
    const node = this.node(path);
    if (node === undefined) return this.#write(path, text, mode);
    if (node.kind !== "file") return ELOOP;
    node.text += text;
    return 0;
  }

  replace(path: string, text: string, mode: number): Errno {
    if (this.node(path)?.kind === "directory") return EISDIR;
    return this.#write(path, text, mode);
  }

  makeDirectory(path: string, mode: number): Errno {
    if (this.node(path) !== undefined) return EEXIST;
    if (this.#parent(path)?.kind !== "directory") return ENOENT;
    this.#nodes.set(path, { kind: "directory", mode, uid: 0, text: "" });
    return 0;
  }

  remove(path: string): Errno {
    const node = this.node(path);
    if (node === undefined) return ENOENT;
    const below = this.list(path);
    if (node.kind === "directory" && typeof below !== "number" && below.length > 0) return ENOTEMPTY;
    this.#nodes.delete(path);
    return 0;
  }

  /** Removes a directory with everything in it, as the end of a mount does. */
  removeAll(path: string): void {
    for (const other of [...this.#nodes.keys()]) {
      if (other === path || other.startsWith(`${path}/`)) this.#nodes.delete(other);
    }
  }

  #parent(path: string): FileNode | undefined {
    const end = path.lastIndexOf("/");
    return this.node(end === 0 ? "/" : path.slice(0, end));
  }

  #write(path: string, text: string, mode: number): Errno {
    if (this.#parent(path)?.kind !== "directory") return ENOENT;
    this.#nodes.set(path, { kind: "file", mode, uid: 0, text });
    return 0;
  }
}
