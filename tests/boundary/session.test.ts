// SPDX-License-Identifier: Apache-2.0
// Promise: an operator starts a configured program in a claimed project as the account, gets its output and exit status,
// and owns what it wrote when it has ended by itself.

import { beforeEach, describe, expect, test } from "vitest";

import { eventually } from "./kit/facts.ts";
import { labHost } from "./kit/host.ts";
import {
  accountsFiles,
  atHome,
  beside,
  claimedProject,
  clearSessions,
  entryPoint,
  expectDone,
  inDirectory,
  owners,
  recordsOf,
  sessionUnits,
  shellEntryPoint,
  startSession,
} from "./kit/sessions.ts";
import { stop } from "./kit/stop.ts";

const host = await labHost();
const uid = (await host.sh("id -u ai-tools")).trim();

beforeEach(() => clearSessions(host));

/** Runs a shell script as a session and answers with what came back. */
async function session(directory: string, script: string, ...lines: string[]) {
  const shell = await shellEntryPoint(host, ...lines);
  return inDirectory(host, directory, ["--run", shell, "--", "-c", script]);
}

describe("the whole story", () => {
  test("claim, a session that commits with git, a stop, the files back, a session again that says so", async () => {
    const path = await claimedProject(host);
    await host.sh(
      `cd ${path} && git init -q -b main && git add README && git -c user.name=O -c user.email=o@h commit -qm one`,
      {
        user: "olga",
      },
    );
    const commit = "git -c user.name=S -c user.email=s@h commit -qam";
    const first = await session(
      path,
      `echo two >>README && ${commit} two && mkdir made && echo new >made/file && git log --oneline | wc -l`,
    );
    await expectDone(first);
    expect(first.stdout).toBe("2\n");
    // What it wrote is olga's; what it wrote below .git can be read and changed by both.
    expect(await accountsFiles(host, path)).toEqual(
      (await accountsFiles(host, path)).filter((line) => line.startsWith("ai-tools .git/")),
    );
    expect(await owners(host, path)).toContain("olga made/file");
    await host.sh(`cd ${path} && echo three >>README && git -c user.name=O -c user.email=o@h commit -qam three`, {
      user: "olga",
    });

    const shell = await shellEntryPoint(host);
    const script = `echo four >>README; ${commit} four; touch left; sleep 60`;
    const running = await startSession(host, path, [shell, "--", "-c", script]);
    await eventually("it has worked", async () => (await host.run(["test", "-e", `${path}/left`])).code === 0);
    const stopped = await stop(host, "--force", "--yes");
    expect(stopped.code).toBe(0);
    expect(stopped.stdout).toContain(`To take the files back: ai-tools --reclaim ${path}`);
    expect((await running.ended).code).toBe(137);
    expect(await accountsFiles(host, path)).toContain("ai-tools left");
    expect(await recordsOf(host)).toMatchObject([{ unit: running.unit, ended: { clean: false } }]);

    const again = await session(path, "touch again");
    await expectDone(again);
    expect(again.stderr).toContain(running.unit);
    expect(again.stderr).toMatch(/\.git/);
    expect(await accountsFiles(host, path)).toEqual([]);
    expect(await recordsOf(host)).toEqual([]);
    expect((await session(path, "true")).stderr).toBe("");
  });

  test("the reclaim line of the stop's report, pasted, takes everything back", async () => {
    const path = await claimedProject(host, `${beside}/new\nline caf\u00e9 'q' $x`);
    const shell = await shellEntryPoint(host);
    const { ended } = await startSession(host, path, [shell, "--", "-c", "mkdir .git; touch left .git/left; sleep 60"]);
    await eventually("it has worked", async () => (await host.run(["test", "-e", `${path}/.git/left`])).code === 0);
    const { stdout } = await stop(host, "--force", "--yes");
    await ended;
    const line = /^To take the files back: (.*)$/m.exec(stdout)?.[1] ?? "";
    expect(line).not.toBe("");
    await expectDone(await host.run(["bash", "-c", line], { user: "olga" }));
    expect(await accountsFiles(host, path)).toEqual([]);
    expect((await session(path, "true")).stderr).toBe("");
  });
});

describe("a session", () => {
  test("is a unit of PID 1 in the account's slice, as the account, without new privileges", async () => {
    const path = await claimedProject(host);
    const shell = await shellEntryPoint(host);
    const { unit, ended } = await startSession(host, path, [shell, "--", "-c", "sleep 60"]);
    expect(unit).toMatch(/^ai-tools-lab-shell-\d+\.service$/);
    const shown = await host.sh(
      `systemctl show -p Slice,User,Group,NoNewPrivileges,UMask ${unit}; pid=$(systemctl show -p MainPID --value ${unit}); cat /proc/$pid/status; readlink /proc/$pid/cwd`,
    );
    for (const line of [
      `Slice=user-${uid}.slice`,
      "User=ai-tools",
      "Group=ai-tools",
      "NoNewPrivileges=yes",
      "UMask=0007",
      `\n${path}\n`,
      "NoNewPrivs:\t1",
      "CapBnd:\t0000000000000000",
    ])
      expect(shown).toContain(line);
    expect((await host.run(["systemctl", "is-active", `user@${uid}.service`])).stdout).toBe("inactive\n");
    await host.sh(`systemctl kill -s KILL ${unit}`);
    await ended;
  });

  test("has a clean environment, a home of its own, and neither /run/user nor a bus", async () => {
    const path = await claimedProject(host);
    const { stdout } = await inDirectory(
      host,
      path,
      [
        "--run",
        await shellEntryPoint(host),
        "--",
        "-c",
        "env; id -u; ls -A /run/user; test -e /run/dbus/system_bus_socket && echo bus",
      ],
      { env: { SECRET: "olgas", LD_PRELOAD: "/tmp/x.so", GIT_DIR: "/tmp" } },
    );
    expect(stdout).toMatch(/^HOME=\/var\/lib\/ai-tools\/home$/m);
    expect(stdout).toMatch(new RegExp(`^${uid}$`, "m"));
    expect(stdout).not.toMatch(/SECRET|LD_PRELOAD|GIT_DIR|SUDO_|XDG_RUNTIME_DIR|DBUS|olga|^bus$/m);
  });

  test("sees of the homes its project alone", async () => {
    const path = await claimedProject(host, `${atHome}/p`);
    await host.sh("echo secret >/home/olga/secret; chmod 644 /home/olga/secret; chmod 755 /home/olga", {
      user: "olga",
    });
    const { stdout } = await session(path, `pwd; ls; cat /home/olga/secret; ls /home /home/olga; touch made`);
    expect(stdout).toContain(`${path}\nREADME\n`);
    expect(stdout).not.toMatch(/secret|ursula/);
    expect(await owners(host, path)).toContain("olga made");
  });

  test.each([0, 1, 2, 77, 125, 255])("returns its exit status: %i", async (code) => {
    const path = await claimedProject(host);
    expect((await session(path, `touch made; exit ${code}`)).code).toBe(code);
    // Whatever the code: it ended by itself.
    expect(await owners(host, path)).toContain("olga made");
    expect(await recordsOf(host)).toEqual([]);
  });

  test.each([
    ["TERM", 143],
    ["INT", 130],
    ["HUP", 129],
    ["KILL", 137],
    ["SEGV", 139],
  ])("ended by SIG%s it returns %i, and nothing is handed back", async (signal, code) => {
    const path = await claimedProject(host);
    expect((await session(path, `touch made; kill -${signal} $$; sleep 5`)).code).toBe(code);
    expect(await accountsFiles(host, path)).toEqual(["ai-tools made"]);
    expect(await recordsOf(host)).toMatchObject([{ ended: { clean: false } }]);
  });

  test("gets its arguments as they are", async () => {
    const path = await claimedProject(host);
    const words = [
      "a b",
      "",
      "$HOME",
      "$$",
      ["$", "{x}"].join(""),
      "%h",
      "*",
      "\\n",
      "'q\"",
      "new\nline",
      "caf\u00e9",
      "--",
      "-x",
      ";",
    ];
    const print = await entryPoint(host, "print", "Exec=/usr/bin/printf", "Arguments=[%s] fixed 'in one'");
    const { stdout, stderr } = await inDirectory(host, path, ["--run", print, "--", ...words]);
    expect(stderr).toBe("");
    expect(stdout).toBe(["fixed", "in one", ...words].map((word) => `[${word}]`).join(""));
  });

  test.each([
    ["an argument", `${beside}/shop`, "x\n[Service]\nExecStopPost=+/usr/bin/touch /root/owned\n"],
    ["a path", `${beside}/x\nExecStopPost=+touch owned\n[Service]\nUser=root`, "y"],
  ])(
    "%s with a line break becomes no line of the unit, when PID 1 reads its units again",
    async (_what, where, word) => {
      const path = await claimedProject(host, where);
      const shell = await shellEntryPoint(host);
      const { unit, ended } = await startSession(host, path, [shell, "--", "-c", "pwd; sleep 3", word]);
      await host.sh("systemctl daemon-reload");
      const shown = await host.sh(`systemctl show -p ExecStopPost,User ${unit}`);
      expect(shown).toContain("User=ai-tools\n");
      expect(shown).not.toMatch(/touch/);
      expect((await ended).stdout).toBe(`${path}\n`);
      expect((await host.run(["test", "-e", "/root/owned"])).code).toBe(1);
    },
  );

  test("starts in the directory of the operator, anywhere in the project", async () => {
    const path = await claimedProject(host);
    await host.sh(`mkdir -p '${path}/a b/c'`, { user: "olga" });
    expect((await session(`${path}/a b/c`, "pwd; touch made")).stdout).toBe(`${path}/a b/c\n`);
    expect(await owners(host, path)).toContain("olga a b/c/made");
  });

  test.each([
    ["yes", /eth|lo/],
    ["no", /^lo$/],
  ])("NetworkAccess=%s", async (access) => {
    const path = await claimedProject(host);
    const own = "readlink /proc/self/ns/net";
    const { stdout } = await session(path, own, `NetworkAccess=${access}`);
    expect(stdout === (await host.sh(own))).toBe(access === "yes");
  });

  test("what it leaves in the background ends with it, and the files are back all the same", async () => {
    const path = await claimedProject(host);
    await expectDone(await session(path, "(while :; do touch late; sleep 0.1; done) & touch made"));
    expect(await sessionUnits(host)).toEqual([]);
    expect(await accountsFiles(host, path)).toEqual([]);
  });

  test("what had to be killed at its end makes it no clean one", async () => {
    const path = await claimedProject(host);
    const deaf = "(trap '' TERM; while :; do touch late; sleep 0.1; done)";
    const { code } = await session(path, `${deaf} & until [ -e late ]; do sleep 0.05; done`);
    expect(code).toBe(0);
    expect(await sessionUnits(host)).toEqual([]);
    expect(await recordsOf(host)).toMatchObject([{ ended: { clean: false } }]);
  });

  test("fifty at once", async () => {
    const path = await claimedProject(host);
    const shell = await shellEntryPoint(host);
    const all = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        inDirectory(host, path, ["--run", shell, "--", "-c", `echo ${index}; touch f${index}; sleep 2`]),
      ),
    );
    expect(all.map(({ code }) => code)).toEqual(all.map(() => 0));
    expect(all.map(({ stdout }) => stdout)).toEqual(all.map((_, index) => `${index}\n`));
    expect(await accountsFiles(host, path)).toEqual([]);
    expect(await recordsOf(host)).toEqual([]);
  });
});

describe("no session is started, 125, and a sentence says why:", () => {
  const refuses = async (directory: string, words: string[], says: RegExp, user = "olga") => {
    const { code, stderr } = await inDirectory(host, directory, ["--run", ...words], { user });
    expect(stderr).toMatch(says);
    expect(code).toBe(125);
    expect(await sessionUnits(host)).toEqual([]);
    expect(await recordsOf(host)).toEqual([]);
  };

  test("in a directory that is not claimed, claimed by somebody else, or another one than was claimed", async () => {
    const shell = await shellEntryPoint(host);
    await refuses("/home/olga", [shell], /--claim/);
    const path = await claimedProject(host);
    await refuses(path, [shell], /olga/, "oscar");
    await host.sh(`mv ${path} ${path}.old; mkdir ${path}`, { user: "olga" });
    await refuses(path, [shell], /claim/);
  });

  test("for root, whose no project is", async () => {
    const path = await claimedProject(host);
    await refuses(path, [await shellEntryPoint(host)], /operator/, "root");
  });

  test.each<[string, string, string[], string, RegExp]>([
    ["not root's", "chown olga", ["Exec=/bin/true"], "x", /root/],
    ["writable by others", "chmod 664", ["Exec=/bin/true"], "x", /writ/],
    ["relative", "true", ["Exec=true"], "x", /absolute/],
    ["an unknown key", "true", ["Exec=/bin/true", "User=root"], "x", /User/],
    ["no Exec", "true", ["Description=x"], "x", /Exec/],
    ["a wrong switch", "true", ["Exec=/bin/true", "NetworkAccess=maybe"], "x", /NetworkAccess/],
  ])("an entry point that is %s", async (_what, change, lines, name, says) => {
    const path = await claimedProject(host);
    const entry = await entryPoint(host, name, ...lines);
    await host.sh(`${change} /etc/ai-tools/entrypoints.d/${entry}.conf`);
    await refuses(path, [entry], says);
  });

  test.each([["../x"], ["Shell"], ["a b"], ["nothing-such"], [""], ["-x"]])(
    "an entry point called %j",
    async (name) => {
      await refuses(await claimedProject(host), [name], /entry point|usage|run/i);
    },
  );

  test("whoever is no operator", async () => {
    const path = await claimedProject(host);
    const shell = await shellEntryPoint(host);
    for (const user of ["ursula", "ai-tools"]) {
      expect((await inDirectory(host, path, ["--run", shell], { user })).code).not.toBe(0);
      expect(await sessionUnits(host)).toEqual([]);
    }
  });
});
