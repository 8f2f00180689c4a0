// SPDX-License-Identifier: Apache-2.0
// Promise: a pid namespace hides nobody. What the account runs in one is ended, however it came there and whatever stands
// above it; what a container engine runs in one under the same number is left alone, and said.

import { beforeEach, describe, expect, test, vi } from "vitest";

import { tempersOnHost } from "../../../src/tooling/tempers/build-tempers.ts";
import { expectAftermath, expectStopped, freshHost, stopWatched } from "../kit/aftermath.ts";
import { accountPlaces, startCommand, startCounting, temper, unitOf, untilCounting } from "../kit/commands.ts";
import { countersOf, eventually, readCounters } from "../kit/facts.ts";
import { labHost } from "../kit/host.ts";

/** For a busy machine. */
vi.setConfig({ testTimeout: 300_000 });

const host = await labHost();
const uid = (await host.sh("id -u ai-tools")).trim();
const setuid = "/opt/lab/setuid";
const inChromeSandbox = `${setuid}/in-chrome-sandbox`;

// The lab's own sandbox, setuid root; and a door to chrome-sandbox, which closes descriptor 7 and gives up without one.
await host.sh(`mkdir -p ${setuid} && install -m 4755 ${tempersOnHost}/sandboxed ${setuid}/
  printf '#!/bin/sh\nSBX_CHROME_API_RQ=1 exec /usr/lib/chromium/chrome-sandbox "$@" 7</dev/null\n' >${inChromeSandbox}
  chmod 755 ${inChromeSandbox}`);
await host.enableLinger();

beforeEach(async () => {
  await freshHost(host);
  await host.sh(`systemctl start user@${uid}.service`);
});

/** The lab's own setuid-root sandbox; `outer` says what becomes of the process outside, see its source. */
function sandbox(name: string, outer: string): string {
  return temper("sandboxed", name, outer).replace(tempersOnHost, setuid);
}

const ways = [
  ["with --force", ["--force"]],
  ["with a grace", []],
] as const;

/**
 * The premise of every case: what counts as these payloads sits in a pid namespace below the host's, and in the host's
 * own user namespace or in one that the account made.
 */
async function expectInPidNamespace(names: readonly string[], user: "the host's" | "its own"): Promise<void> {
  const counters = (await readCounters(host)).filter(({ ticks }) => ticks > 0);
  const [init = "", ...lines] = (
    await host.sh(`readlink /proc/1/ns/user
    for pid in $(pgrep -f 'counters/20[0-9][0-9]( |$)'); do
      numbers=$(sed -n 's/^NSpid:\\t//p' /proc/$pid/status 2>/dev/null | tr '\\t' ' ')
      echo "$(readlink /proc/$pid/ns/user) $(tr '\\0' ' ' </proc/$pid/cmdline | grep -o 'counters/[0-9]*') $numbers"
    done; true`)
  ).split("\n");
  const seen = lines
    .map((line) => line.split(" "))
    .map(([namespace, path, ...numbers]) => ({ namespace, path, numbers }));
  for (const name of names) {
    const inside = counters.filter(({ payload }) => payload === name).map(({ pid }) => String(pid));
    const found = seen.filter(
      ({ path, numbers }) => path === `counters/${name}` && numbers.length > 1 && inside.includes(numbers.at(-1) ?? ""),
    );
    expect(found.length, `${name} in a pid namespace, among ${lines.join("; ")}`).toBeGreaterThan(0);
    for (const { namespace } of found) expect(namespace === init ? "the host's" : "its own", name).toBe(user);
  }
}

/** Stops, expects that everything is gone and that the host is as before. */
async function expectEnded(options: readonly string[], outcomes: Record<string, string> = {}): Promise<void> {
  const result = await stopWatched(host, "--yes", ...options);
  await expectStopped(host, result, { outcomes });
  const notAccounts = result.report.bystanders.map(({ reason }) => reason).sort();
  expect(notAccounts).toEqual(["a container's process with the same number", "a root process acting for the account"]);
  await expectAftermath(host, result.report);
}

describe("the init of a namespace that the account made with a user namespace of its own", () => {
  const unshare = "unshare --user --map-root-user --pid --fork";

  test.each(ways)("is ended, in every place: %s", async (_, options) => {
    const names = accountPlaces.map((_place, number) => `200${number}`);
    for (const [number, where] of accountPlaces.entries()) {
      await startCounting(host, `200${number}`, where, `${unshare} ${temper("deaf", `200${number}`)}`);
    }
    await expectInPidNamespace(names, "its own");
    await expectEnded(options);
  });

  // A default action does not reach the init of a namespace from outside: SIGTERM does nothing to it.
  test("is ended after the grace that it does not even notice, also below several namespaces", async () => {
    await startCounting(host, "2004", "session", `${unshare} ${temper("plain", "2004")}`);
    await startCounting(host, "2005", "exec", `${unshare} ${unshare} ${unshare} ${temper("plain", "2005")}`);
    await startCounting(host, "2008", "session", temper("plain", "2008"));
    await expectInPidNamespace(["2004", "2005"], "its own");
    await expectEnded([], { [unitOf("2004")]: "killed", [unitOf("2008")]: "terminated" });
  });

  test.each(ways)("is ended where it gave itself root's own shell as parent: %s", async (_, options) => {
    const asAccount = "setpriv --reuid=ai-tools --regid=ai-tools --clear-groups";
    const shell = `sh -c '${asAccount} ${temper("fostered", "2006")}; exec sleep 100'`;
    await startCounting(host, "2006", "root", shell);
    const [inner] = (await countersOf(host, "2006")).filter(({ moves }) => moves);
    expect(inner?.pid).toBe(1);
    await expectInPidNamespace(["2006"], "its own");
    expect(await host.sh("ps -o comm= -p $(ps -o ppid= -p $(pgrep -n -x fostered))")).toBe("sleep\n");
    await expectEnded(options);
    await host.sh("systemctl stop lab-command-2006");
  });
});

describe("what a setuid-root sandbox runs for the account", () => {
  const places = [
    ["in the slice", ["session", "own-manager"]],
    ["outside it", ["system-unit", "exec"]],
  ] as const;
  const cases = places.flatMap(([name, where]) =>
    ways.map(([way, options]) => [`${name}, ${way}`, where, options] as const),
  );

  test.each(cases)(
    "is ended, of firejail, chrome-sandbox and one that goes or stays: %s",
    async (_, wheres, options) => {
      for (const [number, where] of wheres.entries()) {
        const firejail = "firejail --quiet --noprofile";
        await startCounting(host, `201${number}`, where, `${firejail} ${temper("deaf", `201${number}`)}`);
        await startCounting(host, `202${number}`, where, `${inChromeSandbox} ${temper("deaf", `202${number}`)}`);
        await startCounting(host, `203${number}`, where, sandbox(`203${number}`, "ends"));
        await startCounting(host, `204${number}`, where, sandbox(`204${number}`, "waits"));
      }
      const names = wheres.flatMap((_where, number) => ["201", "202", "203", "204"].map((kind) => `${kind}${number}`));
      await expectInPidNamespace(names, "the host's");
      await expectEnded(options);
    },
  );

  // Root's numbers in everything: only who executed its program tells it from a container engine's shim.
  test.each(ways)("is ended, of one that has made itself wholly root's, in every place: %s", async (_, options) => {
    const names = accountPlaces.map((_place, number) => `205${number}`);
    for (const [number, where] of accountPlaces.entries()) {
      // Its first process goes, and a unit whose first process is gone ends the others: the shell stays instead.
      await startCounting(host, `205${number}`, where, `sh -c '${sandbox(`205${number}`, "roots")}; exec sleep 100'`);
    }
    await expectInPidNamespace(names, "the host's");
    const numbers = "ps -o ruid= -o euid= -o suid= -C sandboxed | tr -s ' ' | sort | uniq -c | tr -s ' '";
    const [all, own] = [names.length, ` ${uid}`.repeat(3)];
    await eventually("every one outside is wholly root's", async () => {
      return (await host.sh(numbers)) === ` ${all} 0 0 0\n ${all}${own}\n`;
    });
    await expectEnded(options);
  });

  test("is named as a stray where it sits outside the slice", async () => {
    await startCounting(host, "2061", "system-unit", `firejail --quiet --noprofile ${temper("deaf", "2061")}`);
    await expectInPidNamespace(["2061"], "the host's");
    await expectEnded(["--force"], { "lab-stray-2061.service": "killed" });
  });
});

describe("what runs under the same number in a container", () => {
  const asNumber = `setpriv --reuid=${uid} --regid=${uid} --clear-groups`;

  test("below root's own unshare, deep below", async () => {
    const below = "unshare --pid --fork";
    await startCounting(host, "2071", "root", `${below} ${below} ${asNumber} ${temper("stubborn", "2071")}`);
    await expectInPidNamespace(["2071"], "the host's");
    await expectSpared("2071");
  });

  test("of a real container engine, also what it has forked", async () => {
    await makeBundle("2072", temper("scattered", "2072").split(" "));
    await startCommand(host, "2072", "root", "crun --cgroup-manager=disabled run --bundle /run/lab-bundle lab-2072");
    await untilCounting(host, "2072", 3);
    await expectInPidNamespace(["2072"], "the host's");
    await expectSpared("2072");
  });

  test("is ended inside the account's slice all the same", async () => {
    await startCounting(host, "2073", "root-in-slice", `unshare --pid --fork ${asNumber} ${temper("deaf", "2073")}`);
    await expectInPidNamespace(["2073"], "the host's");
    await expectEnded(["--force"]);
  });

  /** The container goes on through a stop with grace and one without, unsignalled, beside a session that is ended. */
  async function expectSpared(name: string): Promise<void> {
    for (const options of [["--yes"], ["--yes", "--force"]]) {
      await startCounting(host, "2099", "session", temper("polite", "2099"));
      const result = await stopWatched(host, ...options);
      await expectStopped(host, result, {
        outcomes: { [unitOf("2099")]: ["terminated", "killed"] },
        running: [name],
      });
      expect(result.report.bystanders.length).toBeGreaterThan(2);
      for (const { terms } of await countersOf(host, name)) expect(terms).toBe(0);
    }
    await host.sh(`systemctl kill -s KILL lab-command-${name}`);
  }

  /** A bundle of the OCI's runtime specification, in which a command of the lab runs under the account's number. */
  async function makeBundle(name: string, args: string[]): Promise<void> {
    const shared = (path: string) => ({ destination: path, source: path, type: "bind", options: ["rbind"] });
    const config = {
      ociVersion: "1.0.0",
      process: { terminal: false, user: { uid: Number(uid), gid: Number(uid) }, args, env: [], cwd: "/" },
      root: { path: "rootfs" },
      hostname: `lab-${name}`,
      mounts: [{ destination: "/proc", type: "proc", source: "proc" }, shared("/opt/lab"), shared("/run/lab")],
      linux: { namespaces: ["pid", "mount", "ipc", "uts"].map((type) => ({ type })) },
    };
    await host.sh(`rm -rf /run/lab-bundle; mkdir -p /run/lab-bundle/rootfs/dev /run/lab-bundle/rootfs/proc /run/lab-bundle/rootfs/opt/lab /run/lab-bundle/rootfs/run/lab
      cat >/run/lab-bundle/config.json <<'END'\n${JSON.stringify(config)}\nEND`);
  }
});
