// SPDX-License-Identifier: Apache-2.0
// Boots virtual machines and ends them: qemu on a disk image that nobody writes to, a key made for the run, one shared
// connection. The kernel ends qemu with the process that started it, however that ends; what is left of a killed lab is a
// folder, which the next one removes.

import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { freemem, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { onExit, Refusal } from "../cleanup.ts";
import { inProject, isRoot } from "../machine.ts";
import { lastLines } from "../progress.ts";
import { ensurePackages } from "../setup/apt.ts";
import { packagesFor } from "../setup/packages.ts";
import { type HostName, kindOf } from "./host-names.ts";
import { type MachineDoor, MachineHost, sshCommand } from "./machine-host.ts";
import type { MachineImage } from "./machine-image.ts";
import { identityOf, isLiving, type ProcessIdentity, signalProcess } from "./process-identity.ts";
import { runProgram } from "./program.ts";

/** `1`: use this machine's hardware acceleration. Not by itself: it may be there and hang a guest's kernel all the same. */
const KVM_VARIABLE = "AI_TOOLS_LAB_KVM";
/** Of each machine, in MiB. */
const MEMORY_MIB = 2_048;
/** What qemu itself takes beside it, and what this machine needs to go on. */
const SPARE_MIB = 1_024;
const PROCESSORS = 2;
/** To the first answer over ssh: some 20 s where nobody else works, and ten times that on a busy machine. */
const BOOT_LIMIT_MS = 420_000;
const END_LIMIT_MS = 20_000;
const PORT_TRIES = 5;

interface MachineRecord {
  /** The process that holds the machine. */
  owner: ProcessIdentity | undefined;
  qemu: ProcessIdentity | undefined;
  port: number;
}

/** One folder per machine. For root it is gone with the next boot, like the processes it tells of. */
export function machinesFolder(): string {
  return isRoot() ? "/run/ai-tools-lab-machines" : join(tmpdir(), `ai-tools-lab-machines-${process.getuid?.()}`);
}

/** How many machines this one has memory for, beside what runs already. */
export function machinesThatFit(): number {
  const meminfo = existsSync("/proc/meminfo") ? readFileSync("/proc/meminfo", "utf8") : "";
  const availableKib = Number(/^MemAvailable:\s+(\d+) kB$/m.exec(meminfo)?.[1] ?? freemem() / 1024);
  return Math.floor((availableKib / 1024 - SPARE_MIB) / (MEMORY_MIB + SPARE_MIB / 2));
}

/**
 * Starts a machine on a throw-away copy of its disk and waits until its systemd has started everything.
 * @param image see `ensureMachine`
 * @throws when it does not come up, with the end of its console
 */
export async function bootMachine(hostName: HostName, image: MachineImage): Promise<MachineHost> {
  await ensurePackages(packagesFor.machines);
  await sweepMachines();
  if (machinesThatFit() < 1)
    throw new Refusal(`This machine has not enough free memory for ${hostName}: ${MEMORY_MIB + SPARE_MIB} MiB.`);
  const name = `${hostName}-${process.pid}-${randomBytes(3).toString("hex")}`;
  const folder = join(machinesFolder(), name);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  await runProgram(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f", join(folder, "key")]);
  const key = readFileSync(join(folder, "key.pub"), "utf8").split(" ")[1] ?? "";
  const { qemu, port } = await startQemu(folder, hostName, image, key);
  const identity = identityOf(qemu.pid ?? 0);
  const end = async () => {
    forget();
    await endMachine(folder, name, identity);
  };
  // Also while it boots: whoever interrupts a lab would not wait for that.
  const forget = onExit(end, name);
  try {
    const door = { folder, port };
    await untilItAnswers(door, qemu);
    openConnection(door);
    const host = new MachineHost(hostName, name, door, end);
    await host.untilBooted();
    return host;
  } catch (error) {
    const console = lastLines(textOf(join(folder, "console.log")));
    await end();
    throw new Error(`${name} did not come up. The end of its console:\n${console}`, { cause: error });
  }
}

/** A machine that another process of this one holds; it is not ended by this one. */
export function machineByName(hostName: HostName, name: string): MachineHost {
  const folder = join(machinesFolder(), name);
  const { port } = JSON.parse(readFileSync(join(folder, "record.json"), "utf8")) as MachineRecord;
  return new MachineHost(hostName, name, { folder, port }, async () => undefined);
}

/** Tries another port where somebody else was quicker. */
async function startQemu(folder: string, hostName: HostName, image: MachineImage, key: string) {
  for (let tries = 1; ; tries += 1) {
    const port = await freePort();
    const log = openSync(join(folder, "qemu.log"), "w");
    const argv = [...tied(), "qemu-system-x86_64", ...qemuOptions(folder, hostName, image, key, port)];
    // TMPDIR: the throw-away copy is a file without a name there, and /tmp may be memory.
    const env = { ...process.env, TMPDIR: "/var/tmp" };
    const qemu = spawn(argv[0] ?? "", argv.slice(1), { stdio: ["ignore", log, log], detached: true, env });
    await once(qemu, "spawn");
    const record: MachineRecord = { owner: identityOf(process.pid), qemu: identityOf(qemu.pid ?? 0), port };
    writeFileSync(join(folder, "record.json"), `${JSON.stringify(record)}\n`);
    await Promise.race([once(qemu, "exit"), pause(1_000)]);
    if (isRunning(qemu)) return { qemu, port };
    const said = textOf(join(folder, "qemu.log"));
    if (tries >= PORT_TRIES || !/host forwarding rule/.test(said)) throw new Error(`qemu has ended: ${said}`);
  }
}

/** The kernel ends the program together with this process, also when that is killed outright. */
function tied(): string[] {
  return ["setpriv", "--pdeathsig", "KILL"];
}

function qemuOptions(folder: string, hostName: HostName, image: MachineImage, key: string, port: number): string[] {
  const accelerated = process.env[KVM_VARIABLE] === "1";
  const selinux = kindOf(hostName).selinux ? "security=selinux selinux=1 enforcing=1" : "selinux=0";
  const start = `root=/dev/vda rw console=ttyS0 net.ifnames=0 audit_backlog_limit=8192 random.trust_cpu=on ${selinux}`;
  return [
    ...["-name", hostName, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"],
    ...(accelerated ? ["-accel", "kvm", "-cpu", "host"] : ["-accel", "tcg,thread=multi", "-cpu", "max"]),
    ...["-smp", String(PROCESSORS), "-m", String(MEMORY_MIB)],
    ...["-kernel", image.kernel, "-initrd", image.initrd],
    ...["-append", `${start} systemd.show_status=false modprobe.blacklist=kvm_amd,powernow_k8 lab.key=${key}`],
    ...["-drive", `file=${image.disk},if=virtio,format=raw,cache=unsafe,snapshot=on`],
    ...["-device", "virtio-rng-pci"],
    // No way out of the machine, and one way in, on the loopback interface.
    ...["-netdev", `user,id=lab,restrict=on,hostfwd=tcp:127.0.0.1:${port}-:22`, "-device", "virtio-net-pci,netdev=lab"],
    ...["-serial", `file:${join(folder, "console.log")}`],
  ];
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}

async function untilItAnswers(door: MachineDoor, qemu: ChildProcess): Promise<void> {
  const deadline = performance.now() + BOOT_LIMIT_MS;
  const asked = sshCommand(door, ["-n", "-T", "-o", "ConnectTimeout=60"], "exit 42");
  for (;;) {
    const { code, stderr } = await runProgram(asked, { timeoutMs: 90_000 });
    if (code === 42) return;
    if (!isRunning(qemu)) throw new Error(`qemu has ended: ${textOf(join(door.folder, "qemu.log"))}`);
    if (performance.now() > deadline) throw new Error(`no answer over ssh: ${stderr}`);
    await pause(500);
  }
}

/** Every call goes through it, which takes the time of a fork there instead of that of a handshake. */
function openConnection(door: MachineDoor): void {
  const [program, ...rest] = [...tied(), ...sshCommand(door, ["-n", "-N", "-T", "-o", "ControlMaster=yes"], "")];
  spawn(program ?? "", rest, { stdio: "ignore", detached: true }).unref();
}

function isRunning(child: ChildProcess): boolean {
  return child.exitCode === null && child.signalCode === null;
}

/** Ends qemu and removes its folder; the console of a machine is kept for whoever wonders why. */
async function endMachine(folder: string, name: string, qemu: ProcessIdentity | undefined): Promise<void> {
  const deadline = performance.now() + END_LIMIT_MS;
  while (qemu !== undefined && isLiving(qemu)) {
    signalProcess(qemu, "SIGKILL");
    if (performance.now() > deadline) throw new Error(`${name}: qemu (${qemu.pid}) is still alive`);
    await pause(50);
  }
  const console = join(folder, "console.log");
  if (existsSync(console)) {
    mkdirSync(inProject("build", "logs"), { recursive: true });
    writeFileSync(inProject("build", "logs", `console-${name.replace(/-\d+-[0-9a-f]+$/, "")}.log`), textOf(console));
  }
  rmSync(folder, { recursive: true, force: true });
}

/** Removes what machines left whose holders are gone. Returns their names. */
export async function sweepMachines(): Promise<string[]> {
  const swept: string[] = [];
  for (const name of existsSync(machinesFolder()) ? readdirSync(machinesFolder()) : []) {
    const folder = join(machinesFolder(), name);
    const record = recordIn(folder);
    if (record === undefined || (record.owner !== undefined && isLiving(record.owner))) continue;
    await endMachine(folder, name, record.qemu);
    swept.push(name);
  }
  return swept;
}

/** undefined: a lab is just making it, or just removing it. */
function recordIn(folder: string): MachineRecord | undefined {
  try {
    return JSON.parse(readFileSync(join(folder, "record.json"), "utf8")) as MachineRecord;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT" || error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function textOf(path: string): string {
  return existsSync(path) ? readFileSync(path, "utf8") : "";
}
