// SPDX-License-Identifier: Apache-2.0
// An error of our own in any part of the story: the kill is reached, the error is told, and nothing becomes a success by
// it. And what is done between the question and the kill does not grow faster than the number of processes.

import { afterEach, describe, expect, test, vi } from "vitest";
import type { Census, Scope } from "./census.ts";
import type { HandMadeHost } from "./hand-made-host.fixture.ts";
import { populate, slicePath, statText, statusText } from "./hand-made-processes.fixture.ts";
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
  throwing,
  withManager,
} from "./hand-made-stop.fixture.ts";
import { SIGKILL, SIGTERM } from "./kernel.ts";
import type { Row } from "./rows.ts";
import { stopSessions } from "./stop-sessions.ts";

/** What the rows do besides their work: throw, or count how often somebody looks at a process in them. */
const scene = { rowsThrow: false, counting: false, looks: 0 };

function look(pid: number): number {
  scene.looks++;
  return pid;
}

vi.mock("./rows.ts", async (importOriginal) => {
  const original = await importOriginal<typeof import("./rows.ts")>();
  const counted = (row: Row) => {
    row.processes = row.processes.map((found) => {
      const { pid } = found;
      return Object.defineProperty(found, "pid", { get: () => look(pid), enumerable: true });
    });
    return row;
  };
  return {
    ...original,
    rowsOf: (scope: Scope, census: Census) => {
      if (scene.rowsThrow) {
        scene.rowsThrow = false;
        throw new Error("out of everything");
      }
      const rows = original.rowsOf(scope, census);
      return scene.counting ? rows.map(counted) : rows;
    },
  };
});

afterEach(() => void Object.assign(scene, { rowsThrow: false, counting: false, looks: 0 }));

const session = { pid: 50 };
const freeze = `/sys/fs/cgroup${slicePath}/cgroup.freeze`;
const always = () => true;

describe("an error of our own before the kill does not keep it away, and is told", () => {
  /** What breaks, how, and with which words the report names it. */
  const parts: [part: string, breaks: (host: HandMadeHost) => void][] = [
    ["census", (host) => throwing(host, "list", (path) => path === "/proc")],
    ["rows", () => void Object.assign(scene, { rowsThrow: true })],
    ["terminal", (host) => failing(host, "terminalDevice")],
    ["projects", (host) => throwing(host, "readLink", (path) => path === "/proc/51/cwd")],
    ["table", (host) => throwing(host, "print", always)],
    ["question", (host) => failing(host, "discardTyped")],
    ["manager", (host) => throwing(host, "readText", (path) => path === managerEvents)],
    ["announcement", (host) => throwing(host, "makeDirectory", always)],
    ["thaw", (host) => throwing(host, "readText", (path) => path === freeze)],
    ["grace", (host) => throwing(host, "signal", (_pid, signal) => signal === SIGTERM)],
    ["kill", (host) => throwing(host, "signal", (_pid, signal) => signal === SIGKILL)],
  ];

  function broken(breaks: (host: HandMadeHost) => void): HandMadeHost {
    const host = hostWith([session, { pid: 51, cgroup: `${slicePath}/user@990.service/run-1.scope` }]);
    host.terminals = [0, 1, 2];
    host.keys.push({ atMs: host.clockMs + 10, text: "\n" });
    breaks(host);
    return host;
  }

  test.each(parts)("in the part %j", async (part, breaks) => {
    const host = broken(breaks);
    expect(await stopSessions(host, plain)).toBe(0);
    const killed = host.signals.filter(({ signal }) => signal === SIGKILL).map(({ pid }) => pid);
    expect(new Set(killed)).toEqual(new Set([50, 51]));
    expect(host.printed.out).toContain(`${part}: an error of our own (Error: out of everything)`);
    expect(results(host)).toContain("stopped");
    expect(lastStop(host)).toMatchObject({ verdict: "stopped", exitCode: 0 });
    expect([...host.files.keys()].filter((path) => path.startsWith("/run/ai-tools/stop/400"))).toEqual([]);
  });

  test.each(parts)("in the part %j, without a grace", async (_part, breaks) => {
    const host = broken(breaks);
    expect(await stopSessions(host, atOnce)).toBe(0);
    expect(results(host)).toContain("stopped");
  });

  test("in the recorder: the stop is done without it", async () => {
    const host = broken((one) => failing(one, "startRecorder"));
    expect(await stopSessions(host, atOnce)).toBe(0);
    expect(lastStop(host)).toMatchObject({ verdict: "stopped" });
  });

  test("in the first event of the trail: the stop is done", async () => {
    const host = broken((one) => {
      const clock = one.wallClockMs.bind(one);
      let calls = 0;
      one.wallClockMs = () => (++calls === 2 ? fail() : clock());
    });
    expect(await stopSessions(host, atOnce)).toBe(0);
  });

  test("in the question: that is an unreadable answer", async () => {
    const host = broken((one) => failing(one, "discardTyped"));
    await stopSessions(host, plain);
    expect(events(host).at(-1)).toMatchObject({ AI_TOOLS_CONSENT: "unreadable" });
  });

  test("in the look at the manager: it counts as running and comes back", async () => {
    const host = withManager(hostWith([session]));
    throwing(host, "readText", (path) => path === managerEvents);
    expect(await stopSessions(host, atOnce)).toBe(0);
    expect(host.commandLines.filter((line) => line === startManager)).toHaveLength(1);
  });

  test("in the announcement: the manager comes back without its note", async () => {
    const host = withManager(hostWith([session]));
    throwing(host, "makeDirectory", always);
    expect(await stopSessions(host, atOnce)).toBe(0);
    expect(host.commandLines.filter((line) => line === startManager)).toHaveLength(1);
  });

  test("in the announcement, once its entry is there: this stop is not taken for another one", async () => {
    const host = withManager(hostWith([session]));
    throwing(host, "createFile", (path) => path === restoreNote);
    const makeEntry = host.createFile.bind(host);
    host.createFile = (path, text, mode) => {
      const errno = makeEntry(path, text, mode);
      host.directories.set("/run/ai-tools/stop", [path.slice(path.lastIndexOf("/") + 1)]);
      return errno;
    };
    host.files.set(`/proc/${host.pid}/status`, statusText({ pid: host.pid, uids: [0, 0, 0, 0] }));
    host.files.set(`/proc/${host.pid}/stat`, statText({ pid: host.pid }));
    expect(await stopSessions(host, atOnce)).toBe(0);
    expect(host.commandLines.filter((line) => line === startManager)).toHaveLength(1);
  });

  test("in the announcement: a manager that did not run stays away", async () => {
    const host = withManager(hostWith([session]));
    host.files.set(managerEvents, "populated 0\n");
    throwing(host, "makeDirectory", always);
    expect(await stopSessions(host, atOnce)).toBe(0);
    expect(host.commandLines).not.toContain(startManager);
  });
});

describe("an error of our own in or after the kill is never a success that nobody saw", () => {
  test("in every try of the kill: not proved", async () => {
    const host = hostWith([session]);
    host.signal = () => fail();
    expect(await stopSessions(host, atOnce)).toBe(1);
    expect(host.printed.out).toContain("NOT STOPPED");
    expect(lastStop(host)).toMatchObject({ exitCode: 1 });
  });

  test("in the final look: nobody saw that all stayed gone", async () => {
    const host = hostWith([session]);
    const list = host.list.bind(host);
    host.list = (path) => (path === "/proc" && host.files.has(lastStopPath) ? fail() : list(path));
    expect(await stopSessions(host, atOnce)).toBe(1);
    expect(host.printed.out).toContain("final look: an error of our own");
    expect(host.printed.out).toContain("no look at all processes was finished in time");
    expect(lastStop(host)).toMatchObject({ verdict: "incomplete", exitCode: 1 });
  });

  test("in the record: the verdict stands, the entry goes and the error is told", async () => {
    const host = hostWith([session]);
    host.replaceFile = () => fail();
    expect(await stopSessions(host, atOnce)).toBe(0);
    expect(host.printed.out).toContain("record: an error of our own");
    expect([...host.files.keys()].filter((path) => path.startsWith("/run/ai-tools/stop/400"))).toEqual([]);
  });

  test("in taking the entry back: the verdict stands", async () => {
    const host = withManager(hostWith([session]));
    throwing(host, "remove", (path) => String(path).startsWith("/run/ai-tools/stop/400"));
    expect(await stopSessions(host, atOnce)).toBe(0);
    expect(lastStop(host)).toMatchObject({ verdict: "stopped" });
    expect(host.printed.out).toContain("announcement: an error of our own");
  });

  test("in every program: the stop happens, and the error is told", async () => {
    const host = withManager(hostWith([session]));
    host.startProgram = () => fail();
    expect(await stopSessions(host, atOnce)).toBe(0);
    expect(host.printed.out).toContain("projects: an error of our own");
    expect(host.printed.out).toContain("restore: an error of our own");
  });
});

describe("between the question and the kill", () => {
  /** Looks at processes of rows, for so many in one unit. */
  async function looksAt(count: number): Promise<number> {
    const cgroup = `${slicePath}/ai-tools-claude-code-7.service`;
    const processes = Array.from({ length: count }, (_, index) => ({ pid: 1_000 + index, cgroup }));
    const host = hostWith(processes);
    host.terminals = [0, 1, 2];
    host.discardTyped = () => {
      // As many again come while the question stands.
      const late = processes.map(({ pid }) => ({ pid: pid + count, cgroup }));
      populate(host, [...processes, ...late], 1_000 + 2 * count);
      scene.looks = 0;
      return Promise.resolve(true);
    };
    host.keys.push({ atMs: host.clockMs + 10, text: "\n" });
    let looks = -1;
    const make = host.makeDirectory.bind(host);
    host.makeDirectory = (path) => {
      if (looks < 0) looks = scene.looks;
      return make(path);
    };
    scene.counting = true;
    expect(await stopSessions(host, plain)).toBe(0);
    return looks;
  }

  test("the work grows with the number of processes, not with its square", async () => {
    const few = await looksAt(100);
    const many = await looksAt(1_000);
    expect(few).toBeGreaterThan(0);
    expect(many).toBeLessThanOrEqual(20 * few);
    expect(many).toBeLessThanOrEqual(20 * 1_000);
  });
});

function failing(host: HandMadeHost, method: "terminalDevice" | "discardTyped" | "startRecorder"): void {
  host[method] = () => fail();
}

function fail(): never {
  throw new Error("out of everything");
}
