// SPDX-License-Identifier: Apache-2.0
// What can be done on a host of the lab however it is reached, by running programs on it.

import { readFileSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { accounts, type LabHost, type RunOptions } from "./host.ts";
import { type HostName, kindOf, patienceFor } from "./host-names.ts";
import type { Suite } from "./image.ts";
import { type Outcome, runProgram } from "./program.ts";
import { LabTerminal, onTerminal, quoted } from "./terminal.ts";

// On a container; see patienceFor.
const RUN_LIMIT_MS = 60_000;
const BOOT_LIMIT_MS = 120_000;
const INSTALL_LIMIT_MS = 120_000;
const TERMINALS = "/run/lab-terminals";

export abstract class ReachedHost implements LabHost {
  readonly accounts = accounts;
  readonly hostName: HostName;
  readonly name: string;
  readonly kind: "container" | "machine";
  readonly selinux: boolean;
  readonly suite: Suite;
  #terminals = 0;

  constructor(hostName: HostName, name: string) {
    const { kind, selinux, suite } = kindOf(hostName);
    this.hostName = hostName;
    this.name = name;
    this.kind = kind;
    this.selinux = selinux;
    this.suite = suite;
  }

  /** The command line of this machine that runs a program on the host as `run` says. */
  protected abstract reach(argv: string[], options: RunOptions): [string, ...string[]];
  abstract interactive(argv: string[], user: string, terminal: boolean): [string, ...string[]];
  abstract kill9FromOutside(): Promise<void>;
  abstract pidsLimit(): number | undefined;
  abstract end(): Promise<void>;

  run(argv: string[], options: RunOptions = {}): Promise<Outcome> {
    const { input, timeoutMs = RUN_LIMIT_MS } = options;
    const limit = { timeoutMs: timeoutMs * patienceFor(this.hostName) };
    return runProgram(this.reach(argv, options), input === undefined ? limit : { ...limit, input });
  }

  async sh(script: string, options: RunOptions = {}): Promise<string> {
    const { code, stdout, stderr } = await this.run(["sh", "-c", script], options);
    if (code !== 0) throw new Error(`on ${this.name} (exit ${code}): ${script}\n${stdout}${stderr}`);
    return stdout;
  }

  terminal(argv: string[], options: Pick<RunOptions, "user" | "env"> = {}): LabTerminal {
    this.#terminals += 1;
    const pidFile = `${TERMINALS}/${this.#terminals}`;
    const command = this.reach(["sh", "-c", onTerminal(argv, pidFile)], { ...options, input: "typed" });
    const endMaster = async () => void (await this.run(["sh", "-c", `kill -KILL "$(cat ${pidFile})"`]));
    return new LabTerminal(command, endMaster, patienceFor(this.hostName));
  }

  async copyIn(localPath: string, remotePath: string, mode = "0644"): Promise<void> {
    // Not `docker cp`: what that puts below a tmpfs such as /run is lost.
    const label = this.selinux ? ' && restorecon -F "$1"' : "";
    const script = `mkdir -p "$(dirname "$1")" && cat >"$1.part" && chmod "$2" "$1.part" && mv "$1.part" "$1"${label}`;
    const input = readFileSync(localPath);
    const { code, stderr } = await this.run(["sh", "-c", script, "sh", remotePath, mode], { input });
    if (code !== 0) throw new Error(`${localPath} could not be copied to ${this.name}:${remotePath}: ${stderr}`);
  }

  async copyOut(remotePath: string, localPath: string): Promise<void> {
    const encoded = await this.sh(`base64 ${quoted(remotePath)}`);
    writeFileSync(localPath, Buffer.from(encoded, "base64"));
  }

  async installPackage(...rpmPaths: string[]): Promise<void> {
    const remotes: string[] = [];
    for (const path of rpmPaths) {
      remotes.push(`/root/${basename(path)}`);
      await this.copyIn(path, `/root/${basename(path)}`);
    }
    // rpm of trixie would enter rpm_script_t, which Debian's policy does not let root's domain enter; bookworm's has no such
    // plugin. What the package itself does about labels is tried on both.
    if (this.selinux) await this.sh("mkdir -p /etc/rpm && echo '%__transaction_selinux %{nil}' >/etc/rpm/macros.lab");
    const options = "-y --nogpgcheck --disablerepo='*' --setopt=install_weak_deps=False";
    await this.sh(`dnf install ${options} ${remotes.map(quoted).join(" ")}`, { timeoutMs: INSTALL_LIMIT_MS });
    await this.sh(`usermod --append --groups ai-ops ${accounts.operator}`);
  }

  async enableLinger(): Promise<void> {
    await this.sh(
      `loginctl enable-linger ${accounts.sandbox} && systemctl start user@$(id -u ${accounts.sandbox}).service`,
    );
  }

  /**
   * Waits until systemd has started everything.
   * @throws with what it says where it has not
   */
  async untilBooted(): Promise<void> {
    const script = `until systemctl is-system-running --wait 2>&1 | grep -Eq '^(running|degraded)$'; do sleep 0.1; done
    mkdir -m 1777 ${TERMINALS}`;
    try {
      await this.sh(script, { timeoutMs: BOOT_LIMIT_MS });
    } catch (error) {
      const { stdout } = await this.run(["sh", "-c", "systemctl list-jobs; systemctl --failed; journalctl -b -n 30"], {
        timeoutMs: 20_000,
      });
      throw new Error(`${this.name} did not come up\n${stdout}`, { cause: error });
    }
  }
}
