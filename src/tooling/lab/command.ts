// SPDX-License-Identifier: Apache-2.0
// `npm run lab`: a host with the package installed and two sessions running, and a shell on it as the operator, for
// trying by hand. It is gone when the shell ends.

import { spawn } from "node:child_process";
import type { CommandModule } from "yargs";
import { onExit } from "../cleanup.ts";
import { say, step } from "../progress.ts";
import { accounts, type LabHost } from "./host.ts";
import { type HostName, hostNames, kindOf } from "./host-names.ts";
import { withLab } from "./lab.ts";

export const command: CommandModule<object, { host: HostName }> = {
  command: "lab",
  describe: "boot a host with the package and two sessions on it, and open a shell there as the operator",
  builder: (line) =>
    line.option("host", { choices: hostNames, default: "bookworm" as HostName, describe: "which of the lab's hosts" }),
  handler: async ({ host: hostName }) => {
    // Here and not above, so that the other commands do not load what builds the package.
    const { buildPackage } = await import("../package/package.ts");
    const { rpm } = await buildPackage();
    const { buildPolicyPackage } = await import("../policy/package.ts");
    const { selinux, suite } = kindOf(hostName);
    const rpms = [rpm, ...(selinux ? [(await buildPolicyPackage(suite)).rpm] : [])];
    await withLab({ hosts: [hostName] }, async ({ hosts: [host] }) => {
      await step("installing the package", () => host.installPackage(...rpms));
      await step("starting two sessions", () => startSampleSessions(host));
      say(whatToTry(host));
      process.exitCode = await openShell(host);
    });
  },
};

/** One in a unit of PID 1, as `ai-tools --run` starts them, and one in the account's own manager. */
async function startSampleSessions(host: LabHost): Promise<void> {
  const { sandbox } = accounts;
  await host.sh("mkdir -p /srv/projects/shop /srv/projects/billing");
  await host.enableLinger();
  await host.sh(`systemd-run --quiet --uid=${sandbox} --slice=user-$(id -u ${sandbox}).slice \
    --unit=ai-tools-claude-code-101 -p WorkingDirectory=/srv/projects/shop -p NoNewPrivileges=yes sleep infinity`);
  await host.sh(`systemd-run --quiet --user -M ${sandbox}@.host --unit=ai-tools-codex-102 \
    -p WorkingDirectory=/srv/projects/billing sleep infinity`);
}

function whatToTry(host: LabHost): string {
  return `
This is ${host.name} (Debian ${host.suite}${host.selinux ? ", SELinux enforcing" : ""}), and you are ${accounts.operator}, an operator. Two sessions run. Try:
  ai-tools --stop               asks, then stops everything; no password
  ai-tools --stop --dry-run     asks for your password (${accounts.operator}): only the plain stop comes without one
  ai-tools --stop; echo $?      run it again: nothing is left
  systemd-cgls -u user.slice    what runs under the sandbox account
As root, from another terminal: ${host.interactive(["bash"], "root", true).join(" ")}
The host and everything on it are gone when you leave this shell.
`;
}

/** The exit code is the shell's own: 128+n after a signal. */
async function openShell(host: LabHost): Promise<number> {
  const onTerminal = process.stdin.isTTY === true && process.stdout.isTTY === true;
  const [program, ...rest] = host.interactive(["bash", "--login"], accounts.operator, onTerminal);
  const shell = spawn(program, rest, { stdio: "inherit" });
  const forget = onExit(() => void shell.kill(), "the shell");
  try {
    return await new Promise<number>((resolve, reject) => {
      shell.once("error", reject);
      shell.once("exit", (code) => resolve(code ?? 1));
    });
  } finally {
    forget();
  }
}
