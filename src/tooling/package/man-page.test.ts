// SPDX-License-Identifier: Apache-2.0
// The man page is the home of the grammar, the exit codes and the limits; these tests compare it with the code.

import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { limits } from "../../stop/limits.ts";
import { inProject } from "../machine.ts";

const page = readFileSync(inProject("man", "ai-tools.1"), "utf8");

/** The words of one type of the kill path that is a union of texts, as its source has them. */
function wordsOf(type: string, file: string): string[] {
  const source = readFileSync(inProject("src", "stop", file), "utf8");
  const union = new RegExp(`^export type ${type} =([^;]*);`, "m").exec(source)?.[1] ?? "";
  return [...union.matchAll(/"([^"]+)"/g)].map((match) => match[1] as string);
}

function section(title: string): string {
  return page.split(/^\.S[hs] /m).find((text) => text.startsWith(title)) ?? "";
}

describe("the man page", () => {
  test.each([
    ["reading for the table", limits.readingMs],
    ["attribution", limits.attributionMs],
    ["table", limits.tableMs],
    ["emptying the terminal", limits.discardMs],
    ["showing the question", limits.tableMs],
    ["question", limits.questionMs],
    ["reading again after the answer", limits.readingMs],
    ["grace", limits.graceMs],
    ["looking who is left", limits.leftoverMs],
    ["kill and verify together", limits.killMs],
    ["asking what comes back", limits.attributionMs],
    ["restore", limits.restoreMs],
    ["final look", limits.finalLookMs],
    ["last-stop.json, twice", limits.openRecordMs],
    ["trail and report together", limits.reportMs],
  ])("gives the limit of %s as the code has it", (name, limitMs) => {
    const seconds = new RegExp(`^\\.It ${name}\\n([\\d.]+)$`, "m").exec(section("LIMITS"))?.[1];
    expect(Number(seconds) * 1000).toBe(limitMs);
  });

  test("promises no less than all limits together", () => {
    const [, without, withQuestion] = /at most (\d+) .*, at most ([\d.]+) with it/.exec(section("LIMITS")) ?? [];
    const { readingMs, attributionMs, tableMs, graceMs, leftoverMs, killMs, restoreMs, finalLookMs } = limits;
    const before = readingMs + attributionMs + tableMs;
    // The record may be opened to readers twice; what the recorder leaves of the report's time is the report's.
    expect(limits.trailMs + limits.reportAloneMs).toBeLessThanOrEqual(limits.reportMs);
    const after = attributionMs + 2 * limits.openRecordMs + restoreMs + finalLookMs + limits.reportMs;
    const sumMs = before + graceMs + leftoverMs + killMs + after;
    const questionMs = limits.discardMs + tableMs + limits.questionMs + readingMs;
    expect(sumMs).toBeLessThanOrEqual(Number(without) * 1000);
    expect(sumMs + questionMs).toBeLessThanOrEqual(Number(withQuestion) * 1000);
  });

  test("explains every result of the trail, and no other", () => {
    const explained = [...section("The trail").matchAll(/^\.It Li ([a-z]\S*)$/gm)].map((match) => match[1]);
    expect(explained).toEqual(wordsOf("Result", "trail.ts"));
  });

  test("explains every field of the trail, and no other", () => {
    const files = ["stop-sessions.ts", "run.ts", "recorder.ts"].map((name) => inProject("src", "stop", name));
    const source = files.map((file) => readFileSync(file, "utf8")).join("");
    const explained = [...section("The trail").matchAll(/^\.It Li (AI_TOOLS_\w+)$/gm)].map((match) => match[1]);
    const used = [...source.matchAll(/\b(AI_TOOLS_\w+)[:=]/g)].map((match) => match[1]);
    expect(new Set(explained)).toEqual(new Set([...used, "AI_TOOLS_RESULT"]));
  });

  test("names every way in which consent comes", () => {
    const consents = wordsOf("Consent", "consent.ts");
    expect(consents).toContain("prompt-timeout");
    for (const consent of consents) expect(section("The trail")).toMatch(new RegExp(`^\\.Ql ${consent}( [,.])?$`, "m"));
  });

  test("explains every exit code", () => {
    const codes = [...section("EXIT STATUS").matchAll(/^\.It (\S+)$/gm)].map((match) => match[1]);
    expect(codes).toEqual(["0", "1", "2", "4", "5", "128+n"]);
  });

  test.each(["--stop", "--dry-run", "--yes", "--force", "--all", "--json", "--help", "--version"])(
    "explains %s",
    (option) => {
      expect(section("OPTIONS")).toMatch(new RegExp(`^\\.It Fl .*\\B-${option.slice(2)}$`, "m"));
    },
  );
});
