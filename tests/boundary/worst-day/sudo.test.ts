// SPDX-License-Identifier: Apache-2.0
// Promise: what a host demands of sudo in general stands in no stop's way, and where a later rule takes the grant back,
// the operator is told that nothing was stopped, or is asked for the password.

import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { startPayload } from "../../../src/tooling/tempers/payloads.ts";
import { bystanders } from "../kit/aftermath.ts";
import { calmHost, closeWith, expectCalm, lookForCalm } from "../kit/calm.ts";
import { labHost } from "../kit/host.ts";
import { entryOf, frontDoor, results, stopBy, stopOnTerminal } from "../kit/stop.ts";

const host = await labHost();
closeWith(host);
const hung = "/run/lab/hung-sudo";

beforeEach(async () => {
  await calmHost(host);
  await startPayload(host, "3401", "polite", "session");
});

afterEach(() =>
  host.sh(`rm -f /etc/sudoers.d/zz-lab
    systemctl kill -s KILL lab-hung-sudo.service; umount -l ${hung}; true`),
);

async function rule(text: string): Promise<void> {
  await host.sh(`printf '%s\\n' '${text}' >/etc/sudoers.d/zz-lab && chmod 440 /etc/sudoers.d/zz-lab && visudo -cq`);
}

describe("an operator without a terminal stops everything where sudo elsewhere", () => {
  test.each([
    ["demands a terminal", "Defaults requiretty"],
    ["demands one of the group", "Defaults:%ai-ops requiretty"],
    ["uses a terminal of its own", "Defaults use_pty"],
    ["records input and output", "Defaults log_input, log_output"],
    ["records where nothing can be written", "Defaults log_output, iolog_dir=/proc/nowhere, !ignore_iolog_errors"],
    ["keeps a log", "Defaults logfile=/var/log/sudo.log"],
    ["keeps a log where nothing can be written", "Defaults logfile=/proc/nowhere, !ignore_logfile_errors"],
    ["opens sessions", "Defaults pam_session, pam_setcred"],
    ["lectures", "Defaults lecture=always"],
    ["asks everybody each time", "Defaults timestamp_timeout=0, rootpw"],
  ])("%s", async (_, defaults) => {
    await rule(defaults);
    const { code, entries } = await stopBy(host, [frontDoor, "--stop"], { user: "olga" });
    expect(code).toBe(0);
    expect(entryOf(entries, "stopped").AI_TOOLS_CALLER).toBe("olga");
    await expectCalm(host);
  });

  test.each([
    ["keeps a log on a disk that hangs", `Defaults logfile=${hung}/sudo.log`],
    ["records output on a disk that hangs", `Defaults log_output, iolog_dir=${hung}/io`],
  ])("%s", async (_, defaults) => {
    await host.sh(`systemd-run --quiet --collect --unit=lab-hung-sudo /opt/lab/tempers/hung-files ${hung} 0 100
      until grep -q " ${hung} fuse" /proc/mounts; do sleep 0.1; done`);
    await rule(defaults);
    const { code, entries } = await stopBy(host, [frontDoor, "--stop"], { user: "olga" });
    expect(code).toBe(0);
    expect(results(entries)).toContain("stopped");
    await expectCalm(host);
  });
});

describe("a later general rule with a password", () => {
  beforeEach(() => rule("%ai-ops ALL = (ALL) ALL"));

  test("is told without a terminal: 5, nothing was stopped", async () => {
    const { code, stderr, entries } = await stopBy(host, [frontDoor, "--stop"], { user: "olga" });
    expect(code).toBe(5);
    expect(stderr).toMatch(/nothing was stopped/);
    expect(results(entries)).toEqual([]);
    expect((await lookForCalm(host)).running).toEqual(["3401", ...bystanders].sort());
  });

  test("asks for it at a terminal, and then stops everything", async () => {
    const { code, entries } = await stopOnTerminal(
      host,
      [frontDoor, "--stop"],
      async (terminal) => {
        await terminal.waitFor(/password/i);
        terminal.type("olga\r");
        await terminal.waitFor(/\[Y\/n\]/);
        terminal.type("\r");
      },
      { user: "olga" },
    );
    expect(code).toBe(0);
    expect(entryOf(entries, "stopped").AI_TOOLS_CALLER).toBe("olga");
    await expectCalm(host);
  });
});
