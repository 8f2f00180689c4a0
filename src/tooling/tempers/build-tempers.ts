// SPDX-License-Identifier: Apache-2.0
// Compiles the tempers (the C programs beside this file, one sentence of temper each) and puts them on a lab host. They
// live here and not in the tests, because the drill and the boundary tests start the same ones and tooling imports
// nothing from the tests.

import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

import type { LabHost } from "../lab/host.ts";
import { cacheDirectory } from "../machine.ts";

const sourceDirectory = import.meta.dirname;
const compilerOptions = ["-O2", "-Wall", "-Wextra", "-Wno-unused-function", "-static", "-pthread", "-s"];
const rootOwns = ["--owner=0", "--group=0", "--numeric-owner", "--mode=0755"];
const execute = promisify(execFile);

/** Where the tempers are on a lab host: readable and executable by all. */
export const tempersOnHost = "/opt/lab/tempers";

/** Where every payload of a lab host keeps its counters; a tmpfs that everybody may write. */
export const countersOnHost = "/run/lab/counters";

/**
 * Compiles every temper, statically, so that one build runs on every lab host. Needs `gcc` and `xz`. Cached by the hash of all
 * sources and options.
 * @returns the directory with one executable per temper, named like its source without `.c`
 */
export async function buildTempers(): Promise<string> {
  const sources = (await readdir(sourceDirectory)).filter((name) => /\.[ch]$/.test(name)).sort();
  const hash = createHash("sha256").update(compilerOptions.join(" "));
  for (const name of sources) hash.update(name).update(await readFile(join(sourceDirectory, name)));
  const directory = join(cacheDirectory("tempers"), hash.digest("hex").slice(0, 16));
  if (existsSync(directory)) return directory;
  const unfinished = `${directory}.${process.pid}`;
  await mkdir(unfinished, { recursive: true });
  for (const name of sources.filter((source) => source.endsWith(".c"))) {
    const program = join(unfinished, name.slice(0, -2));
    await execute("gcc", [...compilerOptions, "-o", program, join(sourceDirectory, name)]);
  }
  // Static programs of one library are nearly the same: together they are a twentieth, which counts where a host is slow.
  await execute(
    "tar",
    ["--create", "--use-compress-program=xz -2", ...rootOwns, `--file=${directory}.tar.xz.${process.pid}`, "."],
    {
      cwd: unfinished,
    },
  );
  await rename(`${directory}.tar.xz.${process.pid}`, archiveOf(directory));
  await rename(unfinished, directory).catch((error: NodeJS.ErrnoException) => {
    // Another process of this machine finished the same build first: its result is the same.
    if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error;
  });
  return directory;
}

function archiveOf(directory: string): string {
  return `${directory}.tar.xz`;
}

/** Puts the compiled tempers and the directory of their counters on a host. */
export async function installTempers(host: LabHost): Promise<void> {
  const directory = await buildTempers();
  await host.sh(
    `mkdir -p ${tempersOnHost} ${countersOnHost} && chmod 755 /opt/lab ${tempersOnHost} && chmod 777 ${countersOnHost}`,
  );
  const archive = "/opt/lab/tempers.tar.xz";
  await host.copyIn(archiveOf(directory), archive);
  // Hosts have Python and no xz.
  const unpack = `import tarfile; tarfile.open("${archive}").extractall("${tempersOnHost}")`;
  const label = host.selinux ? "restorecon -R /opt/lab" : ":";
  await host.sh(`python3 -c '${unpack}' && rm ${archive} && chmod 755 ${tempersOnHost} && ${label}`, {
    timeoutMs: 120_000,
  });
}
