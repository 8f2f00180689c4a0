// SPDX-License-Identifier: Apache-2.0
// Kernel facts about reading: what /proc says of zombies, threads, namespaces and names, and how numbers are given out.

import { ENOENT, ESRCH, SIGKILL } from "../kernel.ts";
import { parseExecutor } from "../proc-files.ts";
import { accountUid, accountUids } from "./account.ts";
import { ensureCgroup } from "./cgroups.ts";
import { Bench, expectThat, type KernelFact } from "./fact.ts";
import { hostUserNamespace } from "./processes.ts";
import { headless } from "./tempers.ts";

const proc = "proc(5)";

export const readingFacts: readonly KernelFact[] = [
  {
    name: "a-zombie-leader-shows-z-and-its-threads",
    statement: "status of a zombie leader says `State: Z` with two or more `Threads`.",
    source: "measured on 6.18",
    check(bench) {
      const process = bench.spawn();
      headless(bench.world, process);
      expectThat(/^State:\tZ/m.test(bench.status(process)), "it shows Z");
      expectThat(/^Threads:\t2$/m.test(bench.status(process)), "the dead leader and the living thread are counted");
    },
  },
  {
    name: "dead-is-z-with-one-thread",
    statement:
      "status of a dead process that nobody reaps says `State: Z`, `Threads: 1` and its uids; kill(pid, 0) still says 0.",
    source: "measured on 6.18",
    check(bench) {
      const parent = bench.spawn();
      parent.reaps = false;
      const child = bench.world.fork(parent);
      if (child === undefined) throw new Error("no child");
      bench.door.signal(child.pid, SIGKILL);
      bench.wait(5);
      const status = bench.status(child);
      expectThat(/^State:\tZ/m.test(status) && /^Threads:\t1$/m.test(status), "it shows Z with one thread");
      expectThat(status.includes(`Uid:\t${accountUids.join("\t")}\n`), "its uids are still there");
      expectThat(bench.door.signal(child.pid, 0) === 0, "signal 0 proves nothing");
    },
  },
  {
    name: "a-thread-number-leads-to-its-process",
    statement:
      "/proc/TID answers though it is not listed, with the process in `Tgid`, and SIGKILL to it ends the process.",
    source: `${proc}; measured on 6.18`,
    check(bench) {
      const process = bench.spawn();
      headless(bench.world, process);
      const [thread] = process.threadIds;
      const status = bench.read(`/proc/${thread}/status`);
      expectThat(
        status.includes(`\nTgid:\t${process.pid}\n`) && /^State:\tS/m.test(status),
        "it is the living thread's",
      );
      expectThat(!(bench.door.list("/proc") as string[]).includes(String(thread)), "it is not listed");
      bench.door.signal(thread ?? 0, SIGKILL);
      bench.wait(5);
      expectThat(bench.events().includes("populated 0"), "a signal to it ends the process");
    },
  },
  {
    name: "a-zombie-has-no-working-directory",
    statement: "The cwd link of a dead process answers ENOENT.",
    source: `${proc}; measured on 6.18`,
    check(bench) {
      const parent = bench.spawn();
      parent.reaps = false;
      const child = bench.world.fork(parent);
      if (child === undefined) throw new Error("no child");
      bench.world.die(child);
      expectThat(bench.door.readLink(`/proc/${child.pid}/cwd`) === ENOENT, "there is none");
    },
  },
  {
    name: "the-last-pid-is-the-fifth-word",
    statement: "The fifth word of /proc/loadavg is the number that was given out last, also when that process is gone.",
    source: proc,
    check(bench) {
      const process = bench.spawn();
      expectThat(bench.read("/proc/loadavg").endsWith(` ${process.pid}\n`), "it is the newest process");
      bench.world.die(process);
      bench.wait(5);
      expectThat(bench.read("/proc/loadavg").endsWith(` ${process.pid}\n`), "it stays when that is gone");
    },
  },
  {
    name: "numbers-wrap-to-300",
    statement: "After the highest number pids start again at 300, leaving out those that are taken.",
    source: "kernel/pid.c, RESERVED_PIDS",
    check() {
      const bench = new Bench({ host: { pidMax: 2_000 } });
      bench.world.lastPid = 1_998;
      expectThat(bench.spawn().pid === 1_999, "the highest number is given out");
      expectThat(bench.spawn().pid === 300, "then 300");
      bench.world.lastPid = 1_999;
      expectThat(bench.spawn().pid === 301, "a number that is taken is left out");
    },
  },
  {
    name: "a-namespaced-process-has-two-numbers",
    statement:
      "From outside, NSpid of a process in a pid namespace has two or more entries; its user namespace is the host's unless it made one.",
    source: "pid_namespaces(7), user_namespaces(7)",
    check(bench) {
      const process = bench.spawn();
      process.namespacePids = [process.pid, 1];
      expectThat(bench.status(process).includes(`NSpid:\t${process.pid}\t1\n`), "two entries");
      expectThat(
        bench.door.readLink(`/proc/${process.pid}/ns/user`) === bench.door.readLink("/proc/self/ns/user"),
        "the host's",
      );
      process.userNamespace = "user:[4026532999]";
      expectThat(bench.door.readLink(`/proc/${process.pid}/ns/user`) !== hostUserNamespace, "or its own");
    },
  },
  {
    name: "status-shows-four-uids",
    statement:
      "Uid in status shows real, effective, saved and file-system uid, so that root acting for somebody is seen.",
    source: `${proc}, setresuid(2), setfsuid(2)`,
    check(bench) {
      const process = bench.spawn();
      process.uids = [0, accountUid, 0, accountUid];
      expectThat(
        bench.status(process).includes(`Uid:\t0\t${accountUid}\t0\t${accountUid}\n`),
        "root acting for the account",
      );
    },
  },
  {
    name: "who-executed-a-program-is-kept",
    statement:
      "AT_UID in /proc/PID/auxv is the real uid of whoever executed the program, whatever its uids are now; a leader that has exited has none (ESRCH).",
    source: "getauxval(3); measured on 6.18",
    check(bench) {
      const process = bench.spawn();
      process.executedBy = accountUid;
      process.uids = [0, 0, 0, 0];
      expectThat(parseExecutor(bench.read(`/proc/${process.pid}/auxv`)) === accountUid, "who executed it is kept");
      headless(bench.world, process);
      expectThat(bench.door.readText(`/proc/${process.pid}/auxv`) === ESRCH, "a leader that has exited has none");
    },
  },
  {
    name: "orphans-go-to-the-nearest-subreaper",
    statement:
      "The child of a process that ends belongs to the nearest subreaper above it, else to PID 1, which reaps it.",
    source: "prctl(2), PR_SET_CHILD_SUBREAPER",
    check(bench) {
      const reaper = bench.spawn();
      reaper.subreaper = true;
      const middle = bench.world.fork(reaper);
      const child = middle === undefined ? undefined : bench.world.fork(middle);
      if (middle === undefined || child === undefined) throw new Error("no children");
      bench.world.die(middle);
      expectThat(bench.status(child).includes(`PPid:\t${reaper.pid}\n`), "the subreaper has it");
      bench.world.die(reaper);
      expectThat(bench.status(child).includes("PPid:\t1\n"), "then PID 1");
    },
  },
  {
    name: "a-name-may-hold-anything",
    statement:
      "A command name may hold `) R 1 (` and a newline: stat prints it as it is, status with the newline escaped.",
    source: `${proc}; measured on 6.18`,
    check(bench) {
      const process = bench.spawn();
      process.comm = ") R 1 (\nUid:\t0";
      expectThat(
        bench.read(`/proc/${process.pid}/stat`).startsWith(`${process.pid} () R 1 (\nUid:\t0) S 1 `),
        "raw in stat",
      );
      expectThat(bench.status(process).startsWith("Name:\t) R 1 (\\nUid:\t0\n"), "escaped in status");
    },
  },
  {
    name: "a-cgroup-path-holds-raw-bytes",
    statement:
      "/proc/PID/cgroup prints a cgroup's name byte by byte as it is, and a path longer than 4,095 bytes cut off or not at all.",
    source: "measured on 6.18: cut off; kernel/cgroup/cgroup.c, proc_cgroup_show",
    check(bench) {
      const named = bench.spawn("/\u001b[2J\u00ff\u00e4 .service");
      expectThat(
        bench.read(`/proc/${named.pid}/cgroup`) === "0::/bench/\u001b[2J\u00ff\u00e4 .service\n",
        "byte by byte",
      );
      const deep = bench.world.fork(named, { cgroup: ensureCgroup(bench.cgroup, `/${"x".repeat(250)}`.repeat(18)) });
      const path = bench.door.readText(`/proc/${deep?.pid ?? 0}/cgroup`);
      expectThat(
        typeof path === "string" && path.startsWith("0::/bench/xxx") && path.length < 4_120,
        "cut off at the end",
      );
    },
  },
];
