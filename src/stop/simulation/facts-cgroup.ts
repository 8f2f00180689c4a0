// SPDX-License-Identifier: Apache-2.0
// Kernel facts about cgroups: threaded, removed, braked and read-only ones, and what their files answer.

import { EAGAIN, ENODEV, ENOENT, EOPNOTSUPP, EROFS } from "../kernel.ts";
import { findCgroup, removeTree } from "./cgroups.ts";
import { Bench, expectThat, type KernelFact } from "./fact.ts";

const documentation = "kernel: Documentation/admin-guide/cgroup-v2.rst";

export const cgroupFacts: readonly KernelFact[] = [
  {
    name: "a-threaded-cgroup-refuses",
    statement:
      "In a threaded cgroup cgroup.procs and cgroup.kill answer EOPNOTSUPP and cgroup.events works; its processes are listed at the domain ancestor, where a kill ends them.",
    source: `${documentation}; runc 3821`,
    check(bench) {
      const process = bench.spawn("/threads");
      process.cgroup.threaded = true;
      expectThat(bench.door.readText(`${bench.path}/threads/cgroup.procs`) === EOPNOTSUPP, "its cgroup.procs refuses");
      expectThat(bench.write("threads/cgroup.kill", "1") === EOPNOTSUPP, "its cgroup.kill refuses");
      expectThat(bench.read(`${bench.path}/threads/cgroup.events`).includes("populated 1"), "its cgroup.events works");
      expectThat(bench.read(`${bench.path}/cgroup.procs`).includes(`${process.pid}\n`), "it is listed at the ancestor");
      bench.write("cgroup.kill", "1");
      bench.wait(5);
      expectThat(bench.events().includes("populated 0"), "a kill at the ancestor ends it");
    },
  },
  {
    name: "a-removed-cgroup-answers-enodev",
    statement:
      "An open file of a removed cgroup answers ENODEV for ever, also when a cgroup of the same name is there again; the path answers for the new one.",
    source: `${documentation}; measured on 6.18`,
    check(bench) {
      const made = bench.spawn("/again");
      bench.world.die(made);
      const path = `${bench.path}/again/cgroup.events`;
      const handle = bench.door.open(path, "read");
      if (typeof handle === "number") throw new Error("the file does not open");
      const old = findCgroup(bench.world.root, "/bench/again");
      if (old !== undefined) removeTree(old);
      expectThat(bench.door.readAgain(handle) === ENODEV, "the old file answers ENODEV");
      expectThat(bench.door.readText(path) === ENOENT, "the path answers ENOENT");
      bench.spawn("/again");
      expectThat(bench.door.readAgain(handle) === ENODEV, "the old file still answers ENODEV");
      expectThat(bench.read(path).includes("populated 1"), "the path answers for the new one");
    },
  },
  {
    name: "a-brake-stops-new-cgroups",
    statement: "With cgroup.max.descendants 0 mkdir below the cgroup answers EAGAIN; `max` lifts it.",
    source: documentation,
    check(bench) {
      expectThat(bench.write("cgroup.max.descendants", "0") === 0, "the limit is taken");
      expectThat(bench.door.makeDirectory(`${bench.path}/more`, 0o755) === EAGAIN, "mkdir answers EAGAIN");
      expectThat(bench.write("cgroup.max.descendants", "max") === 0, "the limit is lifted");
      expectThat(bench.door.makeDirectory(`${bench.path}/more`, 0o755) === 0, "mkdir works again");
    },
  },
  {
    name: "an-empty-write-does-nothing",
    statement: "Writing nothing to cgroup.kill succeeds or is refused, and ends nobody; so does any word but 1.",
    source: "measured on 6.18; kernel/cgroup/cgroup.c, cgroup_kill_write",
    check(bench) {
      bench.spawn();
      bench.write("cgroup.kill", "");
      expectThat(bench.write("cgroup.kill", "2") !== 0, "another word is refused");
      bench.wait(5);
      expectThat(bench.events().includes("populated 1"), "nobody has ended");
    },
  },
  {
    name: "an-absent-file-answers-enoent",
    statement: "Opening a file that a cgroup does not have, for writing and without O_CREAT, answers ENOENT.",
    source: "open(2); cgroup.kill is absent before 5.14",
    check() {
      const bench = new Bench({ host: { killFile: false } });
      expectThat(bench.door.open(`${bench.path}/cgroup.kill`, "write") === ENOENT, "open answers ENOENT");
      expectThat(bench.write("cgroup.kill", "1") === ENOENT, "so does a whole write");
    },
  },
  {
    name: "a-read-only-hierarchy-answers-erofs",
    statement: "On a read-only cgroup2 mount files open for reading, and for writing answer EROFS.",
    source: "open(2); measured on 6.18",
    check() {
      const bench = new Bench({ host: { readOnlyCgroups: true } });
      bench.spawn();
      expectThat(bench.events().includes("populated 1"), "reading works");
      expectThat(bench.door.open(`${bench.path}/cgroup.kill`, "write") === EROFS, "writing does not");
    },
  },
  {
    name: "zero-moves-the-writer",
    statement: "A pid written to cgroup.procs moves that process, `0` the writer itself.",
    source: documentation,
    check(bench) {
      expectThat(bench.write("cgroup.procs", "0") === 0, "the write succeeds");
      expectThat(bench.read("/proc/self/cgroup") === "0::/bench\n", "the writer is there");
    },
  },
  {
    name: "kernfs-counts-its-directories",
    statement: "Files of cgroupfs and /proc have size 0, and a cgroup's directory has 2 links and one more per child.",
    source: "measured on 6.18; fs/kernfs/dir.c",
    check(bench) {
      bench.spawn("/a");
      bench.spawn("/b");
      const directory = bench.door.lstat(bench.path);
      const file = bench.door.lstat(`${bench.path}/cgroup.events`);
      expectThat(typeof directory === "object" && directory.nlink === 4, "two children make four links");
      expectThat(typeof file === "object" && file.size === 0, "the file has size 0");
      const status = bench.door.lstat("/proc/self/status");
      expectThat(typeof status === "object" && status.size === 0, "so has one of /proc");
    },
  },
  {
    name: "a-zombie-is-not-populated",
    statement:
      "A process that is dead and not reaped does not count as populated and does not hinder rmdir; its /proc/PID/cgroup then ends in ` (deleted)`.",
    source: "measured on 6.18; cgroups(7)",
    check(bench) {
      const parent = bench.world.fork(bench.world.init, { owner: "bystander" });
      if (parent === undefined) throw new Error("no parent");
      parent.reaps = false;
      const child = bench.spawn("/a");
      child.parent = parent;
      bench.world.die(child);
      bench.wait(5);
      expectThat(bench.events().includes("populated 0"), "the cgroup is unpopulated");
      expectThat(bench.door.remove(`${bench.path}/a`) === 0, "rmdir works");
      expectThat(bench.read(`/proc/${child.pid}/cgroup`) === "0::/bench/a (deleted)\n", "the zombie's path says so");
    },
  },
];
