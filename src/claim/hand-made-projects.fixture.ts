// SPDX-License-Identifier: Apache-2.0
// A ground with the people and directories that the tests of claims are about: olga with a project in her home and one
// on a disk of its own, ursula with hers, and the account. For tests only.

import { HandMadeGround } from "../ground/hand-made-ground.fixture.ts";
import { sessionDirectory } from "../ground/places.ts";
import { encodeUtf8, type Person, type SessionRecord } from "../ground/records.ts";
import { type ClaimRecord, claimRecordPath } from "./claims.ts";

export const account = 990;
export const atHome = "/home/olga/work";
export const onDisk = "/srv/data/site";

export class HandMadeProjects extends HandMadeGround {
  readonly olga: Person;
  readonly ursula: Person;
  /** What getfacl says of any project; setfacl complains of nothing unless `program` is replaced. */
  listsBefore = "";

  constructor() {
    super();
    this.files.set(
      "/etc/passwd",
      `root:x:0:0::/root:/bin/sh\nai-tools:x:${account}:${account}::/var/lib/ai-tools:/x\n`,
    );
    this.olga = this.person("olga", 1001);
    this.ursula = this.person("ursula", 1002);
    this.calledBy(this.olga);
    for (const path of ["/", "/home", "/srv", "/srv/data"]) this.existing(path);
    this.existing("/home/olga", { uid: this.olga.uid, gid: this.olga.gid, mode: 0o700 });
    this.existing(atHome, { uid: this.olga.uid, gid: this.olga.gid, inode: 71 });
    this.existing(onDisk, { uid: this.olga.uid, gid: this.olga.gid, inode: 72, device: 8 });
    this.files.set("/proc/sys/fs/protected_hardlinks", "1\n");
    this.files.set("/proc/sys/kernel/random/boot_id", "this boot\n");
    this.program = (line) => ({ code: 0, output: line.includes("getfacl") ? this.listsBefore : "" });
  }

  /** What the helper does for this command line. */
  called(verb: string, path: string): void {
    this.words = [verb, path];
  }

  calledByRoot(): void {
    this.variables.clear();
  }

  /** A claim of olga's that is on record. */
  claimed(path: string, changes: Partial<ClaimRecord> = {}): ClaimRecord {
    const stat = this.statPath(path);
    const { device, inode } = typeof stat === "number" ? { device: 1, inode: 1 } : stat;
    const since = "2026-01-01T00:00:00.000Z";
    const claim = { path, device, inode, operator: this.olga, since, hadLists: false, ...changes };
    this.files.set(claimRecordPath(path), encodeUtf8(JSON.stringify(claim)));
    return claim;
  }

  /** The claim of a path that is on record now. */
  recorded(path: string): ClaimRecord | undefined {
    const text = this.files.get(claimRecordPath(path));
    return typeof text === "string" ? JSON.parse(decodeURIComponent(escape(text))) : undefined;
  }

  /** A session of olga's in a project; one of another boot is over, one of this boot may run for all that is known. */
  session(project: string, boot: "this boot" | "an earlier boot", changes: Partial<SessionRecord> = {}): string {
    const unit = `ai-tools-shell-${100 + this.files.size}.service`;
    const places = { project, directory: project, device: 1, inode: 71 };
    const record = { unit, entryPoint: "shell", ...places, operator: this.olga, since: "2026-01-01", boot, stops: 0 };
    const file = `${sessionDirectory}/${unit}.json`;
    this.files.set(file, JSON.stringify({ ...record, withGit: false, ...changes }));
    return file;
  }

  /** The programs of the acl package that were run, from their name on. */
  get listPrograms(): string[] {
    return this.executed.map((argv) => argv.slice(argv.findIndex((word) => /facl$/.test(word))).join(" "));
  }
}
