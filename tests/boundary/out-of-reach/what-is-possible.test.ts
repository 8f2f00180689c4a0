// SPDX-License-Identifier: Apache-2.0
// Promise: what file permissions alone cannot keep the account from is no way past a stop. A manager of its own starts
// units and scopes for it, and a cgroup that was given to it is its own to build in; a stop ends all of it. Where SELinux
// is enforcing, a session can do none of that.

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { quoted } from "../../../src/tooling/lab/terminal.ts";
import { countersOnHost, tempersOnHost } from "../../../src/tooling/tempers/build-tempers.ts";
import { startAccountManager } from "../../../src/tooling/tempers/payloads.ts";
import { accountProcesses, readCounters, running } from "../kit/facts.ts";
import {
  type Act,
  type Acts,
  attempt,
  expectAllDone,
  expectAllRefused,
  isEnforcing,
  standingSession,
} from "../kit/from-inside.ts";
import { gatedHost } from "../kit/journal-gate.ts";
import { clearSessions } from "../kit/sessions.ts";
import { stopWithReport } from "../kit/stop.ts";
import { counts } from "../kit/units.ts";

const { host, gate } = await gatedHost("a session tries to reach the account's manager");
const uid = (await host.sh("id -u ai-tools")).trim();
const runtime = `/run/user/${uid}`;
const slice = `/sys/fs/cgroup/user.slice/user-${uid}.slice`;
const enforcing = await isEnforcing(host);

gate.announce(
  /pam_systemd\(systemd-user:session\): Failed to release session: No session/,
  "a manager that a stop has ended",
);
gate.announce(/systemd\[1\]: Failed to start user@/, "a manager that a stop ends while it starts");

const deaf = (name: string) => `${tempersOnHost}/deaf ${countersOnHost}/${name} 100`;

/** Where the process behind a counter is. */
async function cgroupOf(name: string): Promise<string> {
  const pid = (await readCounters(host)).find(({ payload }) => payload === name)?.pid;
  return host.sh(`grep ^0:: /proc/${pid}/cgroup`);
}

/** A stop by force ends everything: the code says so, no counter moves, and the kernel shows nothing of the account. */
async function expectStopReachesAll(...names: string[]): Promise<void> {
  expect((await running(host)).filter((name) => names.includes(name))).toEqual([...names].sort());
  const { code, report } = await stopWithReport(host, "--force", "--yes");
  expect({ code, survivors: report.survivors, unknown: report.unknown }).toEqual({
    code: 0,
    survivors: [],
    unknown: [],
  });
  expect(await running(host)).toEqual([]);
  expect(await accountProcesses(host)).toEqual([]);
}

beforeEach(() => clearSessions(host));

describe("with a manager of the account", () => {
  beforeEach(() => startAccountManager(host));
  afterEach(() => host.sh(`loginctl disable-linger ai-tools; systemctl stop user@${uid}.service; true`));

  /** Asks that manager through a runtime directory, wherever that one can be seen. */
  const asking = (directory: string, ...words: string[]): Act => [
    "ran",
    ...["env", `XDG_RUNTIME_DIR=${directory}`, `DBUS_SESSION_BUS_ADDRESS=unix:path=${directory}/bus`],
    ...["systemd-run", "--user", "--quiet", "--collect", ...words],
  ];
  const asksFor = (directory: string): Acts => ({
    "a unit": asking(directory, "--unit=lab-unit", ...deaf("7001").split(" ")),
    "a unit that comes back": asking(
      directory,
      "--unit=lab-again",
      "-p",
      "Restart=always",
      "-p",
      "RestartSec=0",
      ...deaf("7002").split(" "),
    ),
    "a scope": asking(
      directory,
      "--scope",
      "--unit=lab-scope",
      "sh",
      "-c",
      `setsid ${deaf("7003")} >/dev/null 2>&1 & sleep 1`,
    ),
  });

  test("a process of the account gets units and scopes from it, and a stop reaches them", async () => {
    expectAllDone(await attempt(host, "unit", asksFor(runtime)), "possible for a process of the account");
    for (const name of ["7001", "7002", "7003"]) await counts(host, name);
    expect(await cgroupOf("7003")).toContain(`user@${uid}.service/`);
    await expectStopReachesAll("7001", "7002", "7003");
  });

  test("a session does not find it by the runtime directory", async () => {
    const acts: Acts = { ...asksFor(runtime), "see the directory": ["look", `${runtime}/systemd/private`] };
    expectAllRefused(await attempt(host, "session", acts), "session", [
      /^exit 1: .*(connect|No such file|medium found)/,
    ]);
  });

  // A process of the same number shows its own view of the files in /proc, the runtime directory included.
  test(
    enforcing
      ? "nor through another process of the account: its domain may not look into it"
      : "through another process of the account it does; what it gets there stays in the slice, and a stop reaches it",
    async () => {
      const manager = (await host.sh(`systemctl show -P MainPID user@${uid}.service`)).trim();
      const acts = asksFor(`/proc/${manager}/root${runtime}`);
      const session = await standingSession(host);
      const answers = await session.ask(acts);
      if (enforcing) {
        expectAllRefused(answers, "session", [/^exit 1: .*(Permission denied|connect|No such file)/]);
        await session.end();
        return;
      }
      expectAllDone(answers, "possible for a session where file permissions alone decide");
      for (const name of ["7001", "7002", "7003"]) await counts(host, name);
      await expectStopReachesAll("7001", "7002", "7003");
    },
  );

  test("its own part of the hierarchy is the manager's to give, and not to leave", async () => {
    const acts: Acts = {
      "into the manager's own cgroup": ["moved", `${slice}/user@${uid}.service/init.scope`],
      "below the manager": ["below", `${slice}/user@${uid}.service`],
    };
    expectAllDone(await attempt(host, "root", acts), "control: possible for root");
    // The common ancestor is the slice, whose files are root's.
    for (const who of ["account", "unit"] as const) expectAllRefused(await attempt(host, who, acts), who);
    expectAllRefused(await attempt(host, "session", acts), "session");
    await host.sh(`rmdir ${slice}/user@${uid}.service/lab-below-* 2>/dev/null; true`);
  });
});

describe("in a cgroup that was delegated to it", () => {
  const delegated = "ai-tools-claude-code-7100.service";
  const unit = `--collect --uid=ai-tools --gid=ai-tools --slice=user-${uid}.slice --unit=${delegated} -p Delegate=yes`;
  const start = (script: string) =>
    host.sh(`systemd-run --quiet ${unit} sh -c ${quoted(script.replaceAll("$", "$$$$"))}`);
  const own = `${slice}/${delegated}`;

  test.each([
    ["nested deep", `mkdir -p ${own}/a/b/c/d && echo $$ >${own}/a/b/c/d/cgroup.procs`],
    ["in a threaded one", `mkdir -p ${own}/t && echo threaded >${own}/t/cgroup.type && echo $$ >${own}/t/cgroup.procs`],
    [
      "in one that forbids more",
      `mkdir -p ${own}/m && echo $$ >${own}/m/cgroup.procs && echo 0 >${own}/m/cgroup.max.descendants`,
    ],
  ])("a process %s is ended by a stop", async (_what, move) => {
    await start(`${move}; exec ${deaf("7101")}`);
    await counts(host, "7101");
    expect(await cgroupOf("7101")).toContain(`${delegated}/`);
    await expectStopReachesAll("7101");
  });

  test("a process that is frozen there, by itself, is ended by a stop", async () => {
    await start(
      `mkdir -p ${own}/f; ${deaf("7102")} & sleep 1; echo $! >${own}/f/cgroup.procs; echo 1 >${own}/f/cgroup.freeze; exec ${deaf("7103")}`,
    );
    await counts(host, "7102");
    await counts(host, "7103");
    expect(
      await host.sh(
        `for look in $(seq 100); do grep -q 'frozen 1' ${own}/f/cgroup.events && break; sleep 0.1; done; cat ${own}/f/cgroup.events`,
      ),
    ).toMatch(/frozen 1/);
    await expectStopReachesAll("7103");
  });

  test("even there, it cannot leave what was given to it", async () => {
    await start("sleep 100");
    await host.sh(`mkdir -p ${own}/x && chown ai-tools: ${own}/x ${own}/x/cgroup.procs`);
    const acts: Acts = {
      above: ["moved", slice],
      "the root": ["moved", "/sys/fs/cgroup"],
      "into it from outside": ["moved", `${own}/x`],
    };
    expectAllDone(await attempt(host, "root", acts), "control: possible for root");
    for (const who of ["account", "unit", "session"] as const) expectAllRefused(await attempt(host, who, acts), who);
    await host.sh(`systemctl kill -s KILL ${delegated}`);
  });
});

test("nothing was logged as an error, and nothing was denied, that is not told above", () => gate.expectQuiet());
