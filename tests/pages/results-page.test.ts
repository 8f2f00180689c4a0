// SPDX-License-Identifier: Apache-2.0
// Promise: the table of the tests on real hosts shows every case on every kind of host, lets a person find what did not
// pass, needs no network, and makes nothing but text of what hostile sessions wrote.

import { writeFileSync } from "node:fs";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { resultsPage } from "../../src/tooling/boundary/results-page.ts";
import { type Results, resultsOf } from "../../src/tooling/boundary/table.ts";
import type { Outcome } from "../../src/tooling/test/report.ts";
import { type Look, open, overhang, picture, startBrowser } from "./browser.ts";

const hosts = ["bookworm", "trixie", "sid", "bookworm-selinux", "trixie-selinux", "bookworm-5.10"];
const evil = `<img src="http://127.0.0.1/x" onerror="alert(1)"></pre><script>alert(2)</script>`;

let browser: Browser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(() => browser?.close());

function results(damaged: boolean): Results {
  const names = [
    "a frozen stray is ended",
    "a crowd > of deaf sessions in the account's manager is ended",
    "the trail is whole",
  ];
  const outcomes = hosts.flatMap((host) =>
    names.map((name): Outcome => {
      const one = { stage: "boundary", name: `tests/boundary/x.test.ts > ${name}`, host, durationMs: 1_500 };
      if (!damaged || name !== names[0] || host !== "sid") return { ...one, result: "passed" };
      return { ...one, result: "failed", message: evil };
    }),
  );
  const figure = { host: "bookworm", file: "tests/boundary/x.test.ts", test: names[0] ?? "", what: "stop" };
  const figures = [{ ...figure, force: true, code: 0, toVerdictMs: 2_400 }];
  return resultsOf(outcomes, figures, { hosts, full: false });
}

async function opened(damaged: boolean, look: Look = "light") {
  const path = picture("results.html");
  writeFileSync(path, resultsPage(results(damaged)));
  return open(browser, path, look);
}

test.each<Look>(["light", "dark", "narrow", "print"])("every case on every kind of host is there: %s", async (look) => {
  const { page, requests, complaints } = await opened(true, look);
  expect(await page.locator("h1").textContent()).toBe("✗ 1 FAILED");
  expect(await page.locator(".cases tr.case").count()).toBe(3);
  const cells = page.locator(".cases td[data-host]");
  expect(await cells.count()).toBe(3 * hosts.length);
  for (const text of await cells.allTextContents()) expect(text).toMatch(/ok|FAILED/);
  expect(await cells.first().textContent()).toContain("force 2.4 s !");
  expect(await page.locator("tr.why pre").textContent()).toBe(evil);
  expect(await page.locator("img").count()).toBe(0);
  expect(requests).toEqual([]);
  expect(complaints).toEqual([]);
  if (look !== "print") expect(await overhang(page)).toBe(0);
  await page.screenshot({ path: picture(`results-${look}.png`), fullPage: true });
  await page.close();
});

test("a person finds cases by words, and what did not pass", async () => {
  const { page } = await opened(true);
  const shown = page.locator(".cases tr.case:visible");
  await page.getByLabel("Filter by words").fill("crowd manager");
  expect(await shown.count()).toBe(1);
  expect(await page.locator("tr.why:visible").count()).toBe(0);
  await page.getByLabel("Filter by words").fill("");
  await page.getByLabel("only what did not pass").check();
  expect(await shown.count()).toBe(1);
  expect(await shown.textContent()).toContain("a frozen stray is ended");
  expect(await page.locator("tr.why:visible").count()).toBe(1);
  await page.close();
});

test("a table in which nothing failed says so", async () => {
  const { page } = await opened(false);
  expect(await page.locator("h1").textContent()).toBe("✓ Nothing failed");
  await page.close();
});
