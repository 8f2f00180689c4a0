// SPDX-License-Identifier: Apache-2.0
// The committed list of what sesearch answers about sessions on the linked policy (selinux/expected-rules.txt), and the
// comparison with what it does answer. What stands there is what may be; one rule more or less is a finding.

import { createHash } from "node:crypto";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Refusal } from "../cleanup.ts";
import { cacheDirectory, inProject } from "../machine.ts";
import { step } from "../progress.ts";
import type { Policy } from "./build.ts";
import { inTree, type Suite, suites } from "./tree.ts";

export const EXPECTED = "selinux/expected-rules.txt";
const ASK = inProject("src", "tooling", "policy", "ask.py");

export interface Question {
  /** What the answer means for a session. */
  sentence: string;
  /** Options of sesearch. */
  options: string;
  /** The rules, each with the suites where it is expected. */
  answers: { rule: string; suites: readonly Suite[] }[];
}

/**
 * Reads the list: a sentence after `# `, the question after `? `, then the rules as sesearch prints them, or `nothing`.
 * `[bookworm trixie]` before a rule: only there.
 * @throws Refusal where a line fits nowhere, or a question has no sentence or no answer
 */
export function parseExpected(text: string): Question[] {
  const questions: Question[] = [];
  for (const block of text.split(/\n\s*\n/).filter((part) => /^\? /m.test(part))) {
    const lines = block.split("\n").filter((line) => line !== "");
    const asked = lines.findIndex((line) => line.startsWith("? "));
    const sentence = lines.slice(0, asked).map((line) => line.replace(/^# ?/, ""));
    const answers = lines.slice(asked + 1);
    const wrong = (why: string) => new Refusal(`${EXPECTED}: ${why}:\n${block}`);
    if (sentence.length === 0) throw wrong("a question without a sentence");
    if (answers.length === 0) throw wrong("a question without an answer (write: nothing)");
    if (answers.includes("nothing") && answers.length > 1) throw wrong("nothing and something");
    questions.push({
      sentence: sentence.join(" "),
      options: (lines[asked] ?? "").slice(2),
      answers: answers.filter((line) => line !== "nothing").map(parseAnswer),
    });
  }
  return questions;
}

function parseAnswer(line: string): { rule: string; suites: readonly Suite[] } {
  const [, names, rule] = /^(?:\[([a-z ]+)\] )?(\w.*)$/.exec(line) ?? [];
  if (rule === undefined) throw new Refusal(`${EXPECTED}: no rule of sesearch: ${line}`);
  const named = names?.split(" ") ?? suites;
  const unknown = named.find((name) => !(suites as readonly string[]).includes(name));
  if (unknown !== undefined) throw new Refusal(`${EXPECTED}: no suite is called ${unknown}: ${line}`);
  return { rule, suites: named as readonly Suite[] };
}

/** What the answers on a suite are otherwise than expected, a few lines each. */
export function differences(questions: readonly Question[], answered: ReadonlyMap<string, string[]>, suite: Suite) {
  return questions.flatMap(({ sentence, options, answers }) => {
    const found = answered.get(options);
    if (found === undefined) return [`${suite}: sesearch ${options} was not answered.`];
    const expected = answers.filter((answer) => answer.suites.includes(suite)).map(({ rule }) => rule);
    const more = found.filter((rule) => !expected.includes(rule)).map((rule) => `  not expected: ${rule}`);
    const less = expected.filter((rule) => !found.includes(rule)).map((rule) => `  missing:      ${rule}`);
    if (more.length + less.length === 0) return [];
    return [[`${suite}: sesearch ${options}`, `  ${sentence}`, ...more, ...less].join("\n")];
  });
}

/**
 * Asks the linked policy every question of the list: half a minute, and nothing where the same list was borne out by the
 * same policy before.
 * @returns what differs, nothing where all is as expected
 * @throws Refusal where sesearch cannot answer
 */
export async function checkRules(policy: Policy): Promise<string[]> {
  const text = readFileSync(inProject(EXPECTED), "utf8");
  const hash = createHash("sha256")
    .update(text)
    .update(readFileSync(ASK))
    .update(readFileSync(import.meta.filename));
  const borneOut = join(dirname(policy.linked), `borne-out-${hash.digest("hex").slice(0, 20)}`);
  if (existsSync(borneOut)) return [];
  const found = await step(`asking the SELinux policy of ${policy.tree.suite}`, () => ask(policy, parseExpected(text)));
  if (found.length === 0) writeFileSync(borneOut, "");
  return found;
}

async function ask(policy: Policy, questions: readonly Question[]): Promise<string[]> {
  const asked = join(cacheDirectory("policy"), `questions.${process.pid}`);
  writeFileSync(asked, questions.map(({ options }) => `${options}\n`).join(""));
  const files = { policy: policy.linked, questions: asked, "ask.py": ASK };
  const argv = ["python3", "ask.py", "policy", "questions"];
  try {
    return await inTree(policy.tree, "sesearch", files, argv, ({ code, output }) => {
      if (code !== 0) throw new Refusal(`${output}\nsesearch did not answer (${EXPECTED} has its questions).`);
      return differences(questions, parseAnswers(output), policy.tree.suite);
    });
  } finally {
    rmSync(asked, { force: true });
  }
}

/** What ask.py printed, by question. */
export function parseAnswers(output: string): Map<string, string[]> {
  const parts = output.split(/^\? /m).slice(1);
  return new Map(
    parts.map((part) => {
      const [question = "", ...rules] = part.split("\n").filter((line) => line !== "");
      return [question, rules];
    }),
  );
}
