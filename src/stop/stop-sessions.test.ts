// SPDX-License-Identifier: Apache-2.0
// The story on a host made by hand: what is written, said and executed when. Whether it ends what lives is told by the
// laws of the simulation (laws.test.ts).

import { describe, expect, test } from "vitest";
import { type HandMadeHost, inTurn, type Program } from "./hand-made-host.fixture.ts";
import { place, slicePath, statText } from "./hand-made-processes.fixture.ts";
import {
  atOnce,
  events,
  hostWith,
  lastStop,
  lastStopPath,
  managerEvents,
  plain,
  restoreNote,
  results,
  startManager,
  withManager,
} from "./hand-made-stop.fixture.ts";
import { EAGAIN, EROFS, ESRCH, SIGINT, SIGKILL, SIGTERM } from "./kernel.ts";
import { limits } from "./limits.ts";
import { stopSessions } from "./stop-sessions.ts";

const session = { pid: 50 };

function nothingTouched(host: HandMadeHost): void {
  expect(host.signals).toEqual([]);
  expect(host.writes).toEqual([]);
  expect([...host.files.keys()].filter((path) => path.startsWith("/run/"))).toEqual([]);
}

describe("a refusal is exit 5, touches nothing and says what to do by hand", () => {
  test("not root: nothing of root's is started or recorded", async () => {
    const host = hostWith([session]);
    host.root = false;
    expect(await stopSessions(host, plain)).toBe(5);
    expect(host.printed.err).toContain("only root can stop sessions; operators run: ai-tools --stop");
    expect(host.printed.err).toContain("pkill -KILL -U ai-tools");
    expect(host.children).toEqual([]);
    nothingTouched(host);
  });

  test.each<[string, (host: HandMadeHost) => void, string]>([
    ["no account", (host) => void host.files.set("/etc/passwd", "root:x:0:0::/root:/bin/sh\n"), "-U ai-tools"],
    ["a helper in a container", (host) => void host.files.set("/proc/1/cgroup", "0::/\n"), "-U 990"],
  ])("%s: recorded as refused, and answered in JSON too", async (_name, changes, byHand) => {
    const host = hostWith([session]);
    changes(host);
    expect(await stopSessions(host, { ...plain, json: true })).toBe(5);
    expect(host.printed.err).toContain("nothing was stopped");
    expect(host.printed.err).toContain(byHand);
    expect(results(host)).toEqual(["refused"]);
    expect(JSON.parse(host.printed.out)).toMatchObject({ verdict: "refused", exitCode: 5 });
    nothingTouched(host);
  });
});

describe("nothing is touched, and it is recorded", () => {
  test("by a dry run, which shows the table and ends with 0", async () => {
    const host = hostWith([session]);
    expect(await stopSessions(host, { ...plain, dryRun: true, yes: true, force: true })).toBe(0);
    expect(host.printed.out).toContain("ai-tools-claude-code-50.service");
    expect(host.printed.out).toContain("To stop it: ai-tools --stop");
    expect(results(host)).toEqual(["requested", "dry-run"]);
    nothingTouched(host);
  });

  test("by a declined stop, which ends with 4", async () => {
    const host = hostWith([session]);
    host.terminals = [0, 1, 2];
    host.keys.push({ atMs: host.clockMs + 10, text: "n\n" });
    expect(await stopSessions(host, plain)).toBe(4);
    expect(results(host)).toEqual(["requested", "declined"]);
    nothingTouched(host);
  });

  test.each([SIGINT, SIGTERM])(
    "by one that signal %i interrupts at the question, which ends with 128+n",
    async (signal) => {
      const host = hostWith([session]);
      host.terminals = [0, 1, 2];
      host.signalArrived = { signal, arrivesMs: host.clockMs + 200 };
      expect(await stopSessions(host, plain)).toBe(128 + signal);
      expect(results(host)).toEqual(["requested", "interrupted"]);
      nothingTouched(host);
    },
  );
});

describe("a stop", () => {
  test("with --force kills, proves and records: requested, each row, the verdict", async () => {
    const host = hostWith([session, { pid: 51, cgroup: "/system.slice/cron.service", command: "sh" }]);
    expect(await stopSessions(host, atOnce)).toBe(0);
    expect(host.signals.every(({ signal }) => signal === SIGKILL)).toBe(true);
    expect(results(host)).toEqual(["requested", "killed", "stray-ended", "stopped"]);
    expect(events(host)[1]).toMatchObject({
      AI_TOOLS_CALLER: "olga",
      AI_TOOLS_CALLER_UID: 1000,
      AI_TOOLS_CONSENT: "flag",
      AI_TOOLS_FORCE: true,
      AI_TOOLS_UNIT: "ai-tools-claude-code-50.service",
      AI_TOOLS_PASS: "sigkill",
    });
    expect(host.printed.out).toContain("STOPPED: everything that was found is verified gone");
    expect(host.printed.out).toContain("stray pid 51 (sh)");
    expect(lastStop(host)).toMatchObject({ verdict: "stopped", exitCode: 0, caller: "olga (uid 1000)" });
  });

  test("of nothing asks nobody and still proves it", async () => {
    const host = hostWith([]);
    host.terminals = [0, 1, 2];
    host.typed = () => expect.unreachable("there is nothing to ask about");
    expect(await stopSessions(host, plain)).toBe(0);
    expect(host.writes.map(({ path }) => path)).toContain(`/sys/fs/cgroup${slicePath}/cgroup.kill`);
    expect(lastStop(host)).toMatchObject({ verdict: "nothing-running" });
  });

  test("executes no program and prints nothing between consent and verdict", async () => {
    const host = hostWith([session]);
    host.terminals = [];
    const seen: string[] = [];
    const note = (what: string) => void seen.push(what);
    const { startProgram, print, signal } = host;
    host.startProgram = (argv) => {
      note("program");
      return startProgram.call(host, argv);
    };
    host.print = (stream, text) => {
      note("print");
      print.call(host, stream, text);
    };
    host.signal = (pid, number) => {
      note(`signal ${number}`);
      return signal.call(host, pid, number);
    };
    expect(await stopSessions(host, plain)).toBe(0);
    const between = seen.slice(seen.indexOf(`signal ${SIGTERM}`), seen.lastIndexOf(`signal ${SIGKILL}`));
    expect(between.filter((what) => !what.startsWith("signal"))).toEqual([]);
    expect(seen.indexOf("print")).toBeLessThan(seen.indexOf(`signal ${SIGTERM}`));
  });

  test("says ALIVE and ends with 1 where something survives, and the manager is left alone", async () => {
    const host = hostWith([session], [50]);
    host.files.set("/proc/50/wchan", "request_wait_answer");
    expect(await stopSessions(host, atOnce)).toBe(1);
    expect(host.printed.out).toContain("ALIVE       pid 50 (agent): state S, waiting in request_wait_answer");
    expect(host.printed.out).toContain("NOT STOPPED");
    expect(results(host)).toEqual(["requested", "alive", "incomplete"]);
    expect(lastStop(host)).toMatchObject({ verdict: "incomplete", exitCode: 1 });
    expect(host.commandLines.filter((line) => / (start|stop) /.test(line))).toEqual([]);
  });

  test("says reappeared and ends with 1 where something is alive again at the final look", async () => {
    const host = hostWith([session]);
    host.replaceFile = (path, text) => {
      // Right after the verdict somebody starts another session.
      if (!host.files.has(path)) place(host, { pid: 60 });
      host.directories.set("/proc", ["1", "60"]);
      host.files.set(path, text);
      return 0;
    };
    expect(await stopSessions(host, atOnce)).toBe(1);
    expect(host.printed.out).toMatch(/reappeared {2}ai-tools-claude-code-60\.service/);
    expect(results(host)).toEqual(["requested", "killed", "stopped", "reappeared", "reappeared"]);
    expect(lastStop(host)).toMatchObject({ verdict: "reappeared", exitCode: 1 });
  });

  test("interrupted in the grace says that nothing is verified, and is recorded as interrupted", async () => {
    const host = hostWith([session], []);
    host.signalArrived = { signal: SIGINT, arrivesMs: host.clockMs + 3_000 };
    expect(await stopSessions(host, { ...plain, yes: true })).toBe(130);
    expect(host.signals.map(({ signal }) => signal)).not.toContain(SIGKILL);
    expect(results(host)).toEqual(["requested", "interrupted"]);
    expect(host.printed.out).toContain("nothing was killed or verified");
    expect(lastStop(host)).toMatchObject({ verdict: "interrupted", exitCode: 130 });
  });

  test("that is interrupted once the kill has begun ends with the verdict's code", async () => {
    const host = hostWith([session]);
    const { signal } = host;
    host.signal = (pid, number) => {
      if (number === SIGKILL) host.signalArrived = { signal: SIGINT, arrivesMs: 0 };
      return signal.call(host, pid, number);
    };
    expect(await stopSessions(host, atOnce)).toBe(0);
  });

  test("in JSON prints one document on standard output, and everything else on standard error", async () => {
    const host = hostWith([session]);
    host.terminals = [0, 1, 2];
    expect(await stopSessions(host, { ...plain, yes: true, json: true })).toBe(0);
    expect(JSON.parse(host.printed.out)).toMatchObject({ verdict: "stopped", exitCode: 0, consent: "flag" });
    expect(host.printed.err).toContain("STOPPED");
  });
});

describe("the final look", () => {
  /** Comes right after the verdict and is gone when the host has been listed so often again. */
  function respawning(host: HandMadeHost, seenLooks: number, pid = 60): void {
    let looks = 0;
    const list = host.list.bind(host);
    host.list = (path) => {
      if (path !== "/proc" || !host.files.has(lastStopPath)) return list(path);
      if (++looks > seenLooks) {
        host.files.delete(`/proc/${pid}/status`);
        return ["1"];
      }
      place(host, { pid });
      return ["1", String(pid)];
    };
  }

  test("does not forgive a respawner that was seen once", async () => {
    const host = hostWith([session]);
    respawning(host, 1);
    expect(await stopSessions(host, atOnce)).toBe(1);
    expect(host.printed.out).toMatch(/reappeared {2}ai-tools-claude-code-60\.service/);
    expect(lastStop(host)).toMatchObject({ verdict: "reappeared", exitCode: 1 });
  });

  test("lets a program of the restored manager go that was over before its place was read", async () => {
    const host = withManager(hostWith([session]));
    respawning(host, 1);
    const read = host.readText.bind(host);
    host.readText = (path) => {
      if (path === "/proc/60/cgroup") host.files.delete("/proc/60/status");
      return path === "/proc/60/cgroup" ? ESRCH : read(path);
    };
    expect(await stopSessions(host, atOnce)).toBe(0);
    expect(results(host)).toEqual(["requested", "killed", "stopped", "manager-restored"]);
  });
});

describe("the user manager", () => {
  /** Signals, in their order, with whether the note was there. */
  function noteAtEachSignal(host: HandMadeHost): boolean[] {
    const seen: boolean[] = [];
    const send = host.signal.bind(host);
    host.signal = (pid, signal) => {
      seen.push(host.files.has(restoreNote));
      return send(pid, signal);
    };
    return seen;
  }

  test.each([atOnce, { ...plain, yes: true }])(
    "has its note before anything is signalled, and comes back once: force $force",
    async (request) => {
      const host = withManager(hostWith([session]));
      const noted = noteAtEachSignal(host);
      expect(await stopSessions(host, request)).toBe(0);
      expect(noted.length).toBeGreaterThan(0);
      expect(noted).not.toContain(false);
      expect(host.files.has(restoreNote)).toBe(false);
      expect(host.commandLines.filter((line) => line === startManager)).toHaveLength(1);
      expect(results(host)).toContain("manager-restored");
    },
  );

  test("keeps its note where the stop does not reach its end: the next one brings it back", async () => {
    const host = withManager(hostWith([session], [50]));
    expect(await stopSessions(host, atOnce)).toBe(1);
    expect(host.files.has(restoreNote)).toBe(true);
    expect(host.commandLines).not.toContain(startManager);
    const next = withManager(hostWith([session]));
    next.files.set(managerEvents, "populated 0\n");
    next.files.set(restoreNote, "");
    expect(await stopSessions(next, atOnce)).toBe(0);
    expect(next.commandLines).toContain(startManager);
  });

  test("comes back without a note where none could be left", async () => {
    const host = withManager(hostWith([session]));
    host.writeAnswers.set(restoreNote, EROFS);
    expect(await stopSessions(host, atOnce)).toBe(0);
    expect(host.commandLines.filter((line) => line === startManager)).toHaveLength(1);
    expect(results(host)).toContain("manager-restored");
  });

  // A stop that is shortly before this one brings it back meanwhile, and takes its note away.
  test("that another stop brings back during the grace is noted before it is ended, and comes back", async () => {
    const host = withManager(hostWith([session]));
    host.files.set(managerEvents, "populated 0\n");
    const comesMs = host.clockMs + 3_000;
    let came = false;
    host.onRead = () => {
      if (came || host.clockMs < comesMs) return;
      came = true;
      host.files.set(managerEvents, "populated 1\n");
    };
    const noted: boolean[] = [];
    const send = host.signal.bind(host);
    host.signal = (pid, signal) => {
      if (signal === SIGKILL) noted.push(host.files.has(restoreNote));
      return send(pid, signal);
    };
    expect(await stopSessions(host, { ...plain, yes: true })).toBe(0);
    expect(noted).toContain(true);
    expect(noted).not.toContain(false);
    expect(host.commandLines.filter((line) => line === startManager)).toHaveLength(1);
  });

  test("stays away where it did not run, also where nothing can be announced", async () => {
    const host = withManager(hostWith([session]));
    host.files.set(managerEvents, "populated 0\n");
    host.writeAnswers.set(restoreNote, EROFS);
    expect(await stopSessions(host, atOnce)).toBe(0);
    expect(host.commandLines).not.toContain(startManager);
  });

  test("comes back after a stop that was interrupted in the grace, where nothing is left", async () => {
    const host = withManager(hostWith([session]));
    const arrivesMs = host.clockMs + 3_000;
    host.signalArrived = { signal: SIGTERM, arrivesMs };
    host.onRead = (path) => {
      if (path !== "/proc/50/status" || host.clockMs < arrivesMs) return;
      host.files.delete(path);
      host.files.set(managerEvents, "populated 0\n");
    };
    expect(await stopSessions(host, { ...plain, yes: true })).toBe(143);
    expect(host.commandLines.filter((line) => line === startManager)).toHaveLength(1);
    // What is started from here on must not be ended by the same key once more.
    expect(host.ignored).toEqual(expect.arrayContaining([SIGINT, SIGTERM]));
  });
});

describe("a Ctrl-C at a terminal that a process to be stopped has as well", () => {
  const device = 34_819;

  function interruptedAt(atMs: number, terminal: number): HandMadeHost {
    const host = hostWith([{ ...session, terminal }]);
    host.terminals = [0, 1, 2];
    host.device = device;
    host.files.set("/proc/self/stat", statText({ pid: host.pid, terminal: device }));
    host.signalArrived = { signal: SIGINT, arrivesMs: host.clockMs + atMs };
    return host;
  }

  test.each([0, 3_000])("does not call off the stop, %i ms after its beginning", async (atMs) => {
    const host = interruptedAt(atMs, device);
    expect(await stopSessions(host, plain)).toBe(0);
    expect(results(host).at(-1)).toBe("stopped");
    expect(events(host).at(-1)).toMatchObject({ AI_TOOLS_CONSENT: "shared-terminal" });
  });

  test("is the operator's at one that nobody shares", async () => {
    const host = interruptedAt(0, 0);
    expect(await stopSessions(host, plain)).toBe(130);
    nothingTouched(host);
  });
});

describe("the record of the last stop", () => {
  test("that could not be written is told on standard error and in the report; the verdict stands", async () => {
    const host = hostWith([session]);
    host.writeAnswers.set(lastStopPath, EROFS);
    const problem = `${lastStopPath} could not be written (errno 30): it does not tell of this stop`;
    expect(await stopSessions(host, { ...atOnce, json: true })).toBe(0);
    expect(host.printed.err).toContain(`ai-tools: ${problem}\n`);
    expect(JSON.parse(host.printed.out)).toMatchObject({ verdict: "stopped", remarks: [problem] });
  });
});

test("a stop that could not be counted says whom it may have missed", async () => {
  const host = hostWith([session]);
  host.writeAnswers.set("/run/ai-tools/stop/count", EROFS);
  expect(await stopSessions(host, { ...atOnce, json: true })).toBe(0);
  const { remarks } = JSON.parse(host.printed.out);
  expect(remarks).toEqual([
    expect.stringMatching(/^the counter of stops could not be raised \(errno 30\): a session .* stop again$/),
  ]);
});

describe("the report", () => {
  test("begins on a line of its own after a line of progress", async () => {
    const host = hostWith([session]);
    host.terminals = [1];
    expect(await stopSessions(host, { ...plain, yes: true })).toBe(0);
    expect(host.printed.out).toMatch(/ s left {3}\n(?!\r)/);
  });

  test.each([
    [atOnce, 1],
    [{ ...plain, dryRun: true }, 1],
    [plain, 0],
  ] as const)("has the recorder's hints and PID 1's, unless the stop was declined: %j", async (request, count) => {
    const host = hostWith([session]);
    host.terminals = [0, 1, 2];
    host.keys.push({ atMs: host.clockMs + 10, text: "n\n" });
    const unit = "ai-tools-claude-code-50.service";
    host.program = (line) =>
      line.includes(" show ") ? { code: 0, output: `Id=${unit}\nRestart=always\nUser=ai-tools\n` } : undefined;
    host.recorder = { code: 0, output: "hint: The account has a crontab\ndone\n" };
    await stopSessions(host, request);
    expect(host.printed.out.split("The account has a crontab").length - 1).toBe(count);
    expect(host.printed.out.split(`PID 1 may start ${unit} again`).length - 1).toBe(count);
    expect(host.printed.err).not.toContain("hint");
  });

  test("waits until it has arrived, last of all", async () => {
    const host = hostWith([session]);
    const order: string[] = [];
    const { print } = host;
    host.print = (stream, text) => {
      order.push("print");
      print.call(host, stream, text);
    };
    host.closeOutput = (limitMs) => {
      order.push(`close ${limitMs}`);
      return Promise.resolve(false);
    };
    expect(await stopSessions(host, atOnce)).toBe(0);
    expect(order.at(-1)).toBe(`close ${limits.reportMs}`);
    expect(order.filter((what) => what.startsWith("close"))).toHaveLength(1);
  });
});

describe("the trail cannot hold up a stop", () => {
  test("hung: the stop is done long before the recorder is given up, and it is told", async () => {
    const host = hostWith([session]);
    host.recorder = "hangs";
    const startMs = host.clockMs;
    expect(await stopSessions(host, atOnce)).toBe(0);
    expect(host.clockMs - startMs).toBeLessThan(limits.reportMs + 1_000);
    expect(host.printed.err).toContain("the trail may be incomplete");
  });

  test("not to be started: the stop is done and it is told", async () => {
    const host = hostWith([session]);
    host.recorder = { errno: 11 };
    expect(await stopSessions(host, atOnce)).toBe(0);
    expect(host.printed.err).toContain("the trail was not written");
  });

  test("not to be started before the kill: it is started at the end and gets everything in order", async () => {
    const host = hostWith([session]);
    host.recorder = inTurn<Program>({ errno: EAGAIN }, { code: 0, output: "done\n" });
    expect(await stopSessions(host, atOnce)).toBe(0);
    expect(results(host)).toEqual(["requested", "killed", "stopped"]);
    expect(host.printed.err).toBe("");
  });

  test("a caller who was not believed is recorded as root, with the claim", async () => {
    const host = hostWith([]);
    host.variables.set("SUDO_UID", "1001");
    await stopSessions(host, plain);
    expect(events(host)[0]).toMatchObject({
      AI_TOOLS_RESULT: "identity-rejected",
      AI_TOOLS_CALLER: "root",
      AI_TOOLS_CALLER_UID: 0,
    });
    expect(events(host)[0]?.message).toContain("SUDO_UID=1001");
  });
});
