// SPDX-License-Identifier: Apache-2.0
// Projects, entry points and sessions on a lab host, by the product's own commands, as the people of the host run them.

import type { LabHost, LabTerminal, Outcome } from "../../../src/tooling/lab/host.ts";
import { countersOnHost, tempersOnHost } from "../../../src/tooling/tempers/build-tempers.ts";
import { clearHost, eventually } from "./facts.ts";
import { frontDoor } from "./stop.ts";

export const claims = "/var/lib/ai-tools/claims";
export const sessionRecords = "/var/lib/ai-tools/sessions";
export const holdRecord = "/var/lib/ai-tools/hold.json";
const entryPoints = "/etc/ai-tools/entrypoints.d";

/** The projects of these tests: below a home that is closed to others, and beside homes. */
export const atHome = "/home/olga/lab";
export const beside = "/srv/lab";

/** A host on which nothing runs, nothing is claimed or held, and two operators are: olga and oscar. */
export async function clearSessions(host: LabHost): Promise<void> {
  await clearHost(host);
  await host.sh(`
    id oscar >/dev/null 2>&1 || useradd --create-home --shell /bin/bash --groups ai-ops oscar
    chmod 700 /home/olga
    rm -rf ${claims}/* ${sessionRecords}/* ${holdRecord} ${entryPoints}/lab-* ${atHome} ${beside} /var/lib/ai-tools/home/*
    install -d -o olga -g olga ${atHome} ${beside}`);
}

/** A directory of olga's with a file in it, claimed by her; answers with its path. */
export async function claimedProject(host: LabHost, path = `${beside}/shop`): Promise<string> {
  const make = 'mkdir -p "$1" && echo hello >"$1/README"';
  await expectDone(await host.run(["sh", "-c", make, "sh", path], { user: "olga" }));
  await expectDone(await inDirectory(host, "/", ["--claim", path]));
  return path;
}

/** Runs the front door in a directory, as olga where nobody else is named, without a terminal. */
export function inDirectory(
  host: LabHost,
  directory: string,
  words: string[],
  options: { user?: string; input?: string; env?: Record<string, string>; before?: string } = {},
): Promise<Outcome> {
  const { user = "olga", before = "", ...others } = options;
  return host.run(fromThere(directory, [frontDoor, ...words], before), { user, timeoutMs: 90_000, ...others });
}

/** The same on a terminal of its own. */
export function onTerminal(host: LabHost, directory: string, words: string[], user = "olga"): LabTerminal {
  return host.terminal(fromThere(directory, [frontDoor, ...words]), { user });
}

function fromThere(directory: string, argv: string[], before = ""): string[] {
  return ["sh", "-c", `cd "$1" && shift || exit 99; ${before}\nexec "$@"`, "sh", directory, ...argv];
}

/** @throws with all that it said where a command did not end with 0 */
export async function expectDone({ code, stdout, stderr }: Outcome): Promise<void> {
  if (code !== 0) throw new Error(`exit ${code}\n${stdout}${stderr}`);
}

/** An entry point `lab-NAME` of root's; `lines` follow `[Entrypoint]`. */
export async function entryPoint(host: LabHost, name: string, ...lines: string[]): Promise<string> {
  const text = ["[Entrypoint]", ...lines, ""].join("\n");
  await host.run(["sh", "-c", `umask 022; cat >${entryPoints}/lab-${name}.conf`], { input: text });
  return `lab-${name}`;
}

/** An entry point that runs a shell script given after `--`. */
export function shellEntryPoint(host: LabHost, ...lines: string[]): Promise<string> {
  return entryPoint(host, "shell", "Exec=/bin/sh", ...lines);
}

/** An entry point that runs a temper that counts under this name. */
export function temperEntryPoint(host: LabHost, temper: string, counter: string, words = ""): Promise<string> {
  const line = `Arguments=${countersOnHost}/${counter} 60 ${words}`.trim();
  return entryPoint(host, temper, `Exec=${tempersOnHost}/${temper}`, line);
}

/** Starts a session in the background, as the front door's caller would by `&`, and waits until its unit runs. */
export async function startSession(
  host: LabHost,
  directory: string,
  words: string[],
  user = "olga",
): Promise<{ unit: string; ended: Promise<Outcome> }> {
  const before = new Set(await sessionUnits(host));
  const ended = inDirectory(host, directory, ["--run", ...words], { user });
  let unit: string | undefined;
  let early: Outcome | undefined;
  void ended.then((outcome) => {
    early = outcome;
  });
  await eventually(
    "a session runs",
    async () => {
      unit = (await sessionUnits(host)).find((name) => !before.has(name));
      if (unit === undefined && early !== undefined) throw new Error(`it ended: ${JSON.stringify(early)}`);
      return unit !== undefined;
    },
    60_000,
  );
  return { unit: unit ?? "", ended };
}

/** The units of sessions whose cgroup is there with a process in it. */
export async function sessionUnits(host: LabHost): Promise<string[]> {
  const text = await host.sh(
    `cd /sys/fs/cgroup/user.slice/user-$(id -u ai-tools).slice 2>/dev/null &&
     grep -l 'populated 1' ai-tools-*.service/cgroup.events 2>/dev/null; true`,
  );
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => line.split("/")[0] ?? "");
}

/** Root's records of sessions that run or did not end by themselves. */
export async function recordsOf(host: LabHost): Promise<{ unit: string; ended?: { clean: boolean; how: string } }[]> {
  const text = await host.sh(`cat ${sessionRecords}/*.json 2>/dev/null || true`);
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
}

/** Owners below a directory: `olga README`, one line each, sorted. */
export async function owners(host: LabHost, directory: string): Promise<string[]> {
  const { stdout } = await host.run(["find", directory, "-mindepth", "1", "-printf", "%u %P\\n"]);
  return stdout
    .split("\n")
    .filter((line) => line !== "")
    .sort();
}

/** What is owned by the account below a directory. */
export async function accountsFiles(host: LabHost, directory: string): Promise<string[]> {
  return (await owners(host, directory)).filter((line) => line.startsWith("ai-tools "));
}
