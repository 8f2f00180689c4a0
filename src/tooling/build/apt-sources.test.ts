// SPDX-License-Identifier: Apache-2.0
// The derived source list has the machine's own archive and key in it, whichever of apt's formats names them.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { parseDeb822, parseOneLine, sourceList } from "./apt-sources.ts";

const made: string[] = [];
afterEach(() => {
  for (const path of made.splice(0)) rmSync(path, { recursive: true });
});

/** A folder like /etc/apt with these files. */
function etcApt(files: Record<string, string>): string {
  const folder = mkdtempSync(join(tmpdir(), "etc-apt-"));
  made.push(folder);
  mkdirSync(join(folder, "sources.list.d"));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}

const DEB822 = `# the archive
Types: deb
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/archive.gpg

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main
`;

test("a .sources file gives its archive and key for the other suite", () => {
  expect(sourceList("trixie", etcApt({ "sources.list.d/debian.sources": DEB822 }))).toBe(
    "Types: deb-src\nURIs: http://mirror.example/debian\nSuites: trixie\nComponents: main\n" +
      "Signed-By: /usr/share/keyrings/archive.gpg\n",
  );
});

test("a one-line file gives the same, its options kept", () => {
  const text =
    "# c\ndeb [arch=amd64 signed-by=/k.gpg trusted=yes] http://mirror.example/debian bookworm main contrib # c\n";
  expect(sourceList("trixie", etcApt({ "sources.list": text }))).toBe(
    "Types: deb-src\nURIs: http://mirror.example/debian\nSuites: trixie\nComponents: main\n" +
      "Signed-By: /k.gpg\nTrusted: yes\n",
  );
});

test("security and vendors' archives are not taken for Debian's own", () => {
  const security = "deb http://mirror.example/debian-security bookworm-security main\n";
  const vendor = "deb https://vendor.example/apt vendor-bookworm main\ndeb https://vendor.example/x stable vendor\n";
  expect(sourceList("trixie", etcApt({ "sources.list": security, "sources.list.d/v.list": vendor }))).toBeUndefined();
});

test("files that apt ignores are ignored", () => {
  expect(sourceList("trixie", etcApt({ "sources.list.d/debian.sources.disabled": DEB822 }))).toBeUndefined();
  expect(parseDeb822(DEB822.replace("Types: deb\n", "Enabled: no\nTypes: deb\n"))).toHaveLength(1);
});

test("an inline key stays whole", () => {
  const inline =
    "Types: deb\nURIs: http://m.example/d\nSuites: sid\nComponents: main\nSigned-By:\n -----BEGIN\n .\n abc\n";
  expect(parseDeb822(inline)[0]?.options).toEqual([["Signed-By", "-----BEGIN\n .\n abc"]]);
});

test("lines that are no source are no source", () => {
  expect(parseOneLine("#deb http://m.example/d sid main\n\nnonsense\n")).toEqual([]);
});
