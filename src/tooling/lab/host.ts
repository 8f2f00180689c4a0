// SPDX-License-Identifier: Apache-2.0
// One throw-away host of the lab, with systemd as PID 1 and people on it, that the package is installed on and that a test
// or a drill acts on from outside: a container (container-host.ts) or a virtual machine (machine-host.ts).
//
//   await withLab({ hosts: ["bookworm-selinux"] }, async ({ hosts: [host] }) => {
//     await host.installPackage((await buildPackage()).rpm);        // with dnf: scriptlets run; olga joins ai-ops
//     await host.enableLinger();                                    // the account's own manager runs from now on
//     await host.sh("systemd-run --uid=ai-tools ... sleep 99");     // throws with the output when it fails
//     const { code } = await host.run(["ai-tools", "--stop"], { user: "olga" });
//     const terminal = host.terminal(["ai-tools", "--stop"], { user: "olga" });
//     await terminal.waitFor(/\[Y\/n\]/);
//     terminal.type("\r");                                          // Enter; Ctrl-C is "\x03"; or: await terminal.hangUp()
//     const exitCode = await terminal.exit;
//   });

import type { HostName } from "./host-names.ts";
import type { Suite } from "./image.ts";
import type { Outcome } from "./program.ts";
import type { LabTerminal } from "./terminal.ts";

export type { Outcome } from "./program.ts";
export type { LabTerminal } from "./terminal.ts";

export interface RunOptions {
  /** Who runs it; default: root. */
  user?: string;
  /** Given on standard input, which is otherwise empty. Never a terminal: see `terminal`. */
  input?: string | Uint8Array;
  /**
   * Longest wait in milliseconds, default 60 s; on a virtual machine so many times as long as `patienceFor` says. Then the
   * call fails; the program on the host goes on.
   */
  timeoutMs?: number;
  env?: Record<string, string>;
}

export interface BootOptions {
  /**
   * Devices of this machine that a container may use, by major:minor as in `c 10:229` (fuse) or `b 7:*` (loop). A virtual
   * machine has its own.
   */
  devices?: string[];
}

/** `operator` is in ai-ops (once the package is installed) and may use sudo with the password `olga`; `ordinary` may nothing. */
export const accounts = { operator: "olga", ordinary: "ursula", sandbox: "ai-tools" } as const;

export interface LabHost {
  /** Which of the lab's hosts this is. */
  readonly hostName: HostName;
  readonly kind: "container" | "machine";
  /** Whether SELinux enforces here. */
  readonly selinux: boolean;
  /** The Debian release of everything but the kernel. */
  readonly suite: Suite;
  /** Of this very host; nobody else has it at the same time. */
  readonly name: string;
  readonly accounts: typeof accounts;

  /**
   * Runs a program to its end and answers with its exit code and output, whatever they are.
   *
   * On every kind of host the same: no PAM session is opened; the program leads a session of its own without a terminal, at
   * `/`, in the root of all cgroups (outside every user slice, as a stray), with the groups that /etc/group has for the
   * person, and an environment of PATH and HOME beside `env`. Where SELinux enforces it runs in the context that a login
   * of the person would have (Debian: unconfined_u:unconfined_r:unconfined_t).
   */
  run(argv: string[], options?: RunOptions): Promise<Outcome>;

  /**
   * Runs a POSIX shell script and answers with its standard output.
   * @throws with all its output when its exit code is not 0
   */
  sh(script: string, options?: RunOptions): Promise<string>;

  /** Starts a program on a pseudo-terminal of its own, 40 rows of 120 columns; otherwise like `run`. */
  terminal(argv: string[], options?: Pick<RunOptions, "user" | "env">): LabTerminal;

  /** The command line that gives the person at this very terminal a shell or another program on the host. */
  interactive(argv: string[], user: string, terminal: boolean): [string, ...string[]];

  /**
   * Copies one file of this machine to the host. Folders above it are made. Where SELinux enforces it gets its place's label.
   * @param mode as chmod takes it, e.g. `0755`; it belongs to root
   */
  copyIn(localPath: string, remotePath: string, mode?: string): Promise<void>;

  /** Copies one file of the host to this machine. */
  copyOut(remotePath: string, localPath: string): Promise<void>;

  /**
   * Installs RPMs in one go with dnf, from the files alone (no repository), and makes the operator one of the group
   * `ai-ops`.
   */
  installPackage(...rpmPaths: string[]): Promise<void>;

  /** Turns lingering on for the sandbox account and waits until its own manager runs. */
  enableLinger(): Promise<void>;

  /** Ends the host at once, from outside, without needing a process or a number inside it. */
  kill9FromOutside(): Promise<void>;

  /** The limit on processes that is in force around this host; undefined where there is none or it cannot be told. */
  pidsLimit(): number | undefined;

  /** Ends the host and removes it. */
  end(): Promise<void>;
}
