// SPDX-License-Identifier: Apache-2.0
// The parts of the tests on real hosts, and which of them belong to each change.

import { readdirSync } from "node:fs";

import { type HostKind, type HostName, kindOf } from "../lab/host-names.ts";
import { inProject } from "../machine.ts";
import type { Project } from "../test/vitest.ts";

/** Files of one project of vitest.config.ts. */
export interface Part {
  project: Exclude<Project, "unit">;
  /** Parts of file names; all files when absent. */
  files?: string[];
  /** Words that the name of a case holds, all of them; all cases when absent. */
  words?: string;
}

const projects = ["boundary", "out-of-reach", "worst-day", "crowds"] as const;

/** A project, or a file of one by its path in the checkout, that is not tried on a host. */
export interface LeftOut {
  host: HostName;
  what: string;
  why: string;
}

/**
 * What is not tried on a kind of host, and on a single one, with the reason. Every run names it and counts it as skipped.
 * Single tests that need what a host lacks skip themselves there, and each of them is in tests/allowed-skips.json.
 */
const notTried: { on: HostKind["kind"] | HostName; what: string; why: string }[] = [
  {
    on: "machine",
    what: "crowds",
    why: "with thousands of processes on an emulated processor one case takes an hour, and the kernel's path is the same",
  },
  {
    on: "bookworm-5.10",
    what: "tests/boundary/kernel-facts.test.ts",
    why: "the facts are those of kernels with cgroup.kill; without it the stop relies on none of them but signals",
  },
  {
    on: "bookworm-5.10",
    what: "tests/boundary/worst-day/cgroup-files.test.ts",
    why: "it breaks the files that this kernel does not have",
  },
];

/** What a run on this host leaves out. */
export function leftOutOn(host: HostName): LeftOut[] {
  return notTried
    .filter(({ on }) => on === host || on === kindOf(host).kind)
    .map(({ what, why }) => ({ host, what, why }));
}

/** Everything that can be tried on a host, which `npm run boundary` and `npm run ci-full` do. */
export function partsOn(host: HostName): readonly Part[] {
  const without = leftOutOn(host).map(({ what }) => what);
  return projects
    .filter((project) => !without.includes(project))
    .map((project) => {
      const files = filesOf(project);
      const tried = files.filter((file) => !without.includes(file));
      return tried.length === files.length ? { project } : { project, files: tried };
    });
}

/** Files of `tests/boundary/worst-day/` that are short enough and worth enough for `npm test`. */
const worstDayOfEachChange: string[] = [
  "census-order",
  "clock",
  "final-look",
  "grace-window",
  "mounts",
  "names",
  "operators-terminal",
  "runtime-directory",
  "traced",
  "zombie-leader",
].map((name) => `tests/boundary/worst-day/${name}.test.ts`);

/**
 * What `npm test` runs: it has to fit in 25 minutes, with everything else. The containers have what is out of a session's
 * reach and a session's life, bookworm every other promise and the short ones of the worst day as well; the machine with
 * SELinux has what only it can show, and the stop of a session there.
 */
export function hostsOfEachChange(): { host: HostName; parts: Part[] }[] {
  return [
    {
      host: "bookworm",
      parts: [
        { project: "boundary" },
        { project: "out-of-reach" },
        { project: "worst-day", files: worstDayOfEachChange },
      ],
    },
    {
      host: "trixie",
      parts: [
        { project: "out-of-reach" },
        {
          project: "boundary",
          files: ["session", "every-session-ends"].map((name) => `tests/boundary/${name}.test.ts`),
        },
      ],
    },
    {
      host: "bookworm-selinux",
      parts: [
        {
          project: "out-of-reach",
          files: ["domain", "launch"].map((name) => `tests/boundary/out-of-reach/${name}.test.ts`),
        },
        { project: "boundary", files: ["tests/boundary/session-and-stop.test.ts"], words: "a polite session" },
      ],
    },
  ];
}

/** The parts on a host without the files that hold none of these words; a part without any would be a run without a test. */
export function partsWith(host: HostName, words: string[]): readonly Part[] {
  if (words.length === 0) return partsOn(host);
  return partsOn(host)
    .map(({ project, files = filesOf(project) }) => ({
      project,
      files: files.filter((path) => words.some((word) => path.includes(word))),
    }))
    .filter(({ files }) => files.length > 0);
}

/** The project to which a file below `tests/boundary/` belongs, as vitest.config.ts has them. */
export function projectOf(file: string): Part["project"] {
  if (file.startsWith("out-of-reach/")) return "out-of-reach";
  if (file.startsWith("worst-day/crowds/")) return "crowds";
  return file.startsWith("worst-day/") ? "worst-day" : "boundary";
}

/** Paths in the checkout. */
function filesOf(project: Part["project"]): string[] {
  return readdirSync(inProject("tests", "boundary"), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".test.ts") && projectOf(path) === project)
    .map((path) => `tests/boundary/${path}`);
}
