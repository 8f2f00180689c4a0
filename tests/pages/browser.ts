// SPDX-License-Identifier: Apache-2.0
// A real browser for the pages that people look at: Chromium, headless, with a profile of its own that is gone
// afterwards. What a page asks the network for or complains of is kept.

import { mkdirSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { type Browser, chromium, type Page } from "playwright-core";
import { inProject } from "../../src/tooling/machine.ts";

export type Look = "light" | "dark" | "narrow" | "print";

export interface Opened {
  page: Page;
  /** What it asked for besides itself. */
  requests: string[];
  /** Errors, and everything that it wrote to the console. */
  complaints: string[];
}

/** Nothing may go out, and root has no sandbox of the browser's own. */
const flags = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Starts the browser of the machine; the caller closes it. */
export function startBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: "/usr/bin/chromium", args: flags });
}

/** Opens a page that is a file on this machine. */
export async function open(
  browser: Browser,
  path: string,
  look: Look = "light",
  javaScriptEnabled = true,
): Promise<Opened> {
  const page = await browser.newPage({
    viewport: { width: look === "narrow" ? 390 : 1280, height: 900 },
    colorScheme: look === "dark" ? "dark" : "light",
    javaScriptEnabled,
  });
  if (look === "print") await page.emulateMedia({ media: "print" });
  const address = pathToFileURL(path).href;
  const requests: string[] = [];
  const complaints: string[] = [];
  page.on("request", (request) => request.url() !== address && requests.push(request.url()));
  page.on("console", (message) => complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("dialog", (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  await page.goto(address);
  return { page, requests, complaints };
}

/** A file of this name in `build/pages`, which is there for people to look at. */
export function picture(name: string): string {
  mkdirSync(inProject("build", "pages"), { recursive: true });
  return inProject("build", "pages", name);
}

/** How far the page's content reaches beyond its window, in pixels: a person would have to scroll sideways. */
export function overhang(page: Page): Promise<number> {
  return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth");
}
