// SPDX-License-Identifier: Apache-2.0
// The story on a host made by hand: what is written, said and executed when. Whether it ends what lives is told by the
// laws of the simulation (laws.test.ts).

import { describe, expect, test } from "vitest";
import type { StopRequest } from "./grammar.ts";
import { HandMadeHost } from "./hand-made-host.fixture.ts";
import {
  type Described,
  place,
  populate,
  slicePath,
  stat,
  statText,
  statusText,
} from "./hand-made-processes.fixture.ts";
import { SIGINT, SIGKILL, SIGTERM } from "./kernel.ts";
import { limits } from "./limits.ts";
import { stopSessions } from "./stop-sessions.ts";

const plain: StopRequest = { dryRun: false, yes: false, force: false, json: false };
const lastStopPath = "/run/ai-tools/last-stop.json";

/** A whole host with these processes; SIGKILL takes a process off it unless it is deaf to that too. */
function hostWith(processes: readonly Described[], immortal: readonly number[] = []): HandMadeHost {
  const host = new HandMadeHost();
  const files = {
    "/etc/passwd":
      "root:x:0:0::/root:/bin/sh\nolga:x:1000:1000::/home/olga:/bin/sh\nai-tools:x:990:990::/var/lib/ai-tools:/bin/false\n",
    "/proc/1/cgroup": "0::/init.scope\n",
    "/proc/self/status": statusText({ pid: host.pid, uids: [0, 0, 0, 0] }),
    "/proc/self/stat": statText({ pid: host.pid }),
    "/proc/self/uid_map": "0 0 4294967295\n",
    "/proc/self/loginuid": "1000",
    "/proc/self/cgroup": "0::/user.slice/user-1000.slice/session-3.scope\n",
    "/proc/self/mountinfo":
      "22 28 0:20 / /proc rw - proc proc rw\n30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
    "/proc/uptime": "900.00 1.00\n",
  };
  for (const [path, text] of Object.entries(files)) host.files.set(path, text);
  host.links.set("/proc/self", String(host.pid));
  host.variables.set("SUDO_UID", "1000");
  host.variables.set("SUDO_USER", "olga");
  host.stats.set(lastStopPath, stat());
  populate(host, processes, Math.max(10, ...processes.map(({ pid }) => pid)));
  const send = host.signal.bind(host);
  host.signal = (pid, signal) => {
    if (signal === SIGKILL && !immortal.includes(pid)) host.files.delete(`/proc/${pid}/status`);
    return send(pid, signal);
  };
  return host;
}

function events(host: HandMadeHost): { AI_TOOLS_RESULT: string; message: string }[] {
  const lines = host.children.flatMap(({ sent }) => sent.split("\n"));
  return lines.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line));
}

const results = (host: HandMadeHost) => events(host).map((event) => event.AI_TOOLS_RESULT);
const lastStop = (host: HandMadeHost) => JSON.parse(String(host.files.get(lastStopPath) ?? "null"));
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
    expect(await stopSessions(host, { ...plain, yes: true, force: true })).toBe(0);
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
    expect(await stopSessions(host, { ...plain, yes: true, force: true })).toBe(1);
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
    expect(await stopSessions(host, { ...plain, yes: true, force: true })).toBe(1);
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
    expect(await stopSessions(host, { ...plain, yes: true, force: true })).toBe(0);
  });

  test("in JSON prints one document on standard output, and everything else on standard error", async () => {
    const host = hostWith([session]);
    host.terminals = [0, 1, 2];
    expect(await stopSessions(host, { ...plain, yes: true, json: true })).toBe(0);
    expect(JSON.parse(host.printed.out)).toMatchObject({ verdict: "stopped", exitCode: 0, consent: "flag" });
    expect(host.printed.err).toContain("STOPPED");
  });
});

describe("an error of our own never ends a run early and is never a success", () => {
  test("in what only informs: the stop happens, and the error is told", async () => {
    const host = hostWith([session]);
    host.startProgram = () => {
      throw new Error("out of everything");
    };
    expect(await stopSessions(host, { ...plain, yes: true, force: true })).toBe(0);
    expect(host.printed.out).toContain("an error of our own");
  });

  test("in the kill: tried again, then not proved", async () => {
    const host = hostWith([session]);
    host.signal = () => {
      throw new Error("impossible");
    };
    expect(await stopSessions(host, { ...plain, yes: true, force: true })).toBe(1);
    expect(host.printed.out).toContain("NOT STOPPED");
    expect(lastStop(host)).toMatchObject({ exitCode: 1 });
  });
});

describe("the trail cannot hold up a stop", () => {
  test("hung: the stop is done long before the recorder is given up, and it is told", async () => {
    const host = hostWith([session]);
    host.recorder = "hangs";
    const startMs = host.clockMs;
    expect(await stopSessions(host, { ...plain, yes: true, force: true })).toBe(0);
    expect(host.clockMs - startMs).toBeLessThan(limits.reportMs + 1_000);
    expect(host.printed.err).toContain("the trail may be incomplete");
  });

  test("not to be started: the stop is done and it is told", async () => {
    const host = hostWith([session]);
    host.recorder = { errno: 11 };
    expect(await stopSessions(host, { ...plain, yes: true, force: true })).toBe(0);
    expect(host.printed.err).toContain("the trail was not written");
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
