// SPDX-License-Identifier: Apache-2.0
// A host of the lab that is a virtual machine with a kernel of its own. Programs are run on it over one ssh connection, as
// root, by machine/enter.c, which makes them what `docker exec` would make them in a container.

import { join } from "node:path";
import type { RunOptions } from "./host.ts";
import type { HostName } from "./host-names.ts";
import { ReachedHost } from "./reached-host.ts";
import { quoted } from "./terminal.ts";

const ENTER = "/usr/local/sbin/lab-enter";
const LOOPBACK = "127.0.0.1";

/** Where a machine is reached. */
export interface MachineDoor {
  /** The folder of its key and of the shared connection, see `machineFolder`. */
  folder: string;
  /** On the loopback interface of this machine. */
  port: number;
}

export class MachineHost extends ReachedHost {
  readonly #door: MachineDoor;
  readonly #end: () => Promise<void>;

  /** See `bootMachine`. */
  constructor(hostName: HostName, name: string, door: MachineDoor, end: () => Promise<void>) {
    super(hostName, name);
    this.#door = door;
    this.#end = end;
  }

  protected override reach(argv: string[], options: RunOptions): [string, ...string[]] {
    const ssh = options.input === undefined ? ["-n", "-T"] : ["-T"];
    return sshCommand(this.#door, ssh, entering(options.user ?? "root", options.env ?? {}, argv));
  }

  override interactive(argv: string[], user: string, terminal: boolean): [string, ...string[]] {
    const atHome = ["sh", "-c", 'cd && exec "$@"', "sh", ...argv];
    const env = terminal ? { TERM: process.env.TERM ?? "vt100" } : {};
    return sshCommand(this.#door, [terminal ? "-tt" : "-T"], entering(user, env, atHome));
  }

  /** The end of the program that is the machine. */
  override kill9FromOutside(): Promise<void> {
    return this.#end();
  }

  /** It has a kernel, numbers and memory of its own: whatever it exhausts is not this machine's. */
  override pidsLimit(): number | undefined {
    return undefined;
  }

  override end(): Promise<void> {
    return this.#end();
  }
}

/** One command line for root's shell on the machine, which gives every word to the program as it is. */
export function entering(user: string, env: Record<string, string>, argv: string[]): string {
  const variables = Object.entries(env).map(([key, value]) => `${key}=${value}`);
  return ["exec", ENTER, ...[user, ...variables, "--", ...argv].map(quoted)].join(" ");
}

/** Uses the shared connection where it is open, and a new one otherwise. */
export function sshCommand(door: MachineDoor, options: string[], command: string): [string, ...string[]] {
  const settings = [
    "IdentitiesOnly=yes",
    "StrictHostKeyChecking=no",
    "UserKnownHostsFile=/dev/null",
    "BatchMode=yes",
    "ForwardX11=no",
    "LogLevel=ERROR",
    "EscapeChar=none",
    `ControlPath=${join(door.folder, "connection")}`,
  ];
  return [
    ...(["ssh", "-F", "none", "-i", join(door.folder, "key"), "-p", String(door.port)] as const),
    ...settings.flatMap((setting) => ["-o", setting]),
    ...options,
    `root@${LOOPBACK}`,
    ...(command === "" ? [] : ["--", command]),
  ];
}
