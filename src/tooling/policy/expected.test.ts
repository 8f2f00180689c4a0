// SPDX-License-Identifier: Apache-2.0
// The list of expected rules is read as it is meant, and a rule more or less is a finding.

import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { inProject } from "../machine.ts";
import { differences, EXPECTED, parseAnswers, parseExpected } from "./expected.ts";

const list = `# What the file is for.

# It has two rules,
# one of them on one suite only.
? -A -s a_t -c file
allow a_t b_t:file read;
[trixie sid] allow a_t c_t:file { read write }; [ a_boolean ]:True

# It has none.
? -A -s a_t -t d_t
nothing
`;
const questions = parseExpected(list);

test("a question has its sentence, its rules and their suites", () => {
  expect(questions).toEqual([
    {
      sentence: "It has two rules, one of them on one suite only.",
      options: "-A -s a_t -c file",
      answers: [
        { rule: "allow a_t b_t:file read;", suites: ["bookworm", "trixie", "sid"] },
        { rule: "allow a_t c_t:file { read write }; [ a_boolean ]:True", suites: ["trixie", "sid"] },
      ],
    },
    { sentence: "It has none.", options: "-A -s a_t -t d_t", answers: [] },
  ]);
});

test("what is as expected on its suite is no finding", () => {
  const output = "? -A -s a_t -c file\nallow a_t b_t:file read;\n? -A -s a_t -t d_t\n";
  expect(differences(questions, parseAnswers(output), "bookworm")).toEqual([]);
});

test.each([
  [
    "a rule where none may be",
    "? -A -s a_t -c file\nallow a_t b_t:file read;\n? -A -s a_t -t d_t\nallow a_t d_t:dir search;\n",
  ],
  ["a wider rule", "? -A -s a_t -c file\nallow a_t b_t:file { read write };\n? -A -s a_t -t d_t\n"],
  [
    "a rule of another suite",
    "? -A -s a_t -c file\nallow a_t b_t:file read;\nallow a_t c_t:file { read write }; [ a_boolean ]:True\n? -A -s a_t -t d_t\n",
  ],
  ["a rule that is gone", "? -A -s a_t -c file\n? -A -s a_t -t d_t\n"],
  ["a question without an answer", "? -A -s a_t -c file\nallow a_t b_t:file read;\n"],
])("%s is a finding", (_what, output) => {
  expect(differences(questions, parseAnswers(output), "bookworm")).toHaveLength(1);
});

test.each([
  ["a question without a sentence", "? -A\nnothing\n"],
  ["a question without an answer", "# Sentence.\n? -A\n"],
  ["nothing and something", "# Sentence.\n? -A\nnothing\nallow a_t b_t:file read;\n"],
  ["a suite that is none", "# Sentence.\n? -A\n[buster] allow a_t b_t:file read;\n"],
])("%s is refused", (_what, text) => {
  expect(() => parseExpected(text)).toThrow();
});

test("the committed list asks about control groups, helpers, trail and ways in, with a sentence each", () => {
  const asked = parseExpected(readFileSync(inProject(EXPECTED), "utf8"));
  const options = asked.map((question) => question.options);
  for (const about of ["-t cgroup_t", "-t ai_tools_helper_exec_t", "-t ai_tools_log_t", "-p transition", "connectto"])
    expect(options.join("\n")).toContain(about);
  for (const { sentence } of asked) expect(sentence).toMatch(/^[A-Z].*\.$/);
});
