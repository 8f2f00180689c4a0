// SPDX-License-Identifier: Apache-2.0
// Kernel facts about killing: whom a write to `cgroup.kill` ends, whom kill(2) ends, and what keeps either from its work.

import { EINVAL, ENOENT, ESRCH, type Handle, isErrno, SIGCONT, SIGKILL, SIGTERM } from "../kernel.ts";
import { accountUid } from "./account.ts";
import { changeHands } from "./bystanders.ts";
import { type Bench, expectThat, type KernelFact } from "./fact.ts";
import { chain, headless, stopped, stuckInFuse, vforking } from "./tempers.ts";

const documentation = "kernel: Documentation/admin-guide/cgroup-v2.rst";
const measured = "measured on 6.18";

export const killFacts: readonly KernelFact[] = [
  {
    name: "a-write-ends-everything-below",
    statement: "`1` written to cgroup.kill ends every ordinary process of the cgroup and of all below it.",
    source: documentation,
    check(bench) {
      const all = [bench.spawn(), bench.spawn("/a"), bench.spawn("/a/b")];
      for (const process of all) process.term = "ignore";
      expectThat(bench.write("cgroup.kill", "1") === 0, "the write succeeds");
      bench.wait(5);
      expectThat(bench.events().includes("populated 0"), "the cgroup is unpopulated");
    },
  },
  {
    name: "a-write-passes-a-zombie-leader-by",
    statement:
      "A process whose main thread has exited while another thread lives survives any number of writes to cgroup.kill.",
    source: `${measured}; kernel/cgroup/cgroup.c, __cgroup_kill signals the dead leader only`,
    check(bench) {
      headless(bench.world, bench.spawn());
      for (let time = 0; time < 5; time++) {
        bench.write("cgroup.kill", "1");
        bench.wait(5);
      }
      expectThat(bench.events().includes("populated 1"), "it lives on");
    },
  },
  {
    name: "a-signal-ends-a-zombie-leader",
    statement: "SIGKILL by kill(2) to the number of a zombie leader ends all its threads.",
    source: measured,
    check(bench) {
      const process = bench.spawn();
      headless(bench.world, process);
      expectThat(bench.door.signal(process.pid, SIGKILL) === 0, "kill(2) succeeds");
      bench.wait(5);
      expectThat(bench.events().includes("populated 0"), "it is gone");
    },
  },
  {
    name: "a-zombie-leader-forks",
    statement: "A thread of a zombie leader can fork; the child's parent is the dead leader's number.",
    source: measured,
    check(bench) {
      const process = bench.spawn();
      headless(bench.world, process);
      const child = bench.world.fork(process);
      expectThat(
        child !== undefined && bench.status(child).includes(`PPid:\t${process.pid}\n`),
        "the leader is the parent",
      );
    },
  },
  {
    name: "a-stopped-process-keeps-term",
    statement: "SIGTERM to a stopped process stays pending and takes effect with SIGCONT.",
    source: "signal(7)",
    check(bench) {
      const process = bench.spawn();
      stopped(bench.world, process);
      bench.door.signal(process.pid, SIGTERM);
      bench.wait(50);
      expectThat(bench.status(process).includes("State:\tT"), "it is still stopped");
      bench.door.signal(process.pid, SIGCONT);
      bench.wait(5);
      expectThat(bench.events().includes("populated 0"), "it ends once it continues");
    },
  },
  {
    name: "kill-ends-a-stopped-process",
    statement: "SIGKILL ends a stopped process at once.",
    source: "signal(7)",
    check(bench) {
      const process = bench.spawn();
      stopped(bench.world, process);
      bench.door.signal(process.pid, SIGKILL);
      bench.wait(5);
      expectThat(bench.events().includes("populated 0"), "it is gone");
    },
  },
  {
    name: "a-frozen-process-dies-from-default-term",
    statement: "In a frozen cgroup a SIGTERM of default disposition kills at once.",
    source: measured,
    check(bench) {
      const process = bench.spawn();
      bench.write("cgroup.freeze", "1");
      bench.door.signal(process.pid, SIGTERM);
      bench.wait(50);
      expectThat(bench.events().includes("populated 0"), "it is gone");
    },
  },
  {
    name: "a-frozen-handler-waits-for-the-thaw",
    statement: "In a frozen cgroup a handler for SIGTERM runs only after the thaw.",
    source: measured,
    check(bench) {
      const process = bench.spawn();
      process.term = "handler";
      process.onTerm = () => bench.world.die(process);
      bench.write("cgroup.freeze", "1");
      bench.door.signal(process.pid, SIGTERM);
      bench.wait(200);
      expectThat(bench.events().includes("populated 1"), "frozen, it waits");
      bench.write("cgroup.freeze", "0");
      bench.wait(50);
      expectThat(bench.events().includes("populated 0"), "thawed, it handles the signal");
    },
  },
  {
    name: "a-frozen-cgroup-can-be-killed-and-stays-frozen",
    statement: "cgroup.kill works on a frozen cgroup, and the freeze stays afterwards.",
    source: measured,
    check(bench) {
      bench.spawn("/a").term = "ignore";
      bench.write("cgroup.freeze", "1");
      bench.write("cgroup.kill", "1");
      bench.wait(50);
      expectThat(bench.events().includes("populated 0"), "it is gone");
      expectThat(bench.read(`${bench.path}/cgroup.freeze`) === "1\n", "the freeze is still there");
    },
  },
  {
    name: "a-tracer-holds-its-tracee-at-the-exit",
    statement:
      "With PTRACE_O_TRACEEXIT a killed process sits in state t, wait channel ptrace_stop, until its tracer goes.",
    source: "ptrace(2); measured on 6.18",
    check(bench) {
      const [tracer, tracee] = [bench.world.fork(bench.world.init, { owner: "bystander" }), bench.spawn()];
      if (tracer === undefined) throw new Error("no tracer");
      bench.world.traceExit(tracer, tracee);
      bench.door.signal(tracee.pid, SIGKILL);
      bench.wait(50);
      expectThat(bench.status(tracee).includes("State:\tt"), "it is in a tracing stop");
      expectThat(bench.read(`/proc/${tracee.pid}/wchan`) === "ptrace_stop", "its wait channel says so");
      expectThat(bench.events().includes("populated 1"), "it counts as populated");
      bench.door.signal(tracer.pid, SIGKILL);
      bench.wait(50);
      expectThat(bench.events().includes("populated 0"), "it goes with its tracer");
    },
  },
  {
    name: "a-vfork-parent-is-in-d-and-killable",
    statement: "A process that waits for its vfork child shows state D and dies from SIGKILL all the same.",
    source: `${measured}; kernel/fork.c, wait_for_vfork_done`,
    check(bench) {
      const process = bench.spawn();
      vforking(bench.world, process);
      expectThat(bench.status(process).includes("State:\tD"), "it shows D");
      bench.door.signal(process.pid, SIGKILL);
      bench.wait(5);
      expectThat(bench.world.processes.get(process.pid)?.phase !== "alive", "it is gone");
    },
  },
  {
    name: "a-hung-fuse-daemon-holds-until-abort",
    statement:
      "Whoever waits for a FUSE daemon that has taken the request survives SIGKILL in D (request_wait_answer); `1` to the connection's abort, whose directory is the mounter's, lets it go.",
    source: "kernel: Documentation/filesystems/fuse.rst; measured on 6.18",
    check: checkFuse,
  },
  {
    name: "a-number-without-a-process-answers-esrch",
    statement: "kill(2) and the files in /proc of a number that nobody has answer ESRCH and ENOENT.",
    source: "kill(2), proc(5)",
    check(bench) {
      const process = bench.spawn();
      bench.door.signal(process.pid, SIGKILL);
      bench.wait(5);
      expectThat(bench.door.signal(process.pid, 0) === ESRCH, "kill answers ESRCH");
      expectThat(bench.door.readText(`/proc/${process.pid}/status`) === 2, "open answers ENOENT");
    },
  },
  {
    name: "a-held-process-is-signalled-alone",
    statement:
      "A signal through a pidfd of a process whose number another one has by now answers ESRCH and hits nobody; one that is dead and not reaped still takes it.",
    source: `pidfd_send_signal(2); ${measured}`,
    check(bench) {
      const parent = bench.spawn();
      parent.reaps = false;
      const process = bench.world.fork(parent);
      if (process === undefined) throw new Error("no child");
      const held = hold(bench, process.pid);
      bench.world.die(process);
      expectThat(bench.door.signalHeld(held, SIGKILL) === 0, "a dead one takes it");
      const heir = changeHands(bench.world, process.pid);
      if (heir === undefined) throw new Error("no heir");
      expectThat(bench.door.signalHeld(held, SIGKILL) === ESRCH, "the signal answers ESRCH");
      bench.wait(5);
      expectThat(heir.phase === "alive" && bench.door.signal(heir.pid, 0) === 0, "whoever has the number lives");
    },
  },
  {
    name: "a-zombie-leader-can-be-held",
    statement: "A zombie leader can be held, and SIGKILL through the pidfd ends all its threads.",
    source: measured,
    check(bench) {
      const process = bench.spawn();
      headless(bench.world, process);
      expectThat(bench.door.signalHeld(hold(bench, process.pid), SIGKILL) === 0, "the signal is sent");
      bench.wait(5);
      expectThat(bench.events().includes("populated 0"), "it is gone");
    },
  },
  {
    name: "a-thread-cannot-be-held",
    statement:
      "pidfd_open(2) answers EINVAL, or ENOENT on newer kernels, for a thread's number, and ESRCH for one that nobody has.",
    source: `pidfd_open(2); ${measured}`,
    check(bench) {
      const process = bench.spawn();
      headless(bench.world, process);
      const [thread = 0] = process.threadIds;
      const answer = bench.door.hold(thread);
      expectThat(answer === EINVAL || answer === ENOENT, "a thread cannot be held");
      bench.door.signal(process.pid, SIGKILL);
      bench.wait(5);
      expectThat(bench.door.hold(process.pid) === ESRCH, "nobody can be held by a free number");
    },
  },
  {
    name: "a-chain-runs-into-newest-first",
    statement:
      "A fork-and-exit chain is met by a look that lists /proc, then reads the last pid, and goes from there downwards, killing at once.",
    source: "measured on 6.18: caught in 8 of 8 runs, missed in 8 of 8 by list-then-read",
    check: checkChain,
  },
];

function hold(bench: Bench, pid: number): Handle {
  const held = bench.door.hold(pid);
  if (isErrno(held)) throw new Error(`pidfd_open answers errno ${held}`);
  return held;
}

function checkFuse(bench: Bench): void {
  const process = bench.spawn();
  stuckInFuse(accountUid)(bench.world, process);
  bench.door.signal(process.pid, SIGKILL);
  bench.wait(200);
  expectThat(bench.status(process).includes("State:\tD"), "it shows D after SIGKILL");
  expectThat(bench.read(`/proc/${process.pid}/wchan`) === "request_wait_answer", "its wait channel says why");
  const [connection] = bench.door.list("/sys/fs/fuse/connections") as string[];
  const stat = bench.door.lstat(`/sys/fs/fuse/connections/${connection}`);
  expectThat(typeof stat === "object" && stat.uid === accountUid, "the connection is the mounter's");
  expectThat(bench.door.writeFile(`/sys/fs/fuse/connections/${connection}/abort`, "1") === 0, "abort takes the write");
  bench.wait(5);
  expectThat(bench.events().includes("populated 0"), "it is gone");
}

function checkChain(bench: Bench): void {
  const founder = bench.spawn();
  chain(300)(bench.world, founder);
  for (let pass = 0; pass < 40; pass++) {
    bench.door.list("/proc");
    const last = Number(bench.read("/proc/loadavg").trim().split(" ")[4]);
    for (let pid = last; pid >= founder.pid; pid--) {
      const status = bench.door.readText(`/proc/${pid}/status`);
      if (typeof status === "string" && status.includes(`\nUid:\t${accountUid}\t`)) bench.door.signal(pid, SIGKILL);
    }
    bench.wait(1);
    if (bench.events().includes("populated 0")) return;
  }
  throw new Error("not so: the chain is caught within 40 passes");
}
