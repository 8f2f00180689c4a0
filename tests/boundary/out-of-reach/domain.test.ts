// SPDX-License-Identifier: Apache-2.0
// Promise, where SELinux is enforcing: a session's domain is a second wall. Each act here is one that file permissions
// allow, on a stand-in that has the label of the real thing and is open to everybody: a process of the account outside the
// domain does it, the session is denied, and the audit log says so. (A denial by file permissions never reaches SELinux.)

import { afterAll, beforeAll, describe, expect, test } from "vitest";

import {
  type Act,
  type Acts,
  type Answers,
  attempt,
  auditMark,
  type Denial,
  denialsSince,
  expectAllDone,
  isEnforcing,
} from "../kit/from-inside.ts";
import { gatedHost } from "../kit/journal-gate.ts";

const { host, gate } = await gatedHost();
const enforcing = await isEnforcing(host);

/** An act and what of it the audit log must show: the class, a permission, and the type of what is denied. */
interface Walled {
  act: Act;
  tclass: string;
  perm: string;
  type: string;
}

const place = "/opt/lab/stand-ins";
const cgroup = "/sys/fs/cgroup/lab-open";
const listener = "@lab-open";
const listens = `import socket, time; s = socket.socket(socket.AF_UNIX); s.bind("\\0${listener.slice(1)}"); s.listen(9); time.sleep(900)`;

/** Each stand-in has its thing's label, and no other protection: see `beforeAll`. */
const standIns = `rm -rf ${place}; install -d -m 755 ${place}
  cp /bin/true ${place}/helper; chmod 777 ${place}/helper; chcon -t ai_tools_helper_exec_t ${place}/helper
  echo line >${place}/trail; chmod 666 ${place}/trail; chcon -t ai_tools_log_t ${place}/trail
  for pair in etc:ai_tools_etc_t records:ai_tools_var_lib_t runtime:ai_tools_runtime_t units:systemd_unit_t unclaimed:usr_t; do
    install -d -m 777 ${place}/\${pair%:*}; chcon -t \${pair#*:} ${place}/\${pair%:*}
  done
  mkdir -p ${cgroup}; chmod 777 ${cgroup}; chmod 666 ${cgroup}/cgroup.procs
  systemctl stop lab-target lab-listener 2>/dev/null
  systemd-run --quiet --collect --unit=lab-target --uid=ai-tools sleep 900
  systemd-run --quiet --collect --unit=lab-listener --uid=ursula /usr/bin/python3 -c '${listens}'
  for look in $(seq 100); do grep -q '${listener}' /proc/net/unix && break; sleep 0.2; done
  systemctl show -P MainPID lab-target.service`;

function wallsAround(target: string): Record<string, Walled> {
  const helper = { tclass: "file", type: "ai_tools_helper_exec_t" };
  const trail = { tclass: "file", type: "ai_tools_log_t" };
  const make = (name: string, type: string): Walled => ({
    act: ["create", `${place}/${name}`],
    tclass: "dir",
    // Where it may not even look for names, it does not come as far as to write one.
    perm: ["systemd_unit_t", "ai_tools_etc_t"].includes(type) ? "search" : "write",
    type,
  });
  const program = (path: string, type: string): Walled => ({
    act: ["execute", path, "--version"],
    tclass: "file",
    perm: "execute",
    type,
  });
  return {
    "read a helper": { ...helper, act: ["read", `${place}/helper`], perm: "read" },
    "execute a helper": { ...helper, act: ["execute", `${place}/helper`], perm: "execute" },
    "write to a helper": { ...helper, act: ["opened", `${place}/helper`], perm: "write" },
    "read the trail": { ...trail, act: ["read", `${place}/trail`], perm: "read" },
    "add to the trail": { ...trail, act: ["append", `${place}/trail`, "{}\n"], perm: "append" },
    "make an entry point": make("etc", "ai_tools_etc_t"),
    "make a claim, or plant in the passwd home": make("records", "ai_tools_var_lib_t"),
    "announce a stop": make("runtime", "ai_tools_runtime_t"),
    "make a unit of PID 1": make("units", "systemd_unit_t"),
    "write to a directory that is not claimed": make("unclaimed", "usr_t"),
    "execute sudo": program("/usr/bin/sudo", "sudo_exec_t"),
    "execute su": program("/usr/bin/su", "su_exec_t"),
    "execute crontab": program("/usr/bin/crontab", "crontab_exec_t"),
    "make a cgroup": { act: ["mkdir", `${cgroup}/below`], tclass: "dir", perm: "search", type: "cgroup_t" },
    "open a cgroup's list of processes": {
      act: ["opened", `${cgroup}/cgroup.procs`],
      tclass: "dir",
      perm: "search",
      type: "cgroup_t",
    },
    "trace a process of the account outside": { act: ["trace", target], tclass: "process", perm: "ptrace", type: "" },
    "signal a process of the account outside": {
      act: ["sent", target, "10"],
      tclass: "process",
      perm: "signal",
      type: "",
    },
    "connect to somebody's abstract socket": {
      act: ["connect", listener],
      tclass: "unix_stream_socket",
      perm: "connectto",
      type: "",
    },
    "choose the context of its next program": {
      act: ["put", "/proc/self/attr/exec", "system_u:system_r:ai_tools_t:s0"],
      tclass: "process",
      perm: "setexec",
      type: "ai_tools_t",
    },
  };
}

if (enforcing) whereSelinuxDecides();
else
  test("SELinux does not enforce on this host: file permissions alone decide", async () => {
    expect((await host.run(["cat", "/sys/fs/selinux/enforce"])).stdout.trim()).not.toBe("1");
  });

test("nothing was logged as an error, and nothing was denied, that is not told above", () => gate.expectQuiet());

/** A case that a host does not have is none of its cases, and no skipped one. */
function whereSelinuxDecides(): void {
  describe("SELinux alone keeps a session from what file permissions allow:", () => {
    let outside: Answers;
    let inside: Answers;
    let denials: Denial[];

    // One session for all of them: to start one takes its time on an emulated machine.
    beforeAll(async () => {
      const walls = wallsAround((await host.sh(standIns)).trim());
      const acts: Acts = Object.fromEntries(Object.entries(walls).map(([what, { act }]) => [what, act]));
      const { "signal a process of the account outside": signal, ...others } = acts;
      outside = await attempt(host, "account", others);
      const since = await auditMark(host);
      inside = await attempt(host, "session", acts);
      denials = (await denialsSince(host, since)).filter(({ scontext }) => scontext.includes(":ai_tools_t:"));
      // Last: the signal is its end.
      Object.assign(
        outside,
        await attempt(host, "account", { "signal a process of the account outside": signal as Act }),
      );
    });
    afterAll(() =>
      host.sh(`rm -rf ${place}; systemctl stop lab-target lab-listener; rmdir ${cgroup}/below ${cgroup}; true`),
    );

    test.each(Object.entries(wallsAround("0")))("%s", (what, { tclass, perm, type }) => {
      expectAllDone({ [what]: outside[what] ?? "not tried" }, "control: possible for a process of the account");
      expect(inside[what]).toMatch(/^(EACCES|EPERM)$/);
      const isIt = (denial: Denial) =>
        denial.tclass === tclass &&
        denial.perms.includes(perm) &&
        (type === "" || denial.tcontext.includes(`:${type}:`));
      const told = denials.filter(isIt);
      for (const { line } of told) gate.announce(new RegExp(escaped(line)), `a session tried to ${what}`);
      expect(told.length, denials.map(({ line }) => line).join("\n")).toBeGreaterThan(0);
    });
  });

  test("a session's domain is ai_tools_t, for all that it starts too", async () => {
    const act: Act = ["ran", "sh", "-c", "cat /proc/self/attr/current; echo; cat /proc/$PPID/attr/current"];
    const context = (await attempt(host, "session", { context: act })).context ?? "";
    expect(context.match(/ai_tools_t/g)).toHaveLength(2);
    expect((await attempt(host, "account", { context: act })).context).not.toContain("ai_tools_t");
  });

  test("an agent's ordinary work is denied nothing", async () => {
    const since = await auditMark(host);
    const work = `set -e; cd; echo x >made; mkdir -p a/b; mv made a/b; ln -s a/b link; cat link/made; rm -r a link
      cd -; git init -q -b main w; cd w; echo x >f; git add f; git -c user.name=S -c user.email=s@h commit -qm one; cd ..; rm -rf w
      printf '#!/bin/sh\\necho ran\\n' >tool; chmod +x tool; ./tool; rm tool
      python3 -c 'import os, socket, subprocess, tempfile; tempfile.TemporaryFile(); subprocess.run(["true"]); socket.socket()'
      mkfifo p; (echo through >p &); read line <p; rm p; sleep 0.1 & kill $!; wait || true; ps >/dev/null; ls / >/dev/null`;
    const answers = await attempt(host, "session", { work: ["ran", "bash", "-c", work] });
    expect(answers.work).toMatch(/^done/);
    expect((await denialsSince(host, since)).map(({ line }) => line)).toEqual([]);
  });
}

function escaped(text: string): string {
  return text.replace(/[.*+?^$()|[\]\\{}]/g, "\\$&");
}
