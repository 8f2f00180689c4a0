// SPDX-License-Identifier: Apache-2.0
// Promise: while a hold is set no session is started, by nobody, and everybody is told who set it and why.

import { beforeEach, describe, expect, test } from "vitest";

import { running } from "./kit/facts.ts";
import { labHost } from "./kit/host.ts";
import {
  claimedProject,
  clearSessions,
  expectDone,
  holdRecord,
  inDirectory,
  shellEntryPoint,
  startSession,
  temperEntryPoint,
} from "./kit/sessions.ts";
import { stop } from "./kit/stop.ts";

const host = await labHost();

beforeEach(() => clearSessions(host));

const hold = (words: string[], user = "olga") => inDirectory(host, "/", ["--hold", ...words], { user });
const release = (user = "olga") => inDirectory(host, "/", ["--release"], { user });

async function run(path: string) {
  const shell = await shellEntryPoint(host);
  return inDirectory(host, path, ["--run", shell, "--", "-c", "true"]);
}

describe("a hold", () => {
  test("refuses new sessions with who and why until it is released, and leaves running ones alone", async () => {
    const path = await claimedProject(host);
    const temper = await temperEntryPoint(host, "polite", "7201");
    const { ended } = await startSession(host, path, [temper]);
    await expectDone(await hold(["incident 42: keys leaked"]));
    const refused = await run(path);
    expect(refused.code).toBe(125);
    expect(refused.stderr).toMatch(/olga/);
    expect(refused.stderr).toMatch(/incident 42: keys leaked/);
    expect(refused.stderr).toMatch(/--release/);
    expect(await running(host)).toEqual(["7201"]);
    await expectDone(await release("oscar"));
    await expectDone(await run(path));
    await host.sh("systemctl kill -s KILL 'ai-tools-lab-*'");
    await ended;
  });

  test("is root's record, outlives a restart, and needs no reason", async () => {
    await expectDone(await hold([]));
    expect(await host.sh(`stat -c '%U %a' ${holdRecord}`)).toBe("root 644\n");
    expect(JSON.parse(await host.sh(`cat ${holdRecord}`))).toMatchObject({ operator: "olga" });
    expect((await run(await claimedProject(host))).code).toBe(125);
  });

  test("does not hold up a stop, and a stop does not lift it", async () => {
    const path = await claimedProject(host);
    const temper = await temperEntryPoint(host, "polite", "7202");
    const { ended } = await startSession(host, path, [temper]);
    await expectDone(await hold(["x"]));
    expect((await stop(host, "--force", "--yes")).code).toBe(0);
    await ended;
    expect((await run(path)).code).toBe(125);
  });

  test("a record that cannot be read holds as well", async () => {
    const path = await claimedProject(host);
    await host.sh(`echo '{"operator":' >${holdRecord}`);
    const { code, stderr } = await run(path);
    expect(code).toBe(125);
    expect(stderr).toContain(holdRecord);
    await expectDone(await release());
    await expectDone(await run(path));
  });

  test("twice keeps the first and says whose it is; releasing what is not held is said", async () => {
    await expectDone(await hold(["first"]));
    const second = await hold(["second"], "oscar");
    expect(`${second.stdout}${second.stderr}`).toMatch(/olga/);
    expect(await host.sh(`cat ${holdRecord}`)).toMatch(/first/);
    await expectDone(await release());
    const none = await release();
    expect(`${none.stdout}${none.stderr}`).toMatch(/no hold|not held|nothing/i);
  });

  test("a reason of any bytes is shown as text", async () => {
    await expectDone(await hold(["\u001b[2Jboo\nai-tools: released"]));
    const { stderr } = await run(await claimedProject(host));
    expect(stderr).not.toMatch(/\u001b/);
    expect(
      stderr
        .trim()
        .split("\n")
        .filter((line) => line.startsWith("ai-tools: released")),
    ).toEqual([]);
  });

  test.each(["ursula", "ai-tools"])("is no matter of %s's", async (user) => {
    expect((await hold(["x"], user)).code).not.toBe(0);
    expect((await host.run(["test", "-e", holdRecord])).code).toBe(1);
    await expectDone(await hold(["x"]));
    expect((await release(user)).code).not.toBe(0);
    expect((await host.run(["test", "-e", holdRecord])).code).toBe(0);
  });

  test("root may set and release one", async () => {
    await expectDone(await hold(["x"], "root"));
    await expectDone(await release("root"));
  });

  test.each([[["a", "b"]], [["x".repeat(5_000)]]])("%j is a usage error, and nothing is held", async (words) => {
    expect((await hold(words)).code).toBe(2);
    expect((await host.run(["test", "-e", holdRecord])).code).toBe(1);
  });
});
