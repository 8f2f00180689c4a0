// SPDX-License-Identifier: Apache-2.0
// The lab as its users see it: hosts that are there for the length of one piece of work and gone afterwards, however it
// ends.

import { onExit } from "../cleanup.ts";
import { step } from "../progress.ts";
import { type Engine, ensureEngine, ordinaryEngine } from "./engine.ts";
import { type BootOptions, bootHost, HOST_LABEL, type LabHost, NO_START_TIME } from "./host.ts";
import { ensureImage, IMAGE_NAME, type Suite } from "./image.ts";
import { isLiving } from "./process-identity.ts";
import { sweepPrivateEngines } from "./sweep.ts";

export interface LabOptions {
  /** One host for each; default: one bookworm host. */
  suites?: Suite[];
  boot?: BootOptions;
}

export interface Lab {
  engine: Engine;
  /** In the order of `suites`. */
  hosts: [LabHost, ...LabHost[]];
  /** One more host. */
  boot(suite?: Suite, options?: BootOptions): Promise<LabHost>;
}

/** An engine on which hosts can be booted one by one, for whoever has no single piece of work (a test runner's set-up). */
export interface OpenLab {
  engine: Engine;
  boot(suite?: Suite, options?: BootOptions): Promise<LabHost>;
  /** Ends all hosts, then the engine. */
  end(): Promise<void>;
}

/** Boots hosts, does the work, and ends hosts and engine, also when the work fails or the command is interrupted. */
export async function withLab<T>(options: LabOptions, work: (lab: Lab) => Promise<T>): Promise<T> {
  const lab = await openLab();
  try {
    const [first, ...more] = options.suites ?? ["bookworm"];
    const hosts: [LabHost, ...LabHost[]] = [await lab.boot(first, options.boot)];
    for (const suite of more) hosts.push(await lab.boot(suite, options.boot));
    return await work({ engine: lab.engine, hosts, boot: lab.boot });
  } finally {
    await lab.end();
  }
}

/** Finds or starts the engine. The caller ends it; an interrupted command ends it through its cleanups. */
export async function openLab(): Promise<OpenLab> {
  const engine = await step("container engine", ensureEngine);
  await sweepHosts(engine);
  const hosts: LabHost[] = [];
  let ending: Promise<void> | undefined;
  const endAll = async () => {
    forget();
    await Promise.all(hosts.map((host) => host.end()));
    await engine.end();
  };
  const end = () => {
    ending ??= endAll();
    return ending;
  };
  const forget = onExit(end, "the lab");
  const boot = async (suite: Suite = "bookworm", options: BootOptions = {}) => {
    const image = await ensureImage(engine, suite);
    const host = await step(`booting a ${suite} host`, () => bootHost(engine, suite, image, options));
    hosts.push(host);
    return host;
  };
  return { engine, boot, end };
}

/**
 * Removes what labs left behind whose process was killed outright: private engines, and on an ordinary engine their
 * hosts, and the lab's images there. (A private engine's images are in the cache.)
 * @returns the names of what was removed
 */
export async function sweep(): Promise<string[]> {
  const engines = process.platform === "linux" ? await sweepPrivateEngines() : [];
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
