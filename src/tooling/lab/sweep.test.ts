// SPDX-License-Identifier: Apache-2.0
// A sweep removes what nobody holds any more, and nothing else.

import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { identityOf, isLiving, type ProcessIdentity } from "./process-identity.ts";
import { type EngineRecord, endProcesses, staleEngines } from "./sweep.ts";

function folderWith(records: Record<string, Partial<EngineRecord> | string>): string {
  const folder = mkdtempSync(join(tmpdir(), "lab-sweep-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const [name, record] of Object.entries(records)) {
    mkdirSync(join(folder, name));
    const text = typeof record === "string" ? record : JSON.stringify({ name, fences: [], ...record });
    writeFileSync(join(folder, name, "record.json"), text);
  }
  return folder;
}

const names = (folder: string, own?: string) => staleEngines(folder, own).map(({ record }) => record.name);
const alive = identityOf(process.pid) as ProcessIdentity;
const gone = { ...alive, startTime: "1" };

test("an engine is stale when its owner is gone, also when another process has its number now", () => {
  expect(names(folderWith({ killed: { owner: gone }, held: { owner: alive } }))).toEqual(["killed"]);
});

test("the engine that this process holds can be swept by it alone", () => {
  const folder = folderWith({ mine: { owner: alive }, other: { owner: alive } });
  expect(names(folder, join(folder, "mine"))).toEqual(["mine"]);
});

test("an engine that is just being made is left alone", () => {
  const folder = folderWith({ half: '{"owner":' });
  mkdirSync(join(folder, "empty"));
  expect(names(folder)).toEqual([]);
});

test("nothing is stale where there never was an engine", () => {
  expect(staleEngines("/nonexistent")).toEqual([]);
});

test("processes that do not end by themselves are killed", async () => {
  const child = spawn("sleep", ["60"], { stdio: "ignore" });
  onTestFinished(() => void child.kill("SIGKILL"));
  const sleeping = identityOf(child.pid ?? 0) as ProcessIdentity;
  expect(isLiving(sleeping)).toBe(true);
  await endProcesses("test", () => [sleeping].filter(isLiving), 0);
  expect(isLiving(sleeping)).toBe(false);
});
