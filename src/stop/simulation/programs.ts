// SPDX-License-Identifier: Apache-2.0
// The programs that a stop starts beside itself (systemctl, logger, the recorder), each of which may be missing, hang or
// fail, and what PID 1 does when systemctl asks for the account's manager or runtime directory.

import { type Child, ENOENT, type Errno, SIGKILL } from "../kernel.ts";
import { accountUid, managerPath, plantedInHome, plantedInRuntime, runtimeDirectory, slicePath } from "./account.ts";
import { ensureCgroup, findCgroup, isBraked, isFrozen, membersBelow } from "./cgroups.ts";
import type { Process } from "./processes.ts";
import { kill } from "./signals.ts";
import type { World } from "./world.ts";

export type Health = "works" | "missing" | "hangs" | "fails" | "silent";

export interface ProgramOptions {
  systemctl: Health | "masked" | "busy-twice";
  logger: Health;
  recorder: Health;
  /** systemd 252 leaves `user-runtime-dir@` failed after a kill at the slice, 257 active. */
  generation: 252 | 257;
}

export const healthyPrograms: ProgramOptions = {
  systemctl: "works",
  logger: "works",
  recorder: "works",
  generation: 257,
};

/** What PID 1 and the programs remember of one world. */
export class Services {
  readonly world: World;
  readonly options: ProgramOptions;
  /** Everything that recorders were given. */
  recorded = "";
  /** Words of every program that was started. */
  readonly started: string[][] = [];
  runtimeState: "active" | "failed" | "inactive" = "active";
  #busyAnswers = 2;

  constructor(world: World, options: ProgramOptions) {
    this.world = world;
    this.options = options;
  }

  startProgram(helper: Process, argv: readonly string[]): Child | Errno {
    this.started.push([...argv]);
    const name = (argv[0] ?? "").split("/").pop() ?? "";
    const health = name === "systemctl" ? this.options.systemctl : name === "logger" ? this.options.logger : "works";
    const child = this.#launch(helper, name, health);
    if (child instanceof Program && health !== "hangs") {
      if (health === "fails" || health === "silent") child.endAfter(3_000, health === "fails" ? 1 : 0);
      else if (name === "systemctl") this.#systemctl(child, argv.slice(1));
      else if (name === "logger") child.endWhenClosed(0);
      else child.endAfter(2_000, 0);
    }
    return child;
  }

  startRecorder(helper: Process): Child | Errno {
    const health = this.options.recorder;
    this.started.push(["recorder"]);
    const child = this.#launch(helper, "recorder", health);
    if (child instanceof Program && health !== "hangs") {
      child.onClose = () => {
        if (health !== "works") return;
        this.recorded += child.sent;
        child.say("done\n");
      };
      child.endWhenClosed(health === "works" ? 0 : 1);
    }
    return child;
  }

  /** After a kill at the slice the manager is gone and the runtime directory's unit knows it, or not. */
  noticeKill(): void {
    if (this.options.generation === 252 && this.runtimeState === "active") this.runtimeState = "failed";
  }

  #launch(helper: Process, name: string, health: string): Program | Errno {
    if (health === "missing") return ENOENT;
    const process = this.world.fork(helper, { owner: "helper", comm: name, uids: [0, 0, 0, 0] });
    return process === undefined ? 11 : new Program(this.world, process);
  }

  #systemctl(child: Program, words: readonly string[]): void {
    const plain = words.filter(
      (word, index) => !word.startsWith("-") && words[index - 1] !== "-p" && words[index - 1] !== "-n",
    );
    const [verb, ...units] = plain;
    if (verb === "show") child.say(this.#show(words, units));
    const durationUs = verb === "show" ? 9_000 : this.world.random.around(25_000);
    this.world.timeline.after(durationUs, () => {
      if (verb === "start") this.#start(child, units.join(" "));
      else if (verb === "stop") this.#stop(child, units.join(" "));
      else if (verb === "reset-failed") this.#resetFailed(child, units.join(" "));
      else child.end(verb === "show" ? 0 : 3);
    });
  }

  #show(words: readonly string[], units: readonly string[]): string {
    const valueOnly = words.includes("--value");
    const one = (unit: string) => (valueOnly ? "/srv/project\n" : `Id=${unit}\nWorkingDirectory=/srv/project\n`);
    return units.map(one).join("\n");
  }

  #resetFailed(child: Program, units: string): void {
    if (units.includes("user-runtime-dir@") && this.runtimeState === "failed") this.runtimeState = "inactive";
    child.end(0);
  }

  #stop(child: Program, units: string): void {
    if (units.includes("user-runtime-dir@") && this.runtimeState === "active") {
      this.runtimeState = "inactive";
      this.world.files.removeAll(runtimeDirectory);
      const manager = findCgroup(this.world.root, managerPath);
      if (manager !== undefined) for (const process of membersBelow(manager)) kill(this.world, process.pid, SIGKILL);
    }
    child.end(0);
  }

  #start(child: Program, units: string): void {
    const slice = findCgroup(this.world.root, slicePath);
    if (slice !== undefined && isFrozen(slice)) return;
    if (slice !== undefined && isBraked(slice)) child.end(1);
    else if (units.includes("user-runtime-dir@")) {
      this.#makeRuntimeDirectory();
      child.end(0);
    } else if (this.options.systemctl === "masked") child.end(1, "Unit is masked.\n");
    else if (this.options.systemctl === "busy-twice" && this.#busyAnswers-- > 0)
      child.end(1, "Device or resource busy\n");
    else {
      this.#startManager();
      child.end(0);
    }
  }

  #makeRuntimeDirectory(): void {
    this.runtimeState = "active";
    this.world.files.directory(runtimeDirectory, accountUid, 0o700);
  }

  /** The manager runs whatever it finds planted where it reads its units. */
  #startManager(): void {
    if (this.runtimeState !== "active") this.#makeRuntimeDirectory();
    const { world } = this;
    const cgroup = ensureCgroup(world.root, `${managerPath}/init.scope`);
    const birth = { owner: "account", cgroup, newcomer: true } as const;
    const uids = [accountUid, accountUid, accountUid, accountUid] as const;
    const manager = world.spawn(world.init, { ...birth, uids, comm: "systemd", lineage: "restored", restored: true });
    if (manager === undefined) return;
    world.spawn(manager, { ...birth, comm: "(sd-pam)", restored: true });
    for (const path of [plantedInRuntime, plantedInHome]) {
      if (world.files.node(path) === undefined) continue;
      const app = ensureCgroup(world.root, `${managerPath}/app.slice/planted.service`);
      world.spawn(manager, { owner: "account", cgroup: app, comm: "planted", lineage: "planted", restored: false });
    }
  }
}

/** One started program as the helper sees it. */
class Program implements Child {
  sent = "";
  onClose: (() => void) | undefined;
  readonly #world: World;
  readonly #process: Process;
  #code: number | undefined;
  #output = "";
  #codeWhenClosed: number | undefined;

  constructor(world: World, process: Process) {
    this.#world = world;
    this.#process = process;
    process.onDeath = () => {
      this.#code ??= 128 + SIGKILL;
    };
  }

  end(code: number, output = ""): void {
    if (this.#process.phase !== "alive") return;
    this.#output += output;
    this.#code = code;
    this.#world.die(this.#process);
  }

  endAfter(us: number, code: number): void {
    this.#world.timeline.after(us, () => this.end(code));
  }

  endWhenClosed(code: number): void {
    this.#codeWhenClosed = code;
  }

  say(output: string): void {
    this.#output += output;
  }

  exitCode(): number | undefined {
    this.#world.timeline.advance(2);
    return this.#code;
  }

  send(text: string): void {
    this.#world.timeline.advance(2);
    this.sent += text;
  }

  sentAll(): boolean {
    return true;
  }

  closeInput(drop = false): void {
    const code = this.#codeWhenClosed;
    if (code === undefined) return;
    this.#world.timeline.after(drop ? 100 : 2_000, () => {
      if (!drop) this.onClose?.();
      this.end(code);
    });
  }

  output(): string {
    return this.#output;
  }

  abandon(): void {
    kill(this.#world, this.#process.pid, SIGKILL);
  }
}
