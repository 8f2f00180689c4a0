// SPDX-License-Identifier: Apache-2.0
// The lab as its users see it: hosts that are there for the length of one piece of work and gone afterwards, however it
// ends.

import { onExit } from "../cleanup.ts";
import { step } from "../progress.ts";
import { bootContainer, ContainerHost, HOST_LABEL, NO_START_TIME } from "./container-host.ts";
import { type Engine, ensureEngine, ordinaryEngine } from "./engine.ts";
import type { BootOptions, LabHost } from "./host.ts";
import { type HostName, kindOf } from "./host-names.ts";
import { ensureImage, IMAGE_NAME } from "./image.ts";
import { bootMachine, machineByName, sweepMachines } from "./machine.ts";
import { ensureMachine } from "./machine-image.ts";
import { isLiving } from "./process-identity.ts";
import { sweepPrivateEngines } from "./sweep.ts";

export interface LabOptions {
  /** One host for each; default: one bookworm container. */
  hosts?: HostName[];
  boot?: BootOptions;
}

/** Hosts can be booted on it one by one, for whoever has no single piece of work (a test runner's set-up). */
export interface OpenLab {
  /** Boots one more host; default: a bookworm container. */
  boot(hostName?: HostName, options?: BootOptions): Promise<LabHost>;
  /** A host that another process booted and holds. */
  existing(hostName: HostName, name: string): Promise<LabHost>;
  /** Makes the image of a host, or finds it in the cache. */
  prepare(hostName: HostName): Promise<void>;
  /** The engine of the containers, found or started when it is first needed: a machine needs none. */
  engine(): Promise<Engine>;
  /** Removes hosts whose makers are gone, as far as this lab could have had them. */
  sweep(): Promise<void>;
  /** Ends all hosts, then the engine. */
  end(): Promise<void>;
}

export interface Lab extends Pick<OpenLab, "boot"> {
  /** In the order of `LabOptions.hosts`. */
  hosts: [LabHost, ...LabHost[]];
}

/** Boots hosts, does the work, and ends hosts and engine, also when the work fails or the command is interrupted. */
export async function withLab<T>(options: LabOptions, work: (lab: Lab) => Promise<T>): Promise<T> {
  const lab = await openLab();
  try {
    const [first, ...more] = options.hosts ?? ["bookworm"];
    const hosts: [LabHost, ...LabHost[]] = [await lab.boot(first, options.boot)];
    for (const name of more) hosts.push(await lab.boot(name, options.boot));
    return await work({ hosts, boot: lab.boot });
  } finally {
    await lab.end();
  }
}

/** The caller ends it; an interrupted command ends it through its cleanups. */
export async function openLab(): Promise<OpenLab> {
  const hosts: LabHost[] = [];
  let starting: Promise<Engine> | undefined;
  let ending: Promise<void> | undefined;
  const engine = () => {
    starting ??= startEngine();
    return starting;
  };
  const endAll = async () => {
    forget();
    await Promise.all(hosts.map((host) => host.end()));
    await (await starting)?.end();
  };
  const end = () => {
    ending ??= endAll();
    return ending;
  };
  const forget = onExit(end, "the lab");
  const prepare = async (hostName: HostName) => void (await imageOf(hostName, engine));
  const boot = async (hostName: HostName = "bookworm", options: BootOptions = {}) => {
    const start = await imageOf(hostName, engine);
    const host = await step(`booting a ${hostName} host`, () => start(options));
    hosts.push(host);
    return host;
  };
  const existing = async (hostName: HostName, name: string) =>
    kindOf(hostName).kind === "machine"
      ? machineByName(hostName, name)
      : new ContainerHost(await engine(), hostName, name);
  const sweep = async () => {
    await sweepMachines();
    if (starting !== undefined) await sweepHosts(await starting);
  };
  return { boot, existing, prepare, engine, sweep, end };
}

async function startEngine(): Promise<Engine> {
  const engine = await step("container engine", ensureEngine);
  await sweepHosts(engine);
  return engine;
}

/** Makes sure that the image is there; answers with what boots a host from it. */
async function imageOf(
  hostName: HostName,
  engine: () => Promise<Engine>,
): Promise<(options: BootOptions) => Promise<LabHost>> {
  const { kind, suite } = kindOf(hostName);
  if (kind === "machine") {
    const image = await ensureMachine(hostName);
    return () => bootMachine(hostName, image);
  }
  const started = await engine();
  const image = await ensureImage(started, suite);
  return (options) => bootContainer(started, hostName, image, options);
}

/**
 * Removes what labs left behind whose process was killed outright: machines, private engines, and on an ordinary engine
 * their hosts, and the lab's images there. (A private engine's images are in the cache.)
 * @returns the names of what was removed
 */
export async function sweep(): Promise<string[]> {
  const engines = process.platform === "linux" ? [...(await sweepMachines()), ...(await sweepPrivateEngines())] : [];
  const ordinary = await ordinaryEngine();
  if (ordinary === undefined) return engines;
  return [...engines, ...(await sweepHosts(ordinary)), ...(await removeImages(ordinary))];
}

/** Removes hosts whose makers are gone (of a private engine too, where its holder asks). Returns their names. */
export async function sweepHosts(engine: Engine): Promise<string[]> {
  if (engine.kind === "inherited") return [];
  const format = `{{.Names}} {{.Label "${HOST_LABEL}"}}`;
  const { code, stdout } = await engine.docker(["ps", "--all", "--filter", `label=${HOST_LABEL}`, "--format", format]);
  if (code !== 0) return [];
  const swept: string[] = [];
  for (const [name, owner] of stdout.split("\n").map((line) => line.split(" "))) {
    const [pid, startTime] = (owner ?? "").split("-");
    if (!name || !pid || !startTime || startTime === NO_START_TIME || isLiving({ pid: Number(pid), startTime }))
      continue;
    await engine.docker(["rm", "--force", "--volumes", name]);
    swept.push(name);
  }
  return swept;
}

async function removeImages(engine: Engine): Promise<string[]> {
  const format = "{{.Repository}}:{{.Tag}}";
  const { stdout } = await engine.docker(["image", "ls", "--filter", `reference=${IMAGE_NAME}`, "--format", format]);
  const images = stdout.split("\n").filter((line) => line !== "");
  const removed: string[] = [];
  for (const image of images) {
    // One that a host of a running lab uses stays.
    if ((await engine.docker(["image", "rm", image])).code === 0) removed.push(image);
  }
  return removed;
}
