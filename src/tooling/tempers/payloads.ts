// SPDX-License-Identifier: Apache-2.0
// Starts tempers on a lab host in every place where a process of the sandbox account (or one that only looks like it)
// can live, and waits until its counters show that it runs.

import type { LabHost } from "../lab/host.ts";
import { patienceFor } from "../lab/host-names.ts";
import { countersOnHost, tempersOnHost } from "./build-tempers.ts";
import { readCounters } from "./counters.ts";

/** One sentence of temper each: see the C source of that name. */
export type Temper =
  | "polite"
  | "deaf"
  | "stubborn"
  | "scattered"
  | "headless"
  | "stopped"
  | "restarting"
  | "saving"
  | HostileTemper;

/** Those of the worst day. */
export type HostileTemper =
  | "heir"
  | "adopting"
  | "chain"
  | "storm"
  | "hopping"
  | "self-frozen"
  | "refreezing"
  | "restopping"
  | "saving-by-program"
  | "vforking"
  | "threaded"
  | "buried";

/**
 * Where a payload of the account lives:
 * `run`: an agent session that the operator starts with `ai-tools --run` in a project of theirs, which is claimed first;
 * `session`: a transient unit of PID 1 in the account's slice, in the form of an agent session;
 * `session-delegated`: the same, and the cgroups below its own are the account's;
 * `session-moved`: started as that, but moved by itself into a scope of the account's manager, which must linger;
 * `own-manager`: a transient unit of the account's own manager, which must linger;
 * `own-manager-always`: the same, restarted by that manager whenever it ends;
 * `system-unit`: a system unit outside the slice that changes to the account with setpriv (a stray);
 * `system-delegated`: a system unit outside the slice, with `User=`, and the cgroups below its own are the account's (a stray);
 * `exec`: started from outside without any unit of its own (a stray), as `docker exec` and `su` without PAM do.
 */
export type Place =
  | "run"
  | "session"
  | "session-delegated"
  | "session-moved"
  | "own-manager"
  | "own-manager-always"
  | "system-unit"
  | "system-delegated"
  | "exec";

/** Who goes on when the account's processes end, see `bystanderCommand`. */
export type Bystander = "operator" | "other-user" | "root-acting-for-account" | "container";

export interface Payload {
  /** Also the name of its counter file. */
  name: string;
  temper: Temper;
  place: Place;
  /** The unit that holds it, where it has one. */
  unit: string | undefined;
}

/** How many processes of each temper work, each with a counter of its own. */
const workersOf: Record<Temper, number> = {
  polite: 1,
  deaf: 1,
  stubborn: 1,
  scattered: 3,
  headless: 1,
  stopped: 1,
  restarting: 2,
  saving: 1,
  heir: 1,
  adopting: 3,
  chain: 1,
  storm: 2,
  hopping: 1,
  "self-frozen": 1,
  refreezing: 2,
  restopping: 2,
  "saving-by-program": 1,
  vforking: 1,
  threaded: 2,
  buried: 1,
};

/** Longest wait for a payload's counters on a container, in milliseconds: systemd on a busy machine takes a second or two. */
const startLimitMs = 20_000;

/** A payload ends by itself after this many seconds, so that nothing outlives a broken test. */
const longestLifeS = 120;
const bystanderLifeS = 600;

/** What to start: by its name (its unit's last part, so a number makes an agent session of it), temper and place. */
export interface Wanted {
  name: string;
  temper: Temper;
  place: Place;
  /** The project of a session, an absolute path that exists; `/` when absent. */
  workingDirectory?: string;
  /** What its temper wants to be told besides, see there. */
  words?: string[];
}

/** Starts payloads and returns when all their processes count. */
export async function startPayloads(host: LabHost, wanted: Wanted[]): Promise<Payload[]> {
  await host.sh(`${sliceIsSettled}\n${wanted.map(startCommand).join("\n")}`);
  await waitForCounters(host, new Map(wanted.map(({ name, temper }) => [name, workersOf[temper]])));
  return wanted.map(({ name, temper, place }) => ({ name, temper, place, unit: unitOf(name, place) }));
}

/** Starts one payload and returns when all its processes count. */
export async function startPayload(
  host: LabHost,
  name: string,
  temper: Temper,
  place: Place,
  workingDirectory = "/",
): Promise<void> {
  await startPayloads(host, [{ name, temper, place, workingDirectory }]);
}

/** Starts processes that look like the account's, or are somebody else's, and must survive every stop. */
export async function startBystanders(host: LabHost, kinds: readonly Bystander[]): Promise<void> {
  await host.sh(kinds.map((kind) => `${bystanderCommand(kind)} || exit`).join("\n"));
  await waitForCounters(host, new Map(kinds.map((kind) => [kind, 1])));
}

/** The sandbox account's number on this host. */
export async function accountUid(host: LabHost): Promise<number> {
  return Number(await host.sh("id -u ai-tools"));
}

/** Lets the account's manager run without a login, and waits until it does. */
export async function startAccountManager(host: LabHost): Promise<void> {
  await host.sh(`${sliceIsSettled}; loginctl enable-linger ai-tools; manager=user@$(id -u ai-tools).service
    systemctl reset-failed $manager 2>/dev/null; systemctl start $manager || { ${whyNotStarted}; exit 1; }`);
}

/** What a failed start alone does not say: who failed, and what it said. */
const whyNotStarted = `for unit in $manager user-runtime-dir@$(id -u ai-tools).service; do
      systemctl status --no-pager --full --lines=0 $unit; journalctl --no-pager --boot --lines=20 --unit=$unit
    done >&2`;

/**
 * After a stop PID 1 takes the empty slice down, and a start that meets that job is refused ("Transaction is
 * destructive"): wait for it to be done.
 */
const sliceIsSettled =
  'for wait in $(seq 200); do systemctl list-jobs --no-legend | grep -q "user-$(id -u ai-tools).slice" || break; sleep 0.05; done';

function startCommand({ name, temper, place, workingDirectory = "/", words = [] }: Wanted): string {
  const command = [`${tempersOnHost}/${temper} ${countersOnHost}/${name} ${longestLifeS}`, ...words].join(" ");
  const unit = unitOf(name, place);
  const asAccount = "setpriv --reuid=ai-tools --regid=ai-tools --clear-groups";
  const ownManager = `systemd-run --quiet --user -M ai-tools@.host --unit=${unit} -p WorkingDirectory=${workingDirectory}`;
  const session =
    `systemd-run --quiet --collect --uid=ai-tools --gid=ai-tools --slice=user-$(id -u ai-tools).slice --unit=${unit} ` +
    `-p WorkingDirectory=${workingDirectory} -p NoNewPrivileges=yes`;
  const move = `env XDG_RUNTIME_DIR=/run/user/$(id -u ai-tools) systemd-run --user --scope --quiet --collect`;
  const places: Record<Place, string> = {
    run: startAsOperator(name, workingDirectory, command),
    session: `${session} ${command}`,
    "session-delegated": `${session} -p Delegate=yes ${command}`,
    "session-moved": `${session} ${move} --unit=moved-${name} ${command}`,
    "own-manager": `${ownManager} --collect ${command}`,
    "own-manager-always": `${ownManager} -p Restart=always -p RestartSec=0 -p StartLimitIntervalSec=0 ${command}`,
    "system-unit": `systemd-run --quiet --collect --unit=${unit} ${asAccount} ${command}`,
    "system-delegated": `systemd-run --quiet --collect --unit=${unit} --uid=ai-tools --gid=ai-tools -p Delegate=yes ${command}`,
    exec: `(cd / && ${asAccount} setsid --fork ${command} </dev/null >/dev/null 2>&1)`,
  };
  return `${places[place]} || exit`;
}

/** The front door waits for its session, so it is put into the background. */
function startAsOperator(name: string, project: string, command: string): string {
  const [program = "", ...words] = command.split(" ");
  const entryPoint = ["[Entrypoint]", `Exec=${program}`, `Arguments=${words.join(" ")}`].join("\\n");
  const asOperator = "runuser -u olga --";
  return `install -d -o olga -g olga ${project} && ${asOperator} ai-tools --claim ${project} &&
    printf '${entryPoint}\\n' >/etc/ai-tools/entrypoints.d/drill-${name}.conf && chmod 644 /etc/ai-tools/entrypoints.d/drill-${name}.conf &&
    (cd ${project} && ${asOperator} setsid --fork ai-tools --run drill-${name} </dev/null >/dev/null 2>&1)`;
}

function unitOf(name: string, place: Place): string | undefined {
  // Without a unit, or with one whose name ends with the number of whoever started it.
  if (place === "exec" || place === "run") return undefined;
  return place.startsWith("system-") ? `lab-stray-${name}.service` : `ai-tools-claude-code-${name}.service`;
}

/**
 * The operator's own process and another user's; a root daemon that acts for the account (effective uid only); and a
 * process of a container whose number is the account's: its pid namespace is made by a root process of this host, which
 * stays in the user namespace of all.
 */
function bystanderCommand(kind: Bystander): string {
  const unit = `systemd-run --quiet --collect --unit=lab-bystander-${kind}`;
  const counter = `${countersOnHost}/${kind}`;
  const polite = `${tempersOnHost}/polite ${counter} ${bystanderLifeS}`;
  const uid = "$(id -u ai-tools)";
  const commands: Record<Bystander, string> = {
    operator: `${unit} --uid=olga ${polite}`,
    "other-user": `${unit} --uid=ursula ${polite}`,
    "root-acting-for-account": `${unit} ${tempersOnHost}/acting ${counter} 0 ${uid} 0 ${bystanderLifeS}`,
    container: `${unit} unshare --pid --fork --mount-proc setpriv --reuid=${uid} --regid=${uid} --clear-groups ${polite}`,
  };
  return commands[kind];
}

/** Waits until of each payload as many processes count as belong to it. */
async function waitForCounters(host: LabHost, workers: ReadonlyMap<string, number>): Promise<void> {
  const limitMs = startLimitMs * patienceFor(host.hostName);
  const deadline = Date.now() + limitMs;
  for (;;) {
    const counting = (await readCounters(host)).filter((counter) => counter.ticks > 0);
    const countOf = (name: string) => counting.filter(({ payload }) => payload === name).length;
    const missing = [...workers].filter(([name, wanted]) => countOf(name) < wanted);
    if (missing.length === 0) return;
    if (Date.now() > deadline) {
      const found = missing.map(([name, wanted]) => `payload ${name}: ${countOf(name)} of ${wanted} processes count`);
      throw new Error(`${found.join(", ")} after ${limitMs} ms`);
    }
    await new Promise((done) => setTimeout(done, 50));
  }
}
