// SPDX-License-Identifier: Apache-2.0
// After the verdict: what was planted is cleared first, the manager comes back only where it can read nothing that the
// account wrote, and whatever hangs or refuses ends within the limit with a reason and the command that mends it.

import { describe, expect, test } from "vitest";
import { wantRestore } from "./announcement.ts";
import { HandMadeHost, inTurn, type Program } from "./hand-made-host.fixture.ts";
import { place, scopeOf, slicePath, stat } from "./hand-made-processes.fixture.ts";
import { EAGAIN, EIO, ENOENT } from "./kernel.ts";
import { limits } from "./limits.ts";
import { clearAndRestore, isManagerRunning } from "./restore-manager.ts";

const home = "/var/lib/ai-tools";
const linger = "/var/lib/systemd/linger/ai-tools";
const runtime = "/run/user/990";
const note = "/run/ai-tools/stop/restore-wanted";
const systemctl = "/usr/bin/systemctl";
const managerEvents = `/sys/fs/cgroup${slicePath}/user@990.service/cgroup.events`;

/** A host after a stop that found the manager running: lingering on, the home root's, nothing left. */
function stoppedHost(): HandMadeHost {
  const host = new HandMadeHost();
  host.files.set("/proc/uptime", "120.50 80.00\n");
  host.stats.set(linger, stat());
  host.stats.set(home, stat({ kind: "directory", mode: 0o755 }));
  host.directories.set(home, ["home", ".config"]);
  host.stats.set(`${home}/home`, stat({ kind: "directory", mode: 0o750, uid: 990 }));
  host.stats.set(`${home}/.config`, stat({ kind: "directory", mode: 0o755 }));
  host.directories.set(`${home}/.config`, []);
  host.directories.set("/run/ai-tools/stop", []);
  wantRestore(host, true);
  return host;
}

async function restoreOn(host: HandMadeHost, options = {}) {
  const startMs = host.clockMs;
  const answer = await clearAndRestore(host, scopeOf(), options);
  expect(host.clockMs - startMs).toBeLessThanOrEqual(limits.restoreMs + limits.restoreRetryMs + limits.childPollMs);
  return answer;
}

const starts = (host: HandMadeHost) =>
  host.commandLines.filter((line) => line === `${systemctl} start user@990.service`);

/** What systemctl does when it is asked to start the manager. */
function onStart(host: HandMadeHost, ...programs: Program[]): HandMadeHost {
  const next = inTurn(...programs);
  host.program = (line) => (line.endsWith("start user@990.service") ? next() : undefined);
  return host;
}

describe("the manager comes back", () => {
  test("where it ran, lingers and can read nothing of the account's", async () => {
    const host = stoppedHost();
    expect(await restoreOn(host)).toEqual({
      outcome: "restored",
      reason: undefined,
      mend: undefined,
      startedAfterTicks: 12_050,
    });
    expect(host.commandLines).toEqual([
      `${systemctl} reset-failed user@990.service user-runtime-dir@990.service`,
      `${systemctl} start user@990.service`,
    ]);
  });

  test("without a note where none could be left, and with one the note is taken", async () => {
    const host = stoppedHost();
    host.files.delete(note);
    expect(await restoreOn(host, { withoutNote: true })).toMatchObject({ outcome: "restored" });
    expect(starts(host)).toHaveLength(1);
    const noted = stoppedHost();
    expect(await restoreOn(noted, { withoutNote: true })).toMatchObject({ outcome: "restored" });
    expect([starts(noted).length, noted.files.has(note)]).toEqual([1, false]);
  });

  test("after a start that failed for a while: pids of a big kill are not free at once", async () => {
    const host = onStart(
      stoppedHost(),
      { code: 1, output: "Device or resource busy" },
      { code: 1, output: "" },
      { code: 0 },
    );
    expect(await restoreOn(host)).toMatchObject({ outcome: "restored" });
    expect(starts(host)).toHaveLength(3);
  });

  test("a systemctl that does not start for lack of a pid is tried again", async () => {
    const host = onStart(stoppedHost(), { errno: EAGAIN }, { code: 0 });
    expect(await restoreOn(host)).toMatchObject({ outcome: "restored" });
  });

  test("only after what was planted in the runtime directory is gone", async () => {
    const host = stoppedHost();
    host.stats.set(runtime, inTurn<ReturnType<typeof stat> | number>(stat({ kind: "directory" }), ENOENT));
    expect(await restoreOn(host)).toMatchObject({ outcome: "restored" });
    const unit = "user-runtime-dir@990.service";
    expect(host.commandLines.slice(0, 3)).toEqual(
      ["reset-failed", "start", "stop"].map((verb) => `${systemctl} ${verb} ${unit}`),
    );
    expect(host.commandLines.at(-1)).toBe(`${systemctl} start user@990.service`);
  });
});

describe("the manager stays away", () => {
  test.each<[string, string | number]>([
    ["is frozen", "1\n"],
    ["cannot be read", EIO],
  ])("where the slice %s: nothing is started in it", async (_name, freeze) => {
    const host = stoppedHost();
    host.files.set(`/sys/fs/cgroup${slicePath}/cgroup.freeze`, freeze);
    const { outcome, reason, mend } = await restoreOn(host);
    expect([outcome, reason]).toEqual(["not-restored", "the slice is frozen: whatever is started in it hangs"]);
    expect(mend).toMatch(/^echo 0 >\/sys\/fs\/cgroup\S+\/cgroup\.freeze && systemctl .*start user@990\.service$/);
    expect(host.commandLines).toEqual([]);
  });

  async function refusedOn(host: HandMadeHost) {
    const answer = await restoreOn(host);
    expect(answer.outcome).toBe("not-restored");
    expect(answer.startedAfterTicks === undefined || starts(host).length > 0).toBe(true);
    return answer;
  }

  test("masked: one try, the reason, and the command that mends it", async () => {
    const host = onStart(stoppedHost(), {
      code: 1,
      output: "Failed to start user@990.service: Unit user@990.service is masked.\n",
    });
    const { reason, mend } = await refusedOn(host);
    expect(reason).toContain("is masked");
    expect(reason).toContain("may still be queued");
    expect(mend).toBe("systemctl reset-failed user@990.service; systemctl start user@990.service");
    expect(starts(host)).toHaveLength(1);
  });

  test("systemctl hangs: it is ended at the limit and not asked again", async () => {
    const host = onStart(stoppedHost(), "hangs");
    expect((await refusedOn(host)).reason).toContain("no answer in time");
    expect(starts(host)).toHaveLength(1);
    expect(host.children.at(-1)?.abandoned).toBe(true);
  });

  test("every call of systemctl hangs, the first one too", async () => {
    const host = stoppedHost();
    host.program = () => "hangs";
    expect((await refusedOn(host)).reason).toContain("no answer in time");
  });

  test("it fails again and again: tries end with the limit", async () => {
    const host = onStart(stoppedHost(), { code: 1, output: "\x1b[31mJob failed\x1b[0m\nsecond line" });
    const { reason } = await refusedOn(host);
    expect(reason).toMatch(/^[\x20-\x7e]+$/);
    expect(reason).not.toContain("second line");
    expect(starts(host).length).toBeGreaterThan(5);
  });

  test("systemctl is not there", async () => {
    const host = onStart(stoppedHost(), { errno: ENOENT });
    expect((await refusedOn(host)).reason).toContain("did not start (errno 2)");
  });

  test("the runtime directory stays: nothing is started that would run what was planted there", async () => {
    const host = stoppedHost();
    host.stats.set(runtime, stat({ kind: "directory", uid: 990 }));
    const { reason, mend } = await refusedOn(host);
    expect(reason).toContain("/run/user/990 could not be removed");
    expect(mend).toMatch(/^systemctl reset-failed user-runtime-dir@990.*&& systemctl .*start user@990\.service$/);
    expect(starts(host)).toEqual([]);
  });

  test("clearing the runtime directory hangs", async () => {
    const host = stoppedHost();
    host.stats.set(runtime, stat({ kind: "directory", uid: 990 }));
    host.program = (line) => (line.includes("user-runtime-dir@") ? "hangs" : undefined);
    expect((await refusedOn(host)).reason).toContain("no answer in time");
    expect(starts(host)).toEqual([]);
  });

  test("a runtime directory that nobody can look at counts as there", async () => {
    const host = stoppedHost();
    host.stats.set(runtime, EIO);
    await refusedOn(host);
    expect(starts(host)).toEqual([]);
  });

  test.each<[string, (host: HandMadeHost) => void]>([
    ["belongs to the account", (host) => void host.stats.set(home, stat({ kind: "directory", mode: 0o755, uid: 990 }))],
    ["is writable for the group", (host) => void host.stats.set(home, stat({ kind: "directory", mode: 0o775 }))],
    ["is writable for all", (host) => void host.stats.set(home, stat({ kind: "directory", mode: 0o1777 }))],
    ["cannot be looked at", (host) => void host.stats.set(home, EIO)],
    ["does not exist", (host) => void host.stats.set(home, ENOENT)],
    ["cannot be listed", (host) => void host.directories.set(home, EIO)],
    [
      "holds a directory of the account",
      (host) => void host.stats.set(`${home}/.config`, stat({ kind: "directory", uid: 990 })),
    ],
    [
      "holds a directory that all may write to",
      (host) => void host.stats.set(`${home}/.config`, stat({ kind: "directory", mode: 0o777 })),
    ],
    [
      "holds a file of the account, deeper down",
      (host) => {
        host.directories.set(`${home}/.config`, ["environment.d"]);
        host.stats.set(`${home}/.config/environment.d`, stat({ uid: 990 }));
      },
    ],
    [
      "holds a link of the account",
      (host) => {
        host.directories.set(`${home}/.config`, ["systemd"]);
        host.stats.set(`${home}/.config/systemd`, stat({ kind: "link", mode: 0o777, uid: 990 }));
      },
    ],
    [
      "holds a link of root's: it may lead to where a session writes",
      (host) => {
        host.directories.set(home, ["home", ".config"]);
        host.stats.set(`${home}/.config`, stat({ kind: "link", mode: 0o777 }));
      },
    ],
    [
      "holds a link of root's further down, with a mode that looks harmless",
      (host) => {
        host.directories.set(`${home}/.config`, ["systemd"]);
        host.stats.set(`${home}/.config/systemd`, stat({ kind: "link", mode: 0o755 }));
      },
    ],
    ["is itself a link of root's", (host) => void host.stats.set(home, stat({ kind: "link", mode: 0o777 }))],
    [
      "holds another directory named home, further down, of the account",
      (host) => {
        host.directories.set(`${home}/.config`, ["home"]);
        host.stats.set(`${home}/.config/home`, stat({ kind: "directory", uid: 990 }));
      },
    ],
    [
      "holds more than can be checked",
      (host) => {
        const names = Array.from({ length: limits.homeEntries + 1 }, (_, index) => `f${index}`);
        host.directories.set(home, names);
        for (const name of names) host.stats.set(`${home}/${name}`, stat());
      },
    ],
  ])("its home %s: it could read what a session wrote", async (_name, changes) => {
    const host = stoppedHost();
    changes(host);
    const { reason } = await refusedOn(host);
    expect(reason).toMatch(/\/var\/lib\/ai-tools/);
    expect(starts(host)).toEqual([]);
  });

  test("files and directories of root's in its home are no fault, nor is what was removed meanwhile", async () => {
    const host = stoppedHost();
    host.directories.set(`${home}/.config`, ["systemd", "gone"]);
    host.stats.set(`${home}/.config/systemd`, stat({ kind: "directory", mode: 0o755 }));
    host.directories.set(`${home}/.config/systemd`, ["user.conf"]);
    host.stats.set(`${home}/.config/systemd/user.conf`, stat());
    expect((await restoreOn(host)).outcome).toBe("restored");
  });

  test("lingering is off: it belonged to a login that is over", async () => {
    const host = stoppedHost();
    host.stats.delete(linger);
    expect(await restoreOn(host)).toMatchObject({ outcome: "not-wanted", mend: undefined });
    expect(host.commandLines).toEqual([]);
  });

  test("it did not run: only the runtime directory is cleared", async () => {
    const host = stoppedHost();
    host.files.delete(note);
    expect(await restoreOn(host)).toMatchObject({ outcome: "not-running", reason: undefined });
    host.stats.set(runtime, stat({ kind: "directory", uid: 990 }));
    expect(await restoreOn(host)).toMatchObject({ outcome: "not-running", reason: expect.stringContaining(runtime) });
    expect(starts(host)).toEqual([]);
  });
});

describe("left to another stop", () => {
  test("that is at work: not even the runtime directory is touched, and the note stays", async () => {
    const host = stoppedHost();
    host.stats.set(runtime, stat({ kind: "directory", uid: 990 }));
    host.directories.set("/run/ai-tools/stop", ["400-9", "300-7"]);
    place(host, { pid: 300, startTicks: 7, uids: [0, 0, 0, 0] });
    expect(await restoreOn(host)).toMatchObject({ outcome: "left-to-another-stop" });
    expect(host.commandLines).toEqual([]);
    expect(host.files.has(note)).toBe(true);
  });

  test("whose entry is of a dead helper: it does not hold up the restore", async () => {
    const host = stoppedHost();
    host.directories.set("/run/ai-tools/stop", ["400-9", "300-7"]);
    expect(await restoreOn(host)).toMatchObject({ outcome: "restored" });
  });

  test("that was at work meanwhile, where the manager runs again already or nobody can tell", async () => {
    for (const answer of ["populated 1\n", "", EIO]) {
      const host = stoppedHost();
      host.files.set(managerEvents, answer);
      expect(await restoreOn(host, { others: true })).toMatchObject({ outcome: "left-to-another-stop" });
      expect(host.commandLines).toEqual([]);
    }
  });

  // PID 1 may start it for a helper that was killed, or for a login of the account's.
  test("not where none was at work: a manager that somebody else started goes with what it may have found planted", async () => {
    const host = stoppedHost();
    host.files.set(managerEvents, "populated 1\n");
    host.stats.set(runtime, stat({ kind: "directory", uid: 990 }));
    host.program = (line) => {
      if (line === `${systemctl} stop user-runtime-dir@990.service`) host.stats.delete(runtime);
      return undefined;
    };
    expect(await restoreOn(host)).toMatchObject({ outcome: "restored" });
    expect(host.commandLines).toContain(`${systemctl} stop user-runtime-dir@990.service`);
    expect(host.files.has(note)).toBe(false);
  });

  test("that began while the manager came back: it will end it once more, so the note stays for it", async () => {
    const host = stoppedHost();
    host.program = (line) => {
      if (!line.endsWith("start user@990.service")) return undefined;
      host.directories.set("/run/ai-tools/stop", ["400-9", "300-7"]);
      place(host, { pid: 300, startTicks: 7, uids: [0, 0, 0, 0] });
      return undefined;
    };
    expect(await restoreOn(host)).toMatchObject({ outcome: "restored" });
    expect(host.files.has(note)).toBe(true);
  });
});

test("whether the manager runs is told by its own cgroup; unknown counts as running", () => {
  const host = new HandMadeHost();
  const answers = ["populated 1\n", "populated 0\n", EIO, ENOENT];
  const running = answers.map((answer) => {
    host.files.set(managerEvents, answer);
    return isManagerRunning(host, scopeOf());
  });
  expect(running).toEqual([true, false, true, false]);
});
