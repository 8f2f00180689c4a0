// SPDX-License-Identifier: Apache-2.0
// A host of the lab that is a container with systemd as PID 1, on the kernel of the machine that holds the lab. Programs
// are run on it by `docker exec`.

import { randomBytes } from "node:crypto";
import { readdirSync } from "node:fs";
import { isRoot } from "../machine.ts";
import type { Engine } from "./engine.ts";
import { pidsLimitInForce } from "./fence.ts";
import type { BootOptions, RunOptions } from "./host.ts";
import type { HostName } from "./host-names.ts";
import { identityOf, isLiving, type ProcessIdentity, readProc, signalProcess } from "./process-identity.ts";
import { ReachedHost } from "./reached-host.ts";

/** The label on every container of the lab: pid and start time of the process that made it. */
export const HOST_LABEL = "ai-tools-lab";
/** Where this system has no /proc: such a host is never taken for a leftover. */
export const NO_START_TIME = "unknown";

/** A capability that is missing from the bounding set fails loudly; a privileged host would hide that it is needed. */
const CAPABILITIES = [
  "SYS_ADMIN",
  "NET_ADMIN",
  "SYS_PTRACE",
  "DAC_READ_SEARCH",
  "AUDIT_CONTROL",
  "SYSLOG",
  "IPC_LOCK",
  "SYS_NICE",
];

export class ContainerHost extends ReachedHost {
  readonly #engine: Engine;
  readonly #init: ProcessIdentity | undefined;

  /** See `bootContainer`. */
  constructor(engine: Engine, hostName: HostName, name: string, init?: ProcessIdentity) {
    super(hostName, name);
    this.#engine = engine;
    this.#init = init;
  }

  protected override reach(argv: string[], options: RunOptions): [string, ...string[]] {
    const env = Object.entries(options.env ?? {}).flatMap(([key, value]) => ["--env", `${key}=${value}`]);
    const stdin = options.input === undefined ? [] : ["--interactive"];
    return this.#engine.argv(["exec", ...stdin, "--user", options.user ?? "root", ...env, this.name, ...argv]);
  }

  override interactive(argv: string[], user: string, terminal: boolean): [string, ...string[]] {
    const home = ["--workdir", user === "root" ? "/root" : `/home/${user}`];
    return this.#engine.argv(["exec", terminal ? "-it" : "-i", ...home, "--user", user, this.name, ...argv]);
  }

  /** SIGKILL to its PID 1, with which the kernel ends every process of its pid namespace. */
  override async kill9FromOutside(): Promise<void> {
    if (this.#killInit()) return;
    await this.#engine.docker(["kill", "--signal", "KILL", this.name]);
  }

  override pidsLimit(): number | undefined {
    return this.#init === undefined ? undefined : pidsLimitInForce(this.#init.pid);
  }

  override async end(): Promise<void> {
    const init = this.#init;
    this.#killInit();
    const { code, stderr } = await this.#engine.docker(["rm", "--force", "--volumes", this.name]);
    if (code !== 0 && !/No such container/i.test(stderr))
      throw new Error(`${this.name} could not be removed: ${stderr}`);
    if (init !== undefined && isLiving(init)) throw new Error(`${this.name}: its PID 1 (${init.pid}) is still alive`);
  }

  /** false: it is gone, or this process may not (an engine that belongs to somebody else, who then does it). */
  #killInit(): boolean {
    return isRoot() && this.#init !== undefined && signalProcess(this.#init, "SIGKILL");
  }
}

/**
 * Starts a host and waits until its systemd has started everything.
 * @param image see `ensureImage`
 * @throws when it does not come up, or when no limit on its processes is in force
 */
export async function bootContainer(
  engine: Engine,
  hostName: HostName,
  image: string,
  options: BootOptions = {},
): Promise<ContainerHost> {
  const name = `ai-tools-lab-${process.pid}-${randomBytes(3).toString("hex")}`;
  const started = await engine.docker(dockerRun(engine, hostName, image, name, options));
  try {
    if (started.code !== 0) throw new Error(`docker run ended with ${started.code}: ${started.stderr}`);
    const init = engine.local ? findInit(started.stdout.trim()) : undefined;
    const host = new ContainerHost(engine, hostName, name, init);
    await host.untilBooted();
    if (init !== undefined && host.pidsLimit() === undefined) {
      throw new Error(`no limit on processes is in force for ${name}: nothing hostile may run in it`);
    }
    return host;
  } catch (error) {
    await engine.docker(["rm", "--force", name]);
    throw error;
  }
}

function dockerRun(engine: Engine, hostName: HostName, image: string, name: string, options: BootOptions): string[] {
  const owner = identityOf(process.pid);
  return [
    ...["run", "--detach", "--name", name, "--hostname", `${hostName}-host`],
    ...["--label", `${HOST_LABEL}=${owner?.pid ?? process.pid}-${owner?.startTime ?? NO_START_TIME}`],
    ...["--network", "none", "--add-host", `${hostName}-host:127.0.1.1`],
    ...["--cgroupns", "private", "--stop-signal", "SIGRTMIN+3", "--env", "container=docker"],
    ...["--security-opt", "seccomp=unconfined", "--security-opt", "apparmor=unconfined"],
    ...["--tmpfs", "/run:exec,mode=755", "--tmpfs", "/run/lock"],
    ...CAPABILITIES.flatMap((capability) => ["--cap-add", capability]),
    ...(options.devices ?? []).flatMap((device) => ["--device-cgroup-rule", `${device} rwm`]),
    ...engine.limits,
    ...[image, "sh", "-c", "mount -o remount,rw /sys/fs/cgroup && exec /sbin/init"],
  ];
}

/**
 * The host's PID 1 as this machine sees it: the one process that is number 1 in the innermost of its pid namespaces and
 * sits in the container's cgroup.
 */
function findInit(containerId: string): ProcessIdentity | undefined {
  for (const entry of readdirSync("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    const numbers = /^NSpid:\s+(.*)$/m.exec(readProc(`/proc/${entry}/status`) ?? "")?.[1]?.split(/\s+/);
    if (numbers === undefined || numbers.length < 2 || numbers.at(-1) !== "1") continue;
    if (readProc(`/proc/${entry}/cgroup`)?.includes(containerId)) return identityOf(Number(entry));
  }
  return undefined;
}
