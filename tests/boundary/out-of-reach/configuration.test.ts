// SPDX-License-Identifier: Apache-2.0
// Promise: nobody of the account can change what root's part goes by: the package's files, configuration, entry points,
// claims, records, units, drop-ins, and what the generator wrote.

import { afterAll, expect, test } from "vitest";
import { linesOf } from "../kit/facts.ts";
import {
  type Acts,
  attempt,
  expectAllDone,
  expectOutOfReach,
  insideProject,
  insiders,
  standingSession,
} from "../kit/from-inside.ts";
import { gatedHost } from "../kit/journal-gate.ts";

const { host, gate } = await gatedHost("a session tries to change what is root's");
const uid = (await host.sh("id -u ai-tools")).trim();
const records = "/var/lib/ai-tools";

afterAll(() => host.sh(`rm -f ${records}/lab-* ${records}/claims/lab-* /etc/ai-tools/entrypoints.d/lab-planted.conf`));

function onFile(path: string): Acts {
  return {
    [`open ${path} for writing`]: ["opened", path],
    [`change the mode of ${path}`]: ["chmod", path],
    [`move ${path} away`]: ["rename", path],
  };
}

/** Folders of the image cannot be moved on every host, not even by root: those of the package can. */
function inFolder(path: string): Acts {
  return {
    [`make a file in ${path}`]: ["create", path],
    [`make a folder in ${path}`]: ["mkdir", `${path}/lab-folder`],
    [`change the mode of ${path}`]: ["chmod", path],
  };
}

function onFolder(path: string): Acts {
  return { ...inFolder(path), [`move ${path} away`]: ["rename", path] };
}

function all(acts: Acts[]): Acts {
  return Object.assign({}, ...acts);
}

test("every file and folder of the package", async () => {
  const owned = await linesOf(host, "rpm -q --queryformat '[%{FILENAMES}\\n]' ai-tools ai-tools-selinux | grep '^/'");
  // Where documentation is left out of an installation, rpm names files that are not there.
  const text = await host.sh(
    `while read -r path; do
      if [ -L "$path" ]; then :; elif [ -d "$path" ]; then echo "d $path"; elif [ -e "$path" ]; then echo "f $path"; fi
    done`,
    { input: `${owned.join("\n")}\n` },
  );
  const there = text.split("\n").filter((line) => line !== "");
  const paths = (kind: string) => there.filter((line) => line.startsWith(`${kind} `)).map((line) => line.slice(2));
  // The sessions' own home is in configuration.test.ts only by name: it is theirs.
  const folders = paths("d").filter((path) => path !== `${records}/home`);
  expect(paths("f")).toEqual(expect.arrayContaining(["/usr/bin/ai-tools", "/etc/sudoers.d/ai-tools"]));
  expect(folders).toEqual(expect.arrayContaining([records, "/etc/ai-tools/entrypoints.d"]));
  await expectOutOfReach(host, all([...paths("f").map(onFile), ...folders.map(onFolder)]));
});

test("accounts, rules and lists that root's part reads", async () => {
  const candidates = [
    ...["/etc/passwd", "/etc/group", "/etc/shadow", "/etc/subuid", "/etc/subgid", "/etc/sudoers", "/etc/cron.deny"],
    ...["/etc/at.deny", "/etc/pam.d/sudo", "/etc/ld.so.cache", "/etc/machine-id"],
  ];
  // Files that a container's engine has mounted cannot be moved, not even by root.
  const there = await linesOf(host, `for path in ${candidates.join(" ")}; do [ -e $path ] && echo $path; done`);
  expect(there).toEqual(expect.arrayContaining(["/etc/passwd", "/etc/shadow", "/etc/sudoers"]));
  await expectOutOfReach(host, {
    ...all(there.map(onFile)),
    "read /etc/shadow": ["read", "/etc/shadow"],
    "read /etc/sudoers": ["read", "/etc/sudoers"],
    "read the sudo rule": ["read", "/etc/sudoers.d/ai-tools"],
  });
});

test("units and drop-ins, the generated ones too", async () => {
  const written = await linesOf(
    host,
    `find /run/systemd/generator* /run/systemd/system* -type f -path '*${uid}*' -o -type f -name 'ai-tools*'`,
  );
  expect(written).toContain(`/run/systemd/generator/user-${uid}.slice.d/50-ai-tools.conf`);
  expect(written).toContain(`/run/systemd/generator/user@${uid}.service.d/50-ai-tools.conf`);
  const folders = await linesOf(
    host,
    `for path in /etc/systemd/system /etc/systemd/user /run/systemd/system /run/systemd/transient \
      /run/systemd/generator /run/systemd/generator.early /run/systemd/generator.late /run/systemd/system.control \
      /run/systemd/generator/user-${uid}.slice.d /run/systemd/generator/user@${uid}.service.d /run/systemd/units \
      /run/systemd/users /run/systemd/sessions /usr/lib/systemd/system /usr/lib/systemd/system-generators \
      /etc/tmpfiles.d /run/tmpfiles.d /etc/sysusers.d /run/sysusers.d; do [ -d $path ] && echo $path; done`,
  );
  await expectOutOfReach(host, all([...written.map(onFile), ...folders.map(inFolder)]));
});

test("a session's own record, claim and unit, while it runs", async () => {
  const session = await standingSession(host);
  const own = await linesOf(
    host,
    `grep -l ${session.unit} ${records}/sessions/*; grep -l ${await insideProject(host)} ${records}/claims/*
    ls -d /run/systemd/transient/${session.unit} /run/ai-tools/projects`,
  );
  expect(own.length).toBeGreaterThanOrEqual(3);
  const acts = all([
    ...own.map((path) => (path.endsWith("/projects") ? onFolder(path) : onFile(path))),
    { "look for a hold": ["create", records], "set its record back": ["create", `${records}/sessions`] },
  ]);
  await expectOutOfReach(host, acts, { outOfReachFor: ["account", "unit"] });
  const answers = await session.ask(acts);
  expect(Object.entries(answers).filter(([, answer]) => !/^(EACCES|EPERM|ENOENT)$/.test(answer))).toEqual([]);
  await session.end();
});

test("no entry point, no claim, no record and no number of the account can be planted", async () => {
  const paths = {
    "an entry point": "/etc/ai-tools/entrypoints.d/lab-planted.conf",
    "a claim": `${records}/claims/lab-planted.json`,
    "a record of a session": `${records}/sessions/lab-planted.json`,
    "a hold": `${records}/lab-hold.json`,
  };
  const acts = Object.fromEntries(
    Object.entries(paths).map(([what, path]) => [what, ["plant", path, "{}\n"]]),
  ) as unknown as Acts;
  await expectOutOfReach(
    host,
    {
      ...acts,
      "a number of the account": ["opened", `${records}/uids`],
      "no number of it": ["rename", `${records}/uids`],
    },
    { before: `rm -f ${Object.values(paths).join(" ")}` },
  );
});

test("what is theirs: the sessions' home and the claimed project, and nothing above them", async () => {
  const project = await insideProject(host);
  for (const who of insiders) {
    const acts: Acts = {
      "make a file at home": ["create", `${records}/home`],
      "make a file in the project": ["create", project],
    };
    expectAllDone(await attempt(host, who, acts), `possible for ${who}`);
  }
  await expectOutOfReach(host, {
    "make a file beside the home": ["create", records],
    "move the home away": ["rename", `${records}/home`],
    "make a file beside the project": ["create", project.replace(/\/[^/]*$/, "")],
    "move the project away": ["rename", project],
  });
});

test("nothing was logged as an error, and nothing was denied, that is not told above", () => gate.expectQuiet());
