// SPDX-License-Identifier: Apache-2.0
// A word that is sent to a machine arrives as it is, whatever is in it: two shells are on its way.

import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { entering, sshCommand } from "./machine-host.ts";

test("every word arrives as it is", () => {
  const argv = ["sh", "-c", "echo \"$HOME\" 'and' `id`; exit 3", "", " two  blanks ", "line\nbreak", "*", "--", "ü\\"];
  const command = entering("olga", { GREETING: "it's me", EMPTY: "" }, argv);
  const printing = command.replace(/^exec \S+/, "printf '%s\\0'");
  const words = spawnSync("sh", ["-c", printing], { encoding: "utf8" }).stdout.split("\0").slice(0, -1);
  expect(words).toEqual(["olga", "GREETING=it's me", "EMPTY=", "--", ...argv]);
});

test("the shared connection lies beside the key, and nothing of the person's own settings is used", () => {
  const words = sshCommand({ folder: "/run/m/1", port: 2022 }, ["-n"], "true");
  expect(words.slice(0, 7)).toEqual(["ssh", "-F", "none", "-i", "/run/m/1/key", "-p", "2022"]);
  expect(words).toContain("ControlPath=/run/m/1/connection");
  expect(words.slice(-4)).toEqual(["-n", "root@127.0.0.1", "--", "true"]);
});
