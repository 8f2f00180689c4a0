// SPDX-License-Identifier: Apache-2.0
// The mutants: helpers with one thing broken. A test that stays green with one of them proves nothing about the real
// helper (agent-governance-toolkit 754, cloudflare sandbox-sdk 338: kill switches that reported success and killed
// nothing). Each names the tests on real hosts that must go red with it.

import type { Edit } from "./edit.ts";

/** A test that must go red, by file below `tests/boundary/` and a part of its name (groups and title). */
export interface Trap {
  file: string;
  test: string;
  /**
   * What its message looks like then; by default that of an expectation. A payload that did not start in time is red as
   * well, and has noticed nothing.
   */
  why?: RegExp;
}

export interface Mutant {
  name: string;
  /** What is wrong with it. */
  sentence: string;
  edits: Edit[];
  /** Every test that these name must go red. */
  traps: [Trap, ...Trap[]];
  /** The drill must notice it as well. */
  drill?: true;
}

const noWrite: Edit = {
  file: "slice.ts",
  original: 'return writeToSlice(kernel, slice, "cgroup.kill", "1");',
  replacement: 'return "written";',
};
const noSignal: Edit = {
  file: "end-session.ts",
  original: 'if (signalHeld(kernel, held, SIGKILL) === 0) use(kill, "per-pid");',
  replacement: 'use(kill, "per-pid");',
};
const alwaysProved: Edit = {
  file: "end-session.ts",
  original: "kill.proved = proof.add(isEmpty(census) && !kill.slicePopulated, before, lastPid(kernel));",
  replacement: "kill.proved = proof !== undefined && before !== undefined;",
};
const noFinalLook: Edit = {
  file: "stop-sessions.ts",
  original: "if (look.quiet) return;",
  replacement: "if (look !== undefined) return;",
};

/** Text put before a place that stays. */
function before(file: string, original: string, inserted: string): Edit {
  return { file, original, replacement: `${inserted}\n${original}` };
}

const sessionAndStray: Trap = { file: "every-session-ends.test.ts", test: "a session and a stray of the same stop" };
const oneGrace: Trap = { file: "every-session-ends.test.ts", test: "a stop asks once, gives one grace to all" };
const killPath: Trap = { file: "kill-path.test.ts", test: "strace of a whole run on a terminal shows it" };
const orderDown: Trap = { file: "worst-day/census-order.test.ts", test: "it begins at the last number" };

/** Every mutant; `list.test.ts` keeps their texts in step with the source. */
export const mutants: Mutant[] = [
  {
    name: "kills-nothing",
    sentence: "no kill: neither at the slice nor of each process",
    edits: [noWrite, noSignal],
    traps: [sessionAndStray],
    drill: true,
  },
  {
    name: "claims-success",
    sentence: "no kill, and success is reported",
    edits: [noWrite, noSignal, alwaysProved, noFinalLook],
    traps: [sessionAndStray],
    drill: true,
  },
  {
    name: "leaves-strays",
    sentence: "units are ended, but not strays",
    edits: [
      {
        file: "census.ts",
        original: 'if (matches && !impersonated && !namespaced) return { kind: "alive", cgroup: undefined };',
        replacement: `if (matches && !impersonated && !namespaced) {
    const place = readCgroup(view, pid);
    return place !== undefined && isInSlice(scope.slice, place) ? { kind: "alive", cgroup: place } : { kind: "stranger" };
  }`,
      },
    ],
    traps: [{ ...sessionAndStray, why: /^Error: 0 rows of lab-stray-402/ }],
    drill: true,
  },
  {
    name: "kills-only-the-slice",
    sentence: "no kill of each process",
    edits: [noSignal],
    traps: [sessionAndStray],
    drill: true,
  },
  {
    name: "kills-only-processes",
    sentence: "no kill at the slice",
    edits: [noWrite],
    traps: [killPath],
  },
  {
    name: "verifies-nothing",
    sentence: "the verification always says that everything is gone",
    edits: [alwaysProved, noFinalLook],
    traps: [{ file: "survivor.test.ts", test: "is named with state, wait channel and tracer" }],
  },
  {
    name: "takes-no-census",
    sentence: "no census: only the slice is looked at",
    edits: [before("census.ts", "const order = newestFirst(view);", "if (scope !== undefined) return census;")],
    traps: [{ ...sessionAndStray, why: /^Error: 0 rows of ai-tools-claude-code-401/ }],
  },
  {
    name: "counts-upwards",
    sentence: "the census goes upwards, and one look is enough",
    edits: [
      { file: "census.ts", original: "\n  return order;\n", replacement: "\n  return listed.reverse();\n" },
      {
        file: "census.ts",
        original: "if (lastPid(view) !== last) probeNewest(view, options.deadlineMs, look);",
        replacement: "if (last === -1) probeNewest(view, options.deadlineMs, look);",
      },
      {
        file: "end-session.ts",
        original: "if (count >= limits.emptyCensusesOnBusyHost) return true;",
        replacement: "if (count >= 1) return true;",
      },
    ],
    traps: [orderDown],
  },
  {
    name: "looks-once",
    sentence: "one look that meets nobody is a proof",
    edits: [
      {
        file: "end-session.ts",
        original: "if (count >= limits.emptyCensusesOnBusyHost) return true;",
        replacement: "if (count >= 1) return true;",
      },
    ],
    traps: [
      {
        file: "worst-day/census-order.test.ts",
        test: "nobody is said to be gone before two looks in a row met nobody",
      },
    ],
  },
  {
    name: "wakes-nobody",
    sentence: "no SIGCONT after SIGTERM",
    edits: [{ file: "end-session.ts", original: "signalHeld(kernel, held, SIGCONT);", replacement: "void SIGCONT;" }],
    traps: [oneGrace],
  },
  {
    name: "signals-by-number",
    sentence: "signals go by number, a moment after the look, and to the dead as well",
    edits: [
      {
        file: "holding.ts",
        original: "return handle === undefined ? kernel.signal(pid, signal) : kernel.signalHeld(handle, signal);",
        replacement: `const untilMs = kernel.nowMs() + 100;
  while (kernel.nowMs() < untilMs);
  return handle === undefined ? 0 : kernel.signal(pid, signal);`,
      },
      {
        file: "census.ts",
        original: 'if (verdict.kind === "alive" && held !== undefined && !isDead(status))',
        replacement: 'if (verdict.kind === "alive" && held !== undefined)',
      },
    ],
    traps: [
      { file: "worst-day/recycled-number.test.ts", test: "in the grace is not signalled" },
      { file: "worst-day/recycled-number.test.ts", test: "in the kill is not signalled" },
    ],
  },
  {
    name: "believes-zombies",
    sentence: "Z is taken for dead",
    edits: [
      {
        file: "census.ts",
        original: 'return status.state === "Z" && status.threads === 1;',
        replacement: 'return status.state === "Z";',
      },
    ],
    traps: [{ file: "worst-day/zombie-leader.test.ts", test: "one that outlives SIGKILL is a survivor" }],
  },
  {
    name: "kills-impersonators",
    sentence: "root's processes that act for the account are killed",
    edits: [
      {
        file: "census.ts",
        original:
          'if (impersonated) return { kind: "bystander", cgroup, reason: "a root process acting for the account" };',
        replacement: 'if (impersonated) return { kind: "alive", cgroup };',
      },
    ],
    traps: [
      { file: "whose-processes.test.ts", test: "a root process that only acts for the account is named and spared" },
    ],
  },
  {
    name: "restores-first",
    sentence: "the user manager is restored before anything is verified",
    edits: [
      {
        file: "stop-sessions.ts",
        original: "const kill = await killAndProve(run, outside, rows);",
        replacement: `await killAndProve(run, outside, rows);
  withdraw(run, entry);
  await restoreManager(run, entry);
  const kill = await killAndProve(run, outside, rows);`,
      },
    ],
    traps: [{ file: "user-manager.test.ts", test: "a lingering manager is ended with everything, and another one" }],
  },
  {
    name: "restores-anyway",
    sentence: "the manager is restored although the account can write to its home",
    edits: [
      {
        file: "restore-manager.ts",
        original: "const foreign = whatAccountCouldHavePlanted(host, scope.identity.home);",
        replacement:
          "const foreign = host.nowMs() < 0 ? whatAccountCouldHavePlanted(host, scope.identity.home) : undefined;",
      },
    ],
    traps: [{ file: "user-manager.test.ts", test: "a manager that could read what a session wrote stays down" }],
  },
  {
    name: "looks-never-again",
    sentence: "no final look",
    edits: [noFinalLook],
    traps: [
      { file: "worst-day/final-look.test.ts", test: "a process of the account that root starts with its manager" },
    ],
  },
  {
    name: "leaves-frozen",
    sentence: "a slice that was found frozen is not thawed",
    edits: [
      {
        file: "stop-sessions.ts",
        original: "run.report.remarks.push(...thawSlice(run.host, run.scope.slice));",
        replacement: "void [run, thawSlice];",
      },
    ],
    traps: [{ file: "every-session-ends.test.ts", test: "a slice that somebody left frozen" }],
  },
  {
    name: "reads-the-last-number-first",
    sentence: "the last number is read before the list",
    edits: [
      before("census.ts", 'const names = view.list("/proc");', "const early = lastPid(view);"),
      {
        file: "census.ts",
        original: "const last = lastPid(view) ?? listed[0] ?? 0;",
        replacement: "const last = early ?? listed[0] ?? 0;",
      },
    ],
    traps: [orderDown],
  },
  {
    name: "begins-at-the-top",
    sentence: "the list is read from its top, also after the numbers have wrapped",
    edits: [
      {
        file: "census.ts",
        original: "const upToLast = listed.filter((pid) => pid <= last);",
        replacement: "const upToLast = listed;",
      },
    ],
    traps: [{ file: "worst-day/census-order.test.ts", test: "after the numbers have wrapped" }],
  },
  {
    name: "walks-threads",
    sentence: "threads are walked instead of counted",
    edits: [
      {
        file: "census.ts",
        original: "else if (isDead(status)) census.unreaped.push(found);",
        replacement: `else if (
    status.state === "Z" &&
    [view.list(\`/proc/\${pid}/task\`)].flat().every((task) => /^State:\\tZ/m.test(String(view.readText(\`/proc/\${pid}/task/\${task}/status\`))))
  ) census.unreaped.push(found);`,
      },
    ],
    traps: [{ file: "worst-day/census-order.test.ts", test: "nobody's threads are walked to tell who is dead" }],
  },
  {
    name: "terminates-newcomers",
    sentence: "newcomers of the grace get SIGTERM",
    edits: [
      before(
        "end-session.ts",
        "await kernel.sleep(nowMs - startMs < limits.shortPollsMs",
        `for (const { pid } of takeCensus(kernel, scope, { deadlineMs }).alive) {
      if (!staying.has(pid) && !asked.some((found) => found.pid === pid)) kernel.signal(pid, SIGTERM);
    }`,
      ),
    ],
    traps: [oneGrace],
  },
  {
    name: "asks-the-ancestor-alone",
    sentence: "the container exception is made by the ancestor alone",
    edits: [{ file: "census.ts", original: "if (own !== its) return false;", replacement: "" }],
    traps: [
      {
        file: "worst-day/namespaces.test.ts",
        test: "is ended where it gave itself root's own shell as parent: with --force",
      },
    ],
  },
  {
    name: "trusts-any-root-ancestor",
    sentence: "a process that made itself root's counts as a container engine's",
    edits: [
      {
        file: "census.ts",
        original: "return above.uids.every((uid) => uid === 0) ? isExecutedByRoot(view, ancestor) : false;",
        replacement: "return above.uids.every((uid) => uid === 0);",
      },
    ],
    traps: [
      {
        file: "worst-day/namespaces.test.ts",
        test: "is ended, of one that has made itself wholly root's, in every place: with --force",
      },
    ],
  },
  {
    name: "leaves-the-runtime-directory",
    sentence: "the runtime directory is left as it was",
    edits: [
      {
        file: "restore-manager.ts",
        original: "const left = await clearRuntimeDirectory(host, uid, deadlineMs);",
        replacement: "const left = host.nowMs() < 0 ? await clearRuntimeDirectory(host, uid, deadlineMs) : undefined;",
      },
    ],
    traps: [{ file: "worst-day/runtime-directory.test.ts", test: "one that stayed mounted although its unit is over" }],
  },
  {
    name: "prints-first",
    sentence: "something is printed before the kill",
    edits: [
      before(
        "stop-sessions.ts",
        "const kill = await killAndProve(run, outside, rows);",
        'host.print("out", "killing\\n");\n  await host.flush(limits.tableMs);',
      ),
    ],
    traps: [killPath],
  },
  {
    name: "waits-for-newcomers",
    sentence: "each newcomer extends the grace",
    edits: [
      before(
        "end-session.ts",
        "let known = [...asked];",
        "const waitedFor = new Set([...staying, ...asked.map(({ pid }) => pid)]);",
      ),
      before(
        "end-session.ts",
        "if (nowMs >= deadlineMs) return 0;",
        `for (const { pid } of nowMs >= nextProgressMs ? takeCensus(kernel, scope, { deadlineMs }).alive : []) {
      if (!waitedFor.has(pid)) deadlineMs = nowMs + limits.graceMs;
      waitedFor.add(pid);
    }`,
      ),
    ],
    traps: [{ file: "worst-day/grace-window.test.ts", test: "a session that starts something new each second" }],
  },
  {
    name: "trusts-the-wall-clock",
    sentence: "deadlines go by the wall clock",
    edits: [
      {
        file: "quickjs-kernel.ts",
        original: "nowMs(): number {\n    return os.now();",
        replacement: "nowMs(): number {\n    return Date.now();",
      },
    ],
    traps: [{ file: "worst-day/clock.test.ts", test: "the wall clock jumps by a day: forward, with a grace" }],
  },
];
