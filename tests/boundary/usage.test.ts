// SPDX-License-Identifier: Apache-2.0
// Promise: whatever is no option of a stop is an error that touches nothing and says what to run instead; help and
// version are for anyone.

import { beforeAll, describe, expect, test } from "vitest";

import { startPayload } from "../../src/tooling/tempers/payloads.ts";
import { clearHost, running } from "./kit/facts.ts";
import { labHost } from "./kit/host.ts";
import { frontDoor, helper, results, stopBy } from "./kit/stop.ts";

const host = await labHost();

beforeAll(async () => {
  await clearHost(host);
  await startPayload(host, "801", "polite", "session");
});

const wrong = [
  ["/srv/projects/shop"],
  ["all"],
  [""],
  ["--yes=1"],
  ["--forced"],
  ["-f"],
  ["--"],
  ["--yes", "."],
  ["--dry-run", "--", "x"],
];

describe.each([
  ["the helper", "root", [helper]],
  ["the front door", "root", [frontDoor, "--stop"]],
  ["the front door", "olga", [frontDoor, "--stop"]],
])("%s, called by %s,", (_, user, command) => {
  test.each(wrong.map((words) => [words]))("refuses %j with 2, touches nothing and says what to run", async (words) => {
    const { code, stdout, stderr, entries } = await stopBy(host, [...command, ...words], { user });
    expect(code).toBe(2);
    expect(stdout).toBe("");
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
    expect(stderr).toMatch(/ai-tools --stop/);
    expect(results(entries)).toEqual([]);
  });
});

test.each([[["--stopp"]], [["stop"]], [["/"]], [[]]])("the front door refuses %j with 2 and a hint", async (words) => {
  const { code, stderr, entries } = await stopBy(host, [frontDoor, ...words], { user: "olga" });
  expect(code).toBe(2);
  expect(stderr).toMatch(/ai-tools --(stop|help)/);
  expect(results(entries)).toEqual([]);
});

test("a wrong argument with escape sequences reaches nobody's terminal as such", async () => {
  const { code, stderr } = await stopBy(host, [helper, "--\x1b[31mred\x07\n\x9b"]);
  expect(code).toBe(2);
  expect(stderr).toMatch(/^[\x20-\x7e]+\n$/);
});

describe.each(["root", "olga", "ursula", "ai-tools"])("%s gets", (user) => {
  test.each([
    [["--help"], /--stop/],
    [["--version"], /\d+\.\d+\.\d+/],
    [["--stop", "--help"], /--dry-run/],
    [["--stop", "--version"], /\d+\.\d+\.\d+/],
  ])("%j from the front door", async (words, text) => {
    const { code, stdout, stderr, entries } = await stopBy(host, [frontDoor, ...words], { user });
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(text);
    expect(results(entries)).toEqual([]);
  });
});

test.each([
  ["--help", /--dry-run/],
  ["--version", /\d+\.\d+\.\d+/],
])("root gets %s from the helper", async (option, text) => {
  const { code, stdout, entries } = await stopBy(host, [helper, option]);
  expect(code).toBe(0);
  expect(stdout).toMatch(text);
  expect(results(entries)).toEqual([]);
});

test("after all of this the session still runs", async () => {
  expect(await running(host)).toEqual(["801"]);
});
