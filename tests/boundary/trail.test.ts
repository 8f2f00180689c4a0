// SPDX-License-Identifier: Apache-2.0
// Promise: every stop can be read afterwards in the log and in the journal, and no state of either delays or changes a
// stop.

import { beforeEach, describe, expect, test } from "vitest";

import { startPayload, startPayloads } from "../../src/tooling/tempers/payloads.ts";
import { clearHost, running } from "./kit/facts.ts";
import { labHost } from "./kit/host.ts";
import {
  entryOf,
  helper,
  journalOf,
  lastStop,
  results,
  stop,
  stopBy,
  stopByScript,
  stopWithReport,
  trailLog,
} from "./kit/stop.ts";

const host = await labHost();

beforeEach(async () => {
  await clearHost(host);
  await startPayload(host, "1001", "deaf", "session");
});

test("each event of a stop is in the log and in the journal with the same fields", async () => {
  await startPayloads(host, [{ name: "1002", temper: "polite", place: "exec" }]);
  const { report, entries } = await stopWithReport(host, "--force", "--yes");
  expect(results(entries)).toEqual(["requested", "killed", "stray-ended", "stopped"]);
  const journal = await journalOf(host, report.run);
  const fields = (list: Record<string, string>[]) => list.map(ownFields).sort();
  // The journal's entries come after the verdict: there a field says when it happened.
  const timed = entries.map((entry) => ({ ...entry, AI_TOOLS_TIME: entry.time ?? "" }));
  expect(fields(journal)).toEqual(fields(timed));
  expect(journal.every((entry) => entry.SYSLOG_IDENTIFIER === "ai-tools-stop" && entry._UID === "0")).toBe(true);
  expect(entryOf(entries, "killed")).toMatchObject({
    AI_TOOLS_UNIT: "ai-tools-claude-code-1001.service",
    AI_TOOLS_FORCE: "true",
    AI_TOOLS_PASS: "sigkill",
    AI_TOOLS_RUN: report.run,
  });
});

test("the log is root's alone", async () => {
  await stop(host, "--force", "--yes");
  expect(await host.sh(`stat -c '%a %U %G' /var/log/ai-tools ${trailLog}`)).toBe("700 root root\n600 root root\n");
});

test("the last verdict can be read by everybody, and is replaced by the next stop", async () => {
  const first = await stopWithReport(host, "--force", "--yes");
  const read = async () =>
    JSON.parse(await host.sh(`cat ${lastStop}`, { user: "ursula" })) as { run: string; verdict: string };
  expect(await read()).toMatchObject({ run: first.report.run, verdict: "stopped", exitCode: 0 });
  const second = await stopWithReport(host, "--force", "--yes");
  expect(await read()).toMatchObject({ run: second.report.run, verdict: "nothing-running" });
  expect(second.report.run).not.toBe(first.report.run);
});

describe("the code stays what the kernel says, and standard error tells of the sink, where", () => {
  test.each([
    ["the log is a link", `ln -sf /run/elsewhere /var/log/ai-tools/stop.log`],
    ["the log is a FIFO", `mkfifo /var/log/ai-tools/stop.log`],
    ["the log is a directory", `mkdir /var/log/ai-tools/stop.log`],
    [
      "the log's directory is read-only",
      `mount --bind -o ro /var/log/ai-tools /var/log/ai-tools && mount -o remount,bind,ro /var/log/ai-tools`,
    ],
    [
      "the log's disk is full",
      `mount -t tmpfs -o size=4k tmpfs /var/log/ai-tools && dd if=/dev/zero of=/var/log/ai-tools/full bs=4k status=none; :`,
    ],
  ])("%s", async (_, damage) => {
    // In a mount namespace with a log directory of its own, so that the host's log stays as it is.
    const inside = `mount -t tmpfs tmpfs /var/log/ai-tools && { ${damage}; } && exec ${helper} --force --yes`;
    await host.sh("echo untouched >/run/elsewhere");
    const { code, stdout, stderr } = await stopByScript(host, `exec unshare --mount sh -c '${inside}'`);
    expect(code).toBe(0);
    expect(stdout).toMatch(/STOPPED/);
    expect(stderr).toMatch(/stop\.log could not be written/);
    expect(await host.sh("cat /run/elsewhere")).toBe("untouched\n");
    expect(await running(host)).toEqual([]);
  });

  test.each([
    ["the program that writes to the journal is missing", "mount --bind /dev/null /usr/bin/logger"],
    ["the program that writes to the journal fails", "mount --bind /bin/false /usr/bin/logger"],
    ["journald's socket is gone", "mount -t tmpfs tmpfs /run/systemd/journal"],
  ])("%s", async (_, damage) => {
    const { code, stderr, entries } = await stopByScript(
      host,
      `exec unshare --mount sh -c '${damage} && exec ${helper} --force --yes'`,
    );
    expect(code).toBe(0);
    expect(stderr).toMatch(/journal/);
    expect(results(entries)).toContain("stopped");
    expect(await running(host)).toEqual([]);
  });

  test("the program that writes to the journal hangs", async () => {
    await host.sh("printf '#!/bin/sh\\nexec sleep 60\\n' >/run/hanging && chmod 755 /run/hanging");
    const { code, stderr, entries } = await stopByScript(
      host,
      `exec unshare --mount sh -c 'mount --bind /run/hanging /usr/bin/logger && exec ${helper} --force --yes'`,
    );
    expect(code).toBe(0);
    expect(stderr).toMatch(/journal|sink/);
    expect(results(entries)).toContain("stopped");
    expect(await running(host)).toEqual([]);
  });
});

describe("the caller", () => {
  const olga = "$(id -u olga)";

  test("is the operator whom sudo names", async () => {
    const { entries } = await stopBy(host, ["sudo", "-n", helper], { user: "olga" });
    expect(entryOf(entries, "requested").AI_TOOLS_CALLER).toBe("olga");
    expect(results(entries)).not.toContain("identity-rejected");
  });

  test.each([
    ["a name that has another number", `SUDO_USER=olga SUDO_UID=$(id -u ursula) exec ${helper} --force --yes`],
    ["a name without a number", `SUDO_USER=olga exec ${helper} --force --yes`],
    ["a number without a name", `SUDO_UID=${olga} exec ${helper} --force --yes`],
    ["a number that is none", `SUDO_USER=olga SUDO_UID=0x3e8 exec ${helper} --force --yes`],
    [
      "a stale name in the login of somebody else",
      `echo $(id -u ursula) >/proc/self/loginuid && SUDO_USER=olga SUDO_UID=${olga} exec ${helper} --force --yes`,
    ],
  ])("is recorded as root, with the claim rejected, for %s", async (_, script) => {
    const { code, entries } = await stopByScript(host, script);
    expect(code).toBe(0);
    expect(results(entries)).toContain("identity-rejected");
    expect(entryOf(entries, "requested")).toMatchObject({ AI_TOOLS_CALLER: "root", AI_TOOLS_CALLER_UID: "0" });
    expect(await running(host)).toEqual([]);
  });
});

/** The fields that are the product's own, in one text whose order says nothing. */
function ownFields(entry: Record<string, string>): string {
  const own = Object.entries(entry).filter(([name]) => name.startsWith("AI_TOOLS_"));
  return own
    .map(([name, value]) => `${name}=${value}`)
    .sort()
    .join("\n");
}
