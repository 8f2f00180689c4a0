// SPDX-License-Identifier: Apache-2.0
// One throw-away host of the lab: a container with systemd as PID 1 and people on it, that the package is installed on
// and that a test or a drill acts on from outside.
//
//   await withLab({ suites: ["bookworm"] }, async ({ hosts: [host] }) => {
//     await host.installPackage((await buildPackage()).rpm);        // with dnf: scriptlets run; olga joins ai-ops
//     await host.enableLinger();                                    // the account's own manager runs from now on
//     await host.sh("systemd-run --uid=ai-tools ... sleep 99");     // throws with the output when it fails
//     const { code } = await host.run(["ai-tools", "--stop"], { user: "olga" });
//     const terminal = host.terminal(["ai-tools", "--stop"], { user: "olga" });
//     await terminal.waitFor(/\[Y\/n\]/);
//     terminal.type("\r");                                          // Enter; Ctrl-C is "\x03"; or: await terminal.hangUp()
//     const exitCode = await terminal.exit;
//   });
//
// `run` and `terminal` open no PAM session and land outside every user slice, as a stray does.

import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { isRoot } from "../machine.ts";
import type { Engine } from "./engine.ts";
import { pidsLimitInForce } from "./fence.ts";
import type { Suite } from "./image.ts";
import { identityOf, isLiving, type ProcessIdentity, readProc, signalProcess } from "./process-identity.ts";
import type { Outcome } from "./program.ts";
import { LabTerminal, onTerminal, quoted } from "./terminal.ts";

export type { Outcome } from "./program.ts";
export type { LabTerminal } from "./terminal.ts";

export interface RunOptions {
  /** Who runs it; default: root. */
  user?: string;
  /** Given on standard input, which is otherwise empty. Never a terminal: see `terminal`. */
  input?: string | Uint8Array;
  /** Longest wait in milliseconds, default 60 s. Then the call fails; the program on the host goes on. */
  timeoutMs?: number;
  env?: Record<string, string>;
}

export interface BootOptions {
  /** Devices of this machine that the host may use, by major:minor as in `c 10:229` (fuse) or `b 7:*` (loop). */
  devices?: string[];
}

/** The label on every container of the lab: pid and start time of the process that made it. */
export const HOST_LABEL = "ai-tools-lab";
/** Where this system has no /proc: such a host is never taken for a leftover. */
export const NO_START_TIME = "unknown";

/** `operator` is in ai-ops (once the package is installed) and may use sudo with the password `olga`; `ordinary` may nothing. */
export const accounts = { operator: "olga", ordinary: "ursula", sandbox: "ai-tools" } as const;

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
const BOOT_LIMIT_MS = 120_000;
const TERMINALS = "/run/lab-terminals";

export class LabHost {
  readonly suite: Suite;
  readonly name: string;
  readonly accounts = accounts;
  readonly #engine: Engine;
  readonly #init: ProcessIdentity | undefined;
  #terminals = 0;

  /** See `bootHost`. */
  constructor(engine: Engine, suite: Suite, name: string, init: ProcessIdentity | undefined) {
    this.#engine = engine;
    this.suite = suite;
    this.name = name;
    this.#init = init;
  }

  /** Runs a program to its end and answers with its exit code and output, whatever they are. */
  run(argv: string[], options: RunOptions = {}): Promise<Outcome> {
    const { input, timeoutMs } = options;
    return this.#engine.docker(this.#exec(argv, options), {
      ...(input === undefined ? {} : { input }),
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
    });
  }

  /**
   * Runs a POSIX shell script and answers with its standard output.
   * @throws with all its output when its exit code is not 0
   */
  async sh(script: string, options: RunOptions = {}): Promise<string> {
    const { code, stdout, stderr } = await this.run(["sh", "-c", script], options);
    if (code !== 0) throw new Error(`on ${this.name} (exit ${code}): ${script}\n${stdout}${stderr}`);
    return stdout;
  }

  /** Starts a program on a pseudo-terminal of its own, 40 rows of 120 columns. */
  terminal(argv: string[], options: Pick<RunOptions, "user" | "env"> = {}): LabTerminal {
    this.#terminals += 1;
    const pidFile = `${TERMINALS}/${this.#terminals}`;
    const command = this.#exec(["sh", "-c", onTerminal(argv, pidFile)], { ...options, input: "typed" });
    return new LabTerminal(this.#engine.argv(command), async () => {
      await this.run(["sh", "-c", `kill -KILL "$(cat ${pidFile})"`]);
    });
  }

  /** The command line that gives the person at this very terminal a shell or another program on the host. */
  interactive(argv: string[], user: string, terminal: boolean): [string, ...string[]] {
    const home = ["--workdir", user === "root" ? "/root" : `/home/${user}`];
    return this.#engine.argv(["exec", terminal ? "-it" : "-i", ...home, "--user", user, this.name, ...argv]);
  }

  /**
   * Copies one file of this machine to the host. Folders above it are made.
   * @param mode as chmod takes it, e.g. `0755`; it belongs to root
   */
  async copyIn(localPath: string, remotePath: string, mode = "0644"): Promise<void> {
    // Not `docker cp`: what that puts below a tmpfs such as /run is lost.
    const script = 'mkdir -p "$(dirname "$1")" && cat >"$1.part" && chmod "$2" "$1.part" && mv "$1.part" "$1"';
    const input = readFileSync(localPath);
    const { code, stderr } = await this.run(["sh", "-c", script, "sh", remotePath, mode], { input });
    if (code !== 0) throw new Error(`${localPath} could not be copied to ${this.name}:${remotePath}: ${stderr}`);
  }

  /** Copies one file of the host to this machine. */
  async copyOut(remotePath: string, localPath: string): Promise<void> {
    const encoded = await this.sh(`base64 ${quoted(remotePath)}`);
    writeFileSync(localPath, Buffer.from(encoded, "base64"));
  }

  /** Installs an RPM with dnf, from the file alone (no repository), and makes the operator one of the group `ai-ops`. */
  async installPackage(rpmPath: string): Promise<void> {
    const remote = `/root/${basename(rpmPath)}`;
    await this.copyIn(rpmPath, remote);
    await this.sh(`dnf install -y --nogpgcheck --disablerepo='*' --setopt=install_weak_deps=False ${quoted(remote)}`, {
      timeoutMs: 120_000,
    });
    await this.sh(`usermod --append --groups ai-ops ${accounts.operator}`);
  }

  /** Turns lingering on for the sandbox account and waits until its own manager runs. */
  async enableLinger(): Promise<void> {
    await this.sh(
      `loginctl enable-linger ${accounts.sandbox} && systemctl start user@$(id -u ${accounts.sandbox}).service`,
    );
  }

  /**
   * Ends the host at once, from outside, without needing a process or a number inside it: SIGKILL to its PID 1, with
   * which the kernel ends every process of its pid namespace.
   */
  async kill9FromOutside(): Promise<void> {
    if (this.#killInit()) return;
    await this.#engine.docker(["kill", "--signal", "KILL", this.name]);
  }

  /** The limit on processes that is in force around this host. */
  pidsLimit(): number | undefined {
    return this.#init === undefined ? undefined : pidsLimitInForce(this.#init.pid);
  }

  /** Ends the host and removes it. */
  async end(): Promise<void> {
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

  #exec(argv: string[], options: RunOptions): string[] {
    const env = Object.entries(options.env ?? {}).flatMap(([key, value]) => ["--env", `${key}=${value}`]);
    const stdin = options.input === undefined ? [] : ["--interactive"];
    return ["exec", ...stdin, "--user", options.user ?? "root", ...env, this.name, ...argv];
  }
}

/**
 * Starts a host and waits until its systemd has started everything.
 * @param image see `ensureImage`
 * @throws when it does not come up, or when no limit on its processes is in force
 */
export async function bootHost(
  engine: Engine,
  suite: Suite,
  image: string,
  options: BootOptions = {},
): Promise<LabHost> {
  const name = `ai-tools-lab-${process.pid}-${randomBytes(3).toString("hex")}`;
  const started = await engine.docker(dockerRun(engine, suite, image, name, options));
  try {
    if (started.code !== 0) throw new Error(`docker run ended with ${started.code}: ${started.stderr}`);
    const init = engine.local ? findInit(started.stdout.trim()) : undefined;
    const host = new LabHost(engine, suite, name, init);
    await waitUntilBooted(host);
    if (init !== undefined && host.pidsLimit() === undefined) {
      throw new Error(`no limit on processes is in force for ${name}: nothing hostile may run in it`);
    }
    return host;
  } catch (error) {
    await engine.docker(["rm", "--force", name]);
    throw error;
  }
}

function dockerRun(engine: Engine, suite: Suite, image: string, name: string, options: BootOptions): string[] {
  const owner = identityOf(process.pid);
  return [
    ...["run", "--detach", "--name", name, "--hostname", `${suite}-host`],
    ...["--label", `${HOST_LABEL}=${owner?.pid ?? process.pid}-${owner?.startTime ?? NO_START_TIME}`],
    ...[
      "--network",
      "none",
      "--add-host",
      `${suite}-host:127.0.1.1`,
      "--cgroupns",
      "private",
      "--stop-signal",
      "SIGRTMIN+3",
      "--env",
      "container=docker",
    ],
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

async function waitUntilBooted(host: LabHost): Promise<void> {
  const script = `until systemctl is-system-running --wait 2>&1 | grep -Eq '^(running|degraded)$'; do sleep 0.1; done
    mkdir -m 1777 ${TERMINALS}`;
  try {
    await host.sh(script, { timeoutMs: BOOT_LIMIT_MS });
  } catch (error) {
    const { stdout } = await host.run(["sh", "-c", "systemctl list-jobs; systemctl --failed; journalctl -b -n 30"], {
      timeoutMs: 20_000,
    });
    throw new Error(`${host.name} did not come up\n${stdout}`, { cause: error });
  }
}
