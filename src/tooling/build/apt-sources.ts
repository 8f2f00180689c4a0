// SPDX-License-Identifier: Apache-2.0
// Derives a source list for another Debian suite from what the machine's own apt is configured with, so that the
// project never names a mirror. Both formats of sources.list(5) are read: one-line (.list) and deb822 (.sources).

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** One configured archive, as far as the derived list needs it. */
export interface AptSource {
  types: string[];
  uris: string[];
  suites: string[];
  components: string[];
  /** Options that say how the archive is verified and reached, with deb822's names, e.g. `Signed-By`. */
  options: [string, string][];
}

/** Suites of Debian's main archive: neither `bookworm-security` nor a vendor's `stable` with its own components. */
const MAIN_SUITE = /^(oldoldstable|oldstable|stable|testing|unstable|sid|bullseye|bookworm|trixie|forky|duke)$/;
/** deb822's names of the one-line options that the derived list keeps. */
const KEPT_OPTIONS: Record<string, string> = {
  "signed-by": "Signed-By",
  trusted: "Trusted",
  "check-valid-until": "Check-Valid-Until",
  "allow-insecure": "Allow-Insecure",
};

/**
 * A deb822 text with the source packages of one Debian suite from this machine's own archive.
 * @returns undefined where apt has no Debian archive configured
 */
export function sourceList(suite: string, etcApt: string = "/etc/apt"): string | undefined {
  const main = configuredSources(etcApt).find(
    (source) =>
      source.types.some((type) => type === "deb" || type === "deb-src") &&
      source.suites.some((name) => MAIN_SUITE.test(name)) &&
      source.components.includes("main"),
  );
  if (main === undefined) return undefined;
  const lines = ["Types: deb-src", `URIs: ${main.uris.join(" ")}`, `Suites: ${suite}`, "Components: main"];
  return `${[...lines, ...main.options.map(([name, value]) => `${name}: ${value}`)].join("\n")}\n`;
}

function configuredSources(etcApt: string): AptSource[] {
  const parts = join(etcApt, "sources.list.d");
  const names = existsSync(parts) ? readdirSync(parts).sort() : [];
  const files = [join(etcApt, "sources.list"), ...names.map((name) => join(parts, name))];
  return files.filter(existsSync).flatMap((path) => {
    if (path.endsWith(".list")) return parseOneLine(readFileSync(path, "utf8"));
    if (path.endsWith(".sources")) return parseDeb822(readFileSync(path, "utf8"));
    return [];
  });
}

/** `deb [signed-by=KEY] URI SUITE COMPONENT...`, one archive a line. */
export function parseOneLine(text: string): AptSource[] {
  return text.split("\n").flatMap((line) => {
    const match = /^\s*(deb|deb-src)\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)\s+([^#]+)/.exec(line);
    if (match === null) return [];
    const [, type = "", options = "", uri = "", suite = "", components = ""] = match;
    return [
      {
        types: [type],
        uris: [uri],
        suites: [suite],
        components: words(components),
        options: words(options).flatMap((option) => keptOption(...splitOnce(option, "="))),
      },
    ];
  });
}

/** Stanzas of `Name: value`, with continuation lines (an inline key has them) and comments. */
export function parseDeb822(text: string): AptSource[] {
  const stanzas = text.replace(/^#.*\n?/gm, "").split(/\n[ \t]*\n/);
  return stanzas.flatMap((stanza) => {
    const fields = new Map<string, string>();
    for (const field of stanza.split(/\n(?![ \t])/)) {
      const [name, value] = splitOnce(field, ":");
      fields.set(name.trim().toLowerCase(), value.trim());
    }
    if (!fields.has("types") || fields.get("enabled")?.toLowerCase() === "no") return [];
    return [
      {
        types: words(fields.get("types")),
        uris: words(fields.get("uris")),
        suites: words(fields.get("suites")),
        components: words(fields.get("components")),
        options: [...fields].flatMap(([name, value]) => keptOption(name, value)),
      },
    ];
  });
}

function keptOption(name: string, value: string): [string, string][] {
  const kept = KEPT_OPTIONS[name.toLowerCase()];
  return kept === undefined ? [] : [[kept, value]];
}

function splitOnce(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}

function words(text: string | undefined): string[] {
  return (text ?? "").split(/\s+/).filter((word) => word !== "");
}
