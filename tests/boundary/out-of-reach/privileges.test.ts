// SPDX-License-Identifier: Apache-2.0
// Promise: the account is nobody: no sudo rule, no login shell, no password, not an operator; and a session gains nothing
// by any program on disk.

import { afterAll, describe, expect, test } from "vitest";

import { attempt, expectAllDone, expectAllRefused, expectOutOfReach, insiders } from "../kit/from-inside.ts";
import { gatedHost } from "../kit/journal-gate.ts";
import { frontDoor, helper } from "../kit/stop.ts";

const { host, gate } = await gatedHost("a session tries to become somebody else");
const uid = (await host.sh("id -u ai-tools")).trim();
const setuidProgram = "/opt/lab/lab-setuid-python";

afterAll(() => host.sh(`rm -f ${setuidProgram}`));

describe("as root sees it, the account", () => {
  test("has no sudo rule, as olga has", async () => {
    expect(await host.sh("sudo -l -U olga")).toMatch(/NOPASSWD: .*ai-tools-stop/);
    expect(await host.sh("sudo -l -U ai-tools 2>&1 || true")).toMatch(/^User ai-tools is not allowed to run sudo on /);
  });

  test("has a locked password, as olga has not", async () => {
    expect(await host.sh("passwd -S olga")).toMatch(/^olga P /);
    expect(await host.sh("passwd -S ai-tools")).toMatch(/^ai-tools LK? /);
    expect(await host.sh("getent shadow ai-tools")).toMatch(/^ai-tools:[!*]+:/);
  });

  test("has no login shell, so that nobody can log in as it", async () => {
    gate.announce(/ nologin\[\d+\]: Attempted login by /, "the shell of the account tells who was sent away");
    gate.announce(
      / su\[\d+\]: pam_env\(su-l:session\): Unable to open env file/,
      "Debian's su on a host without locales",
    );
    expect(await host.sh("su -l olga -c 'id -un'")).toBe("olga\n");
    expect(await host.sh("getent passwd ai-tools")).toMatch(/:\/usr\/sbin\/nologin\n$/);
    const { code, stdout } = await host.run(["su", "-l", "ai-tools", "-c", "id -un"]);
    expect({ code, stdout }).toMatchObject({ code: 1, stdout: expect.stringMatching(/not available/) });
  });

  test("is in its own group alone", async () => {
    expect((await host.sh("id -Gn olga")).split(/\s/)).toContain("ai-ops");
    expect(await host.sh("id -Gn ai-tools")).toBe("ai-tools\n");
    const { stdout } = await host.run(["id", "-Gn"], { user: "ai-tools" });
    expect(stdout).toBe("ai-tools\n");
  });
});

test("what olga may by sudo, nobody of the account may", async () => {
  gate.announce(/sudo\[\d+\]: *ai-tools : /, "sudo logs whom it refuses");
  gate.announce(/sudo\[\d+\]: pam_unix\(sudo:auth\): /, "sudo -n asks PAM nothing, and some versions say so");
  const acts = {
    "ask for the stop's grant": ["ran", "sudo", "-n", "-l", helper],
    "ask for the grant of a session's helpers": ["ran", "sudo", "-n", "-l", "/usr/libexec/ai-tools/ai-tools-hold"],
  } as const;
  await expectOutOfReach(host, acts, {
    possibleFor: "olga",
    refusedBy: [/^exit 1: /, /^exit \d+: .*[Pp]ermission denied/],
  });
});

test.each([
  ["hold new sessions", ["--hold", "by-somebody"], ["--release"]],
  ["claim a project", ["--claim", "/var/lib/ai-tools/home/mine"], undefined],
  ["stop everything", ["--stop"], undefined],
])("nobody of the account can %s by the operators' command", async (what, words, undo) => {
  // The control is the rest of the suite for a claim and a stop; here, for what changes nothing.
  if (undo) {
    expectAllDone(await attempt(host, "olga", { [what]: ["ran", frontDoor, ...words] }), "control: possible for olga");
    await host.run([frontDoor, ...undo], { user: "olga" });
  }
  for (const who of insiders) {
    const answers = await attempt(host, who, { [what]: ["ran", frontDoor, ...words] });
    expectAllRefused(answers, who, [/^exit [1-9]\d*: /]);
  }
  const left =
    "ls /var/lib/ai-tools/hold.json 2>/dev/null; grep -ls mine /var/lib/ai-tools/claims/*; cat /run/ai-tools/last-stop.json 2>/dev/null";
  expect(await host.sh(`${left}; true`)).not.toMatch(/hold.json|claims|"caller": *"ai-tools"/);
});

test("nobody of the account becomes root or somebody else, without a program", async () => {
  const olga = (await host.sh("id -u olga")).trim();
  await expectOutOfReach(host, { "become root": ["become_root"], "become olga": ["become", olga] });
});

test("a session gains nothing by a set-uid program, as the account's other processes do", async () => {
  await host.sh(`cp -L /usr/bin/python3 ${setuidProgram} && chmod 4755 ${setuidProgram}`);
  const acts = {
    "be root by a set-uid program": ["ran", setuidProgram, "-c", "import os; print(os.geteuid())"],
  } as const;
  const name = "be root by a set-uid program";
  expect(await attempt(host, "unit", acts)).toEqual({ [name]: "done: 0" });
  const answers = await attempt(host, "session", acts);
  expect([`done: ${uid}`, "EPERM", "EACCES"]).toContain(answers[name]);
});

test("a session has no capabilities and can never get any", async () => {
  const act = { status: ["ran", "grep", "-E", "^(Cap|NoNewPrivs)", "/proc/self/status"] } as const;
  const root = (await attempt(host, "root", act)).status;
  expect(root).toMatch(/CapBnd:\t0*[1-9a-f]/);
  const session = (await attempt(host, "session", act)).status;
  for (const set of ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"])
    expect(session).toMatch(new RegExp(`${set}:\t0000000000000000`));
  expect(session).toMatch(/NoNewPrivs:\t1/);
});

test("nothing was logged as an error, and nothing was denied, that is not told above", () => gate.expectQuiet());
