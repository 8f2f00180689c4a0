// SPDX-License-Identifier: Apache-2.0
// Promise: the page of a drill shows everything that its evidence holds, to everybody, without a network; and nothing
// that the evidence holds can become part of the page, or make a failed drill look like one that passed.

import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { asJson, asPage, templatePath } from "../../src/tooling/drill/page.ts";
import type { DrillRecord } from "../../src/tooling/drill/record.ts";
import { inProject } from "../../src/tooling/machine.ts";
import { type Look, open, overhang, picture, startBrowser } from "./browser.ts";

/** What a drill on a bookworm container really left. */
const real = JSON.parse(readFileSync(inProject("tests", "pages", "evidence-of-a-drill.json"), "utf8")) as DrillRecord;

let browser: Browser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(() => browser?.close());

async function written(record: DrillRecord, name: string): Promise<string> {
  const path = picture(`${name}.html`);
  writeFileSync(path, await asPage(asJson(record)));
  return path;
}

describe("a page of real evidence", () => {
  test.each<Look>(["light", "dark", "narrow", "print"])("holds every session, mark and check: %s", async (look) => {
    const { page, requests, complaints } = await open(browser, await written(real, "drill"), look);
    expect(await page.locator("h1").textContent()).toBe("✓ The drill passed");
    const sessions = page.locator("tr.session");
    expect(await sessions.count()).toBe(real.sessions.length);
    for (const [index, { name, says, outcome }] of real.sessions.entries()) {
      const line = sessions.nth(index);
      expect(await line.locator("th").textContent()).toContain(name);
      expect(await line.locator("th").textContent()).toContain(says);
      expect(await line.locator("svg path.edge").count()).toBeGreaterThan(0);
      expect(await line.locator("svg").getAttribute("aria-label")).toContain(`${name}: `);
      expect(await line.locator("td.word").textContent()).toBe(outcome || "–");
    }
    const marks = page.locator("table.marks tbody tr");
    expect(await marks.count()).toBe(real.marks.length);
    expect(await page.locator("tr.total svg line.at").count()).toBe(real.marks.length);
    expect(await page.locator(".axis .badge").count()).toBe(real.marks.length);
    for (const { by } of real.marks) expect(await marks.allTextContents()).toContainEqual(expect.stringContaining(by));
    const checks = await page.locator("ul.checks li").allTextContents();
    expect(checks).toHaveLength(real.checks.length);
    for (const [index, { verdict, says, seen }] of real.checks.entries()) {
      expect(checks[index]).toContain(verdict);
      expect(checks[index]).toContain(says);
      expect(checks[index]).toContain(seen);
    }
    expect(requests).toEqual([]);
    expect(complaints).toEqual([]);
    if (look !== "print") expect(await overhang(page)).toBe(0);
    await page.screenshot({ path: picture(`drill-${look}.png`), fullPage: true });
    await page.close();
  });

  test("carries the evidence itself", async () => {
    const { page } = await open(browser, await written(real, "drill"));
    const text = await page.locator("#evidence").textContent();
    expect(JSON.parse(text ?? "")).toEqual(real);
    await page.close();
  });

  test("shows parts of the clock more closely, by the keyboard too", async () => {
    const { page } = await open(browser, await written(real, "drill"));
    const before = await page.locator("tr.total path.edge").getAttribute("d");
    await page.getByLabel("the whole drill").focus();
    await page.keyboard.press("ArrowDown");
    expect(await page.getByLabel("around SIGTERM").isChecked()).toBe(true);
    expect(await page.locator("tr.total path.edge").getAttribute("d")).not.toBe(before);
    await page.getByLabel("from the kill").check();
    expect(await page.locator("tr.session").count()).toBe(real.sessions.length);
    await page.screenshot({ path: picture("drill-kill.png") });
    await page.close();
  });

  test("says where the evidence is when scripts are turned off", async () => {
    const { page } = await open(browser, await written(real, "drill"), "light", false);
    const words = page.locator("noscript p");
    expect(await words.isVisible()).toBe(true);
    expect(await words.textContent()).toMatch(/scripts are turned off.*\.json/s);
    await page.close();
  });
});

describe("text that somebody else chose", () => {
  test("stays text, wherever it stands", async () => {
    const evil = '</script><script>alert(1)</script><img src="http://127.0.0.1/x" onerror="alert(2)">\u202e\u0007';
    const record = everyText(real, evil);
    const { page, requests, complaints } = await open(browser, await written(record, "drill-evil"));
    expect(await page.locator("img").count()).toBe(0);
    expect(await page.locator("script").count()).toBe(2);
    expect(await page.locator("tr.session").count()).toBe(real.sessions.length);
    expect(await page.locator("tr.session .name").first().textContent()).toContain('onerror="alert(2)">\\u202e\\u0007');
    expect(requests).toEqual([]);
    expect(complaints).toEqual([]);
    await page.close();
  });

  test("only this very script may run in the page", () => {
    const template = readFileSync(templatePath, "utf8");
    const script = /<script>([\s\S]*?)<\/script>/.exec(template)?.[1] ?? "";
    const hash = createHash("sha256").update(script).digest("base64");
    expect(template, `write this hash into the page's Content-Security-Policy: ${hash}`).toContain(`'sha256-${hash}'`);
  });
});

describe("a drill that says that it passed does not look like it when", () => {
  const lies: [string, (record: DrillRecord) => void, RegExp][] = [
    ["a check failed", (r) => Object.assign(r.checks[3] ?? {}, { verdict: "FAIL" }), /1 check failed/],
    ["a problem is named", (r) => r.problems.push("something"), /problems are named/],
    ["a session is alive at the end", (r) => setLast(r, 1, 1), /102 was not seen gone at the end/],
    ["nobody looked at the end", (r) => setLast(r, 1, null), /102 was not seen gone at the end/],
    ["a bystander is gone at the end", (r) => setLast(r, r.sessions.length - 1, 0), /was not seen running at the end/],
    ["a session never ran", (r) => setAll(r, 0, 0), /101 was not seen running before/],
    ["nobody counted", (r) => (r.samples = []), /was not seen running before/],
    ["there was no session", (r) => (r.sessions = []), /it names no session/],
    ["a session was alive after the verdict", aliveAfterVerdict, /101 was seen alive after the verdict/],
  ];
  test.each(lies)("%s", async (_, damage, reason) => {
    const record = structuredClone(real);
    damage(record);
    const { page, complaints } = await open(browser, await written(record, "drill-lie"));
    expect(await page.locator("h1").textContent()).toBe("✗ The drill FAILED");
    expect(await page.locator("header.failed").textContent()).toMatch(reason);
    expect(complaints).toEqual([]);
    await page.close();
  });

  test("it was interrupted", async () => {
    const record = { ...real, verdict: "interrupted" as never };
    const { page } = await open(browser, await written(record, "drill-lie"));
    expect(await page.locator("h1").textContent()).toBe("! The drill did not come to its end");
    await page.close();
  });
});

test("a page without evidence says so", async () => {
  const { page } = await open(browser, templatePath);
  expect(await page.locator("h1").textContent()).toBe("No evidence");
  await page.close();
});

/** One look after the verdict saw the first session, and no look after that. */
function aliveAfterVerdict({ marks, samples }: DrillRecord): void {
  const verdictMs = marks.find(({ name }) => name === "verified")?.atMs ?? Number.NaN;
  const late = samples.find(({ atMs }) => atMs > verdictMs);
  if (late !== undefined) late.alive[0] = 1;
}

function setAll({ samples }: DrillRecord, session: number, alive: number): void {
  for (const sample of samples) sample.alive[session] = alive;
}

function setLast({ samples }: DrillRecord, session: number, alive: number | null): void {
  const last = samples.at(-1);
  if (last !== undefined) last.alive[session] = alive;
}

/** The record with these words behind every text that a session, a host or a terminal could have written. */
function everyText(record: DrillRecord, words: string): DrillRecord {
  const own = new Set(["format", "verdict", "place", "startedAt", "endedAt", "zeroAt"]);
  const text = JSON.stringify(record, (key, value) =>
    typeof value === "string" && !own.has(key) ? value + words : value,
  );
  return JSON.parse(text) as DrillRecord;
}
