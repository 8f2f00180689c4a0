// SPDX-License-Identifier: Apache-2.0
// The command line of a stop: every form that is accepted, and that everything else touches nothing and says what to run.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseStop } from "./grammar.ts";

const command = "ai-tools --stop";
const nothing = { dryRun: false, yes: false, force: false, json: false };

function usageOf(words: string[]): string {
  const parsed = parseStop(words, command);
  return parsed.kind === "usage" ? parsed.message : `no usage error but ${parsed.kind}`;
}

describe("what is accepted", () => {
  test.each([
    [[], nothing],
    [["--all"], nothing],
    [["--dry-run"], { ...nothing, dryRun: true }],
    [["-y"], { ...nothing, yes: true }],
    [["--yes"], { ...nothing, yes: true }],
    [["--force"], { ...nothing, force: true }],
    [["--json"], { ...nothing, json: true }],
    [["--json", "--all", "--yes", "--json", "-y"], { ...nothing, yes: true, json: true }],
  ])("%j is a stop with exactly the options that it names", (words, request) => {
    expect(parseStop(words, command)).toEqual({ kind: "stop", request });
  });

  test("options mean the same in any order and however often they are repeated", () => {
    const options = fc.array(fc.constantFrom("--dry-run", "-y", "--yes", "--force", "--all", "--json"));
    fc.assert(
      fc.property(options, (words) => {
        const has = (...names: string[]) => words.some((word) => names.includes(word));
        expect(parseStop(words, command)).toEqual({
          kind: "stop",
          request: {
            dryRun: has("--dry-run"),
            yes: has("-y", "--yes"),
            force: has("--force"),
            json: has("--json"),
          },
        });
      }),
    );
  });

  test("help and version stop nothing, whatever stands beside them", () => {
    expect(parseStop(["--force", "--help"], command)).toEqual({ kind: "help" });
    expect(parseStop(["-h", "--yes"], command)).toEqual({ kind: "help" });
    expect(parseStop(["--yes", "--version"], command)).toEqual({ kind: "version" });
  });
});

describe("what is refused, with nothing touched", () => {
  test.each(["/srv/project", ".", "project", "990", "user-990.slice", "ai-tools-claude-code-1.service", "stop", "yes"])(
    "the operand %j: a stop has no target",
    (word) => {
      expect(usageOf([word])).toContain("a stop takes no target");
      expect(usageOf(["--force", word])).toContain("a stop takes no target");
    },
  );

  test.each([
    "--yes=1",
    "--yes=",
    "--",
    "-",
    "-yy",
    "-f",
    "--Force",
    "--dry",
    "--no",
    "--stop=all",
    "-y ",
    "--force\n",
  ])("the option %j", (word) => {
    expect(usageOf([word])).toContain("unknown option");
  });

  test("an empty argument", () => {
    expect(usageOf([""])).toContain("an empty argument is not an option");
    expect(usageOf(["--yes", ""])).toContain("an empty argument is not an option");
  });

  test("a fault after a help or an option that was right is still a fault", () => {
    expect(usageOf(["--help", "/srv"])).toContain("no target");
    expect(usageOf(["--yes", "--force", "--frobnicate"])).toContain("unknown option --frobnicate");
  });

  test("any word that is no option is one printable line that says what to run instead", () => {
    const known = new Set(["--dry-run", "-y", "--yes", "--force", "--all", "--json", "--help", "-h", "--version"]);
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 400 }), (word) => {
        fc.pre(!known.has(word));
        const message = usageOf([word]);
        expect(message).toMatch(/^[\x20-\x7e]+$/);
        expect(message).toContain("Nothing was touched.");
        expect(message).toContain(command);
        expect(message.length).toBeLessThan(400);
      }),
    );
  });
});
