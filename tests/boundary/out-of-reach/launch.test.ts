// SPDX-License-Identifier: Apache-2.0
// Promise: where SELinux is enforcing, a session runs in the domain ai_tools_t or not at all; where it is not, the operator
// is told that it does not confine. What is missing is named with the line that mends it.

import { afterAll, afterEach, describe, expect, test } from "vitest";

import { isEnforcing } from "../kit/from-inside.ts";
import { gatedHost } from "../kit/journal-gate.ts";
import {
  claimedProject,
  expectDone,
  inDirectory,
  onTerminal,
  owners,
  sessionUnits,
  shellEntryPoint,
  startSession,
} from "../kit/sessions.ts";

const { host, gate } = await gatedHost();
gate.announce(
  / comm="semodule" .*scontext=\S+:semanage_t:/,
  "Debian 13's own policy denies semodule its own store, and it goes on",
);
const enforcing = await isEnforcing(host);
const project = await claimedProject(host);
const shell = await shellEntryPoint(host);
const launcher = "/usr/lib/ai-tools/ai-tools-session";
const domain = "system_u:system_r:ai_tools_t:s0";
/** The first line; on a slow host it is also said that a handback takes its time. */
const unconfined = /^ai-tools: not confined: SELinux is permissive\n/;
/** On an emulated processor the policy is rebuilt for minutes. */
const rebuilding = { timeoutMs: 600_000 };

/** A session that says in which context it is. */
const run = (script = "cat /proc/self/attr/current") =>
  inDirectory(host, project, ["--run", shell, "--", "-c", script]);

async function status(): Promise<{ code: number; stdout: string; selinux: Record<string, unknown> }> {
  const { code, stdout } = await host.run(["ai-tools", "--status"]);
  const json = await host.run(["ai-tools", "--status", "--json"]);
  return { code, stdout, selinux: JSON.parse(json.stdout).selinux };
}

if (enforcing) whereSelinuxEnforces();
else
  test("without SELinux sessions start as ever, and --status says what holds them", async () => {
    const { code, stderr } = await run("true");
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const seen = await status();
    expect(seen.code).toBe(0);
    expect(seen.stdout).toMatch(/^note +SELinux +off: file permissions alone hold sessions$/m);
    expect(seen.selinux).toEqual({ mode: "off" });
  });

test("nothing was logged as an error, and nothing was denied, that is not told above", () => gate.expectQuiet());

/** A case that a host does not have is none of its cases, and no skipped one. */
function whereSelinuxEnforces(): void {
  afterEach(async () => {
    await host.sh(`setenforce 1; restorecon -F ${launcher}`);
  });

  describe("a session", () => {
    test("is in its domain, as root sees it from outside, with all that it starts", async () => {
      const { ended } = await startSession(host, project, [shell, "--", "-c", "sleep 60 & sleep 60; true"]);
      const contexts = await host.sh(`cd /sys/fs/cgroup/user.slice/user-$(id -u ai-tools).slice/ai-tools-*.service
        until [ $(wc -l <cgroup.procs) -ge 3 ]; do sleep 0.1; done
        for pid in $(cat cgroup.procs); do tr '\\0' '\\n' </proc/$pid/attr/current; done`);
      expect(contexts).toBe(`${domain}\n`.repeat(3));
      const seen = await status();
      expect([seen.code, seen.stdout]).toEqual([3, expect.stringMatching(/^RUNNING: .*; all \d+ checks/)]);
      expect(seen.selinux).toEqual({
        mode: "enforcing",
        session: domain,
        isDomainPermissive: false,
        // Whose it is depends on who installed it.
        launcher: expect.stringMatching(/:object_r:ai_tools_exec_t:s0$/),
      });
      await host.sh(`systemctl kill -s KILL ${(await sessionUnits(host))[0]}`);
      expect((await ended).code).toBe(137);
    });

    test("gets its input and gives its output, each stream apart, and has nothing of the caller's open", async () => {
      const script = "cat; echo apart >&2; ls -l /proc/$$/fd | sed -n 's/.* -> //p'";
      const { code, stdout, stderr } = await inDirectory(host, project, ["--run", shell, "--", "-c", script], {
        input: "in\n",
      });
      expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining("apart\n") });
      expect(stdout).toMatch(
        /^in\n(\/run\/ai-tools\/streams\/ai-tools-lab-shell-\d+\.service\.[012]( \(deleted\))?\n){3}/,
      );
      const redirected = `cd ${project} && echo file >in && ai-tools --run ${shell} -- -c 'cat; echo err >&2' <in >>out 2>&1`;
      await host.sh(`${redirected}; cat ${project}/out; rm ${project}/in ${project}/out`, { user: "olga" });
    });

    test("has a terminal of its own where the operator has one", async () => {
      const terminal = onTerminal(host, project, ["--run", shell]);
      await terminal.waitFor(/\$ $/, 60_000);
      terminal.type("tr '\\0' '\\n' </proc/$$/attr/current; test -t 0 && echo ready-$((1+1)) >/dev/tty; exit 7\r");
      expect(await terminal.exit).toBe(7);
      expect(terminal.text()).toMatch(/ready-2/);
      expect(terminal.text()).toContain(domain);
    });

    test("has what it wrote given back by what PID 1 starts, and the end of the claim gives back the label", async () => {
      const path = await claimedProject(host, "/home/olga/lab/labels");
      const labels = async () => (await host.sh(`cd ${path}; find . -printf '%Z\\n' | cut -d: -f3 | sort -u`)).trim();
      expect(await labels()).toBe("ai_tools_project_t");
      const script = "mkdir -p d; echo x >d/f; ln -s f d/l; mkfifo d/p; echo y >~/f; cp ~/f .; rm ~/f";
      await expectDone(await inDirectory(host, path, ["--run", shell, "--", "-c", script]));
      expect((await owners(host, path)).filter((line) => !line.startsWith("olga "))).toEqual([]);
      expect(await labels()).toBe("ai_tools_project_t");
      await expectDone(await inDirectory(host, "/", ["--unclaim", path]));
      expect(await labels()).toBe("user_home_t");
    });
  });

  describe("no session starts", () => {
    /** Nothing ran: 125, no output, and a sentence that holds these words. */
    async function expectRefused(...words: string[]): Promise<string> {
      const { code, stdout, stderr } = await run("touch ran; echo ran");
      expect({ code, stdout }).toEqual({ code: 125, stdout: "" });
      for (const word of [...words, "No session was started."]) expect(stderr).toContain(word);
      expect((await host.run(["test", "-e", `${project}/ran`])).code).toBe(1);
      return stderr;
    }

    test("with a launcher that has another label; the line that is told mends it, and PID 1 would not start it either", async () => {
      await host.sh(`chcon -t bin_t ${launcher}`);
      const said = await expectRefused(launcher, "bin_t", "not ai_tools_exec_t");
      const { code, stdout } = await status();
      expect(code).toBe(1);
      expect(stdout).toMatch(/^BROKEN +SELinux +enforcing, .*bin_t/m);
      gate.announce(
        /\{ entrypoint \}.*ai_tools_t:s0 tcontext=system_u:object_r:bin_t/,
        "a mislabelled launcher is no way in",
      );
      gate.announce(/Failed (at step EXEC|to execute)|lab-launch\.service/, "PID 1 says what it could not start");
      const byHand = `systemd-run --wait --quiet --unit=lab-launch -p User=ai-tools -p NoNewPrivileges=yes \
        -p SELinuxContext=${domain} ${launcher} ai_tools_t / 0:0 0 / /bin/true`;
      expect(
        (await host.run(["sh", "-c", `${byHand}; code=$?; systemctl reset-failed lab-launch; exit $code`])).code,
      ).toBe(203);
      const mend = /as root: (restorecon [^.]*)\./.exec(said)?.[1] ?? "false";
      expect(await host.sh(mend)).toContain("Relabeled");
      expect((await run()).stdout).toContain(domain);
    });

    test("in a project that has lost its label; one more claim gives it back", async () => {
      await host.sh(`chcon -R -t var_t ${project}`);
      await expectRefused("var_t", "not the type ai_tools_project_t", `ai-tools --claim ${project}`);
      const { code, stdout } = await status();
      expect([code, stdout]).toEqual([0, expect.stringMatching(/CLAIMS to be put right:\n.*var_t/)]);
      await expectDone(await inDirectory(host, "/", ["--claim", project]));
      expect((await run()).stdout).toContain(domain);
    });

    test("without the policy; where SELinux is permissive it starts, unconfined, and that is said", async () => {
      gate.announce(/\{ associate \}.*last-look\.json.*unlabeled_t/, "without the policy its labels are none");
      await host.sh("semodule -d ai_tools 2>/dev/null", rebuilding);
      try {
        await expectRefused("its policy has no domain for sessions", "as root: dnf install ai-tools-selinux");
        const broken = await status();
        expect([broken.code, broken.stdout]).toEqual([1, expect.stringMatching(/^BROKEN +SELinux +enforcing/m)]);
        await host.sh("setenforce 0");
        const { code, stdout, stderr } = await run();
        expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringMatching(unconfined) });
        expect(stdout).not.toContain("ai_tools_t");
        gate.announce(/permissive=1/, "nothing is refused while SELinux is permissive");
      } finally {
        await host.sh("semodule -e ai_tools 2>/dev/null; setenforce 1", rebuilding);
      }
      const again = await run();
      expect(again, again.stderr).toMatchObject({ code: 0, stdout: expect.stringContaining(domain) });
    }, 1_800_000);

    test.each(["ai_tools_t", "permissive", "off"])(
      "by the launcher itself in another domain, whatever it was told (%s)",
      async (held) => {
        gate.announce(/lab-launch\.service/, "PID 1 says that the launcher ended with 125");
        const script = `systemd-run --wait --quiet --unit=lab-launch -p User=ai-tools -p NoNewPrivileges=yes \
          -p StandardError=file:/run/lab-launch ${launcher} ${held} / $(stat -c %d:%i /) 0 / /bin/touch ${project}/ran
          echo $?; systemctl reset-failed lab-launch 2>/dev/null; cat /run/lab-launch; rm /run/lab-launch`;
        expect(await host.sh(script)).toMatch(/^125\nai-tools: SELinux .*not in ai_tools_t: no session was started\n$/);
        expect((await host.run(["test", "-e", `${project}/ran`])).code).toBe(1);
      },
    );
  });

  describe("a session starts in its domain, and the operator is told that nothing confines it", () => {
    test("where SELinux is permissive", async () => {
      gate.announce(/permissive=1/, "nothing is refused while SELinux is permissive");
      await host.sh("setenforce 0");
      const { code, stdout, stderr } = await run();
      expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringMatching(unconfined) });
      expect(stdout).toContain(domain);
      const seen = await status();
      expect([seen.code, seen.stdout]).toEqual([0, expect.stringMatching(/^note +SELinux +permissive/m)]);
    });

    test("where the domain alone is permissive", async () => {
      await host.sh(
        "echo '(typepermissive ai_tools_t)' >/root/lab_permissive.cil; semodule -i /root/lab_permissive.cil",
        rebuilding,
      );
      try {
        const { code, stdout, stderr } = await run();
        const warning = /^ai-tools: not confined: SELinux is permissive for ai_tools_t\n/;
        expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringMatching(warning) });
        expect(stdout).toContain(domain);
        const seen = await status();
        expect([seen.code, seen.stdout]).toEqual([
          1,
          expect.stringMatching(/^BROKEN +SELinux +permissive for ai_tools_t/m),
        ]);
      } finally {
        await host.sh("semodule -r lab_permissive; rm /root/lab_permissive.cil", rebuilding);
      }
      expect((await run()).stderr).not.toContain("not confined");
    }, 1_800_000);
  });

  afterAll(() => host.sh("rm -rf /home/olga/lab/labels"));
}
