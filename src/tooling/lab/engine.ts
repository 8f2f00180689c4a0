// SPDX-License-Identifier: Apache-2.0
// The Docker engine that the lab's hosts run in: an ordinary one where one answers, otherwise a private one that this
// process starts inside the fence, with its own socket, data and namespaces, and that ends with it.

import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { onExit, Refusal } from "../cleanup.ts";
import { cacheDirectory, inProject, isRoot } from "../machine.ts";
import { lastLines, say } from "../progress.ts";
import { ensurePackages } from "../setup/apt.ts";
import { canFence, FENCE_PIDS, fenceMemory, makeFences } from "./fence.ts";
import { identityOf } from "./process-identity.ts";
import { type Outcome, type ProgramOptions, runProgram } from "./program.ts";
import { type EngineRecord, enginesFolder, sweepPrivateEngines } from "./sweep.ts";

/**
 * Names the run directory of a private engine that another process holds: its children (test workers, say) use that
 * engine instead of starting one each.
 */
export const ENGINE_VARIABLE = "AI_TOOLS_LAB_ENGINE";

export interface Engine {
  kind: "ordinary" | "private" | "inherited";
  /** Options of `docker run` that limit a host where no fence is around the engine. */
  limits: string[];
  /** Whether the containers' processes are this machine's own (an engine in a virtual machine has its own kernel). */
  local: boolean;
  /** What the children of this process need in their environment to use the same engine. */
  environment: Record<string, string>;
  /** Runs the Docker command line on this engine and answers with whatever it said. */
  docker(args: string[], options?: ProgramOptions): Promise<Outcome>;
  /** The command line itself, for a program that needs its pipes or a terminal. */
  argv(args: string[]): [string, ...string[]];
  /** Ends the engine, all its hosts and what it left, when this process started it; nothing otherwise. */
  end(): Promise<void>;
}

/** A dockerd on a busy machine with two slow cores; measured 1.5 s. */
const START_LIMIT_MS = 60_000;
/** The keeper itself gives up on a stubborn dockerd after some 30 s. */
const END_LIMIT_MS = 45_000;
const ANSWER_LIMIT_MS = 5_000;
/** Kept in the cache with the images imported already; a second lab at the same time takes the next one. */
const KEPT_DATA_ROOTS = ["engine-1", "engine-2", "engine-3"];
/** Exit code of the keeper: another engine uses this data root. */
const DATA_ROOT_TAKEN = 75;

/**
 * Finds or starts the engine.
 * @throws Refusal saying what is missing and how to get it, where neither is possible
 */
export async function ensureEngine(): Promise<Engine> {
  const inherited = process.env[ENGINE_VARIABLE];
  if (inherited) return inheritedEngine(inherited);
  const ordinary = await ordinaryEngine();
  if (ordinary) return ordinary;
  if (process.platform !== "linux" || !isRoot()) {
    throw new Refusal(
      "No Docker engine with cgroup v2 answers (docker info). Start one that you may use, or run this command as root " +
        "on Debian, where it starts a private one of its own.",
    );
  }
  await ensurePackages(["docker.io", "mmdebstrap"]);
  await sweepPrivateEngines();
  for (const name of KEPT_DATA_ROOTS) {
    const engine = await keptEngine(join(cacheDirectory("lab"), name));
    if (engine !== undefined) return engine;
  }
  return scratchEngine();
}

/** undefined: this data root is in use, or was of no use (a crash of the machine may leave it so) and is gone now. */
async function keptEngine(data: string): Promise<Engine | undefined> {
  try {
    return await privateEngine(data, false);
  } catch (error) {
    say(`${data} cannot be used and is removed: ${error instanceof Error ? error.message : error}`);
    await runProgram(["flock", "-n", `${data}.lock`, "rm", "-rf", data]);
    return undefined;
  }
}

function inheritedEngine(run: string): Engine {
  return engineAt({ kind: "inherited", run, limits: hostLimits(), local: true, end: async () => undefined });
}

/** The engine that the Docker command line finds by itself; undefined where none answers or it has no cgroup v2. */
export async function ordinaryEngine(): Promise<Engine | undefined> {
  const info = await dockerInfo();
  if (info === undefined || info.CgroupVersion !== "2") return undefined;
  const limits = [
    ...(info.PidsLimit ? ["--pids-limit", String(FENCE_PIDS)] : []),
    ...(info.MemoryLimit ? ["--memory", String(fenceMemory())] : []),
  ];
  const local = identityOf(1) !== undefined && info.Name === readFileSync("/proc/sys/kernel/hostname", "utf8").trim();
  return engineAt({ kind: "ordinary", run: undefined, limits, local, end: async () => undefined });
}

interface DockerInfo {
  CgroupVersion?: string;
  PidsLimit?: boolean;
  MemoryLimit?: boolean;
  Name?: string;
}

async function dockerInfo(): Promise<DockerInfo | undefined> {
  try {
    const { code, stdout } = await runProgram(["docker", "info", "--format", "{{json .}}"], {
      timeoutMs: ANSWER_LIMIT_MS,
    });
    return code === 0 ? (JSON.parse(stdout) as DockerInfo) : undefined;
  } catch (error) {
    // No docker program, or an engine that does not answer in time: the lab goes on with one of its own.
    if (error instanceof Error) return undefined;
    throw error;
  }
}

/** An engine whose data root goes with it, for when other labs use those that are kept. */
async function scratchEngine(): Promise<Engine> {
  const data = join(cacheDirectory("lab"), `engine-scratch-${process.pid}-${randomBytes(3).toString("hex")}`);
  const engine = await privateEngine(data, true);
  if (engine === undefined) throw new Error(`${data} is locked although this process made its name up`);
  return engine;
}

/** undefined: another engine uses this data root. */
async function privateEngine(data: string, scratch: boolean): Promise<Engine | undefined> {
  const name = `ai-tools-lab-${process.pid}-${randomBytes(3).toString("hex")}`;
  const run = join(enginesFolder, name);
  mkdirSync(run, { recursive: true, mode: 0o700 });
  const record: EngineRecord = {
    owner: identityOf(process.pid),
    keeper: undefined,
    name,
    data,
    scratch,
    fences: makeFences(name),
  };
  writeRecord(run, record);
  mkdirSync(data, { recursive: true, mode: 0o711 });
  const keeper = startKeeper(run, record);
  writeRecord(run, { ...record, keeper: identityOf(keeper.pid ?? 0) });
  const engine = privateEngineAt(run, keeper);
  const forget = onExit(engine.end, "the private Docker engine");
  try {
    if (await answers(run, keeper)) return engine;
    await engine.end();
    forget();
    return undefined;
  } catch (error) {
    await engine.end();
    forget();
    throw error;
  }
}

function writeRecord(run: string, record: EngineRecord): void {
  writeFileSync(join(run, "record.json"), `${JSON.stringify(record, null, 2)}\n`);
}

/** The pipe on the keeper's standard input is what ties the engine to this process: its end closes it, however it ends. */
function startKeeper(run: string, record: EngineRecord): ChildProcess {
  const keeper = spawn("sh", [inProject("src", "tooling", "lab", "keep-engine.sh"), "outer"], {
    stdio: ["pipe", "inherit", "inherit"],
    detached: true,
    cwd: "/",
    env: {
      // dockerd lies where the PATH of a plain `su` does not look.
      PATH: `${process.env.PATH ?? "/usr/bin:/bin"}:/usr/sbin:/sbin`,
      LAB_RUN: run,
      LAB_DATA: record.data,
      LAB_SCRATCH: record.scratch ? "1" : "0",
      LAB_CGROUP: record.name,
      LAB_FENCES: record.fences.join(" "),
    },
  });
  keeper.stdin?.on("error", () => undefined);
  return keeper;
}

function privateEngineAt(run: string, keeper: ChildProcess): Engine {
  let ending: Promise<void> | undefined;
  const end = () => {
    ending ??= endKeeper(keeper, run);
    return ending;
  };
  return engineAt({ kind: "private", run, limits: hostLimits(), local: true, end });
}

/** Where the engine has no fence to enter, each of its hosts gets limits of its own. */
function hostLimits(): string[] {
  return canFence() ? [] : ["--pids-limit", String(FENCE_PIDS), "--memory", String(fenceMemory())];
}

async function endKeeper(keeper: ChildProcess, run: string): Promise<void> {
  keeper.stdin?.end();
  await Promise.race([gone(keeper), pause(END_LIMIT_MS, undefined, { ref: false })]);
  // What the keeper could not end or remove: the same sweep that a later run would do.
  if (existsSync(run)) await sweepPrivateEngines(run);
}

async function gone(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  await new Promise<void>((resolve) => child.once("exit", () => resolve()));
}

/** Waits until dockerd answers; false when its data root is taken. */
async function answers(run: string, keeper: ChildProcess): Promise<boolean> {
  const deadline = performance.now() + START_LIMIT_MS;
  let log = "";
  while (performance.now() < deadline) {
    if (keeper.exitCode === DATA_ROOT_TAKEN) return false;
    if (keeper.exitCode !== null || keeper.signalCode !== null) {
      throw new Error(`the private engine's keeper ended with ${keeper.exitCode ?? keeper.signalCode}\n${log}`);
    }
    if (await ping(socketIn(run))) return true;
    log = readLog(run) ?? log;
    if (/failed to start daemon|Error starting daemon/i.test(log)) break;
    await pause(50);
  }
  throw new Error(`the private Docker engine does not answer:\n${lastLines(log)}`);
}

function readLog(run: string): string | undefined {
  const path = join(run, "dockerd.log");
  return existsSync(path) ? readFileSync(path, "utf8") : undefined;
}

function ping(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const asked = request({ socketPath, path: "/_ping", timeout: ANSWER_LIMIT_MS }, (answer) => {
      answer.resume();
      resolve(answer.statusCode === 200);
    });
    // Not there yet, or not listening yet: the caller asks again.
    asked.on("error", () => resolve(false));
    asked.end();
  });
}

function socketIn(run: string): string {
  return join(run, "docker.sock");
}

type EngineKind = Pick<Engine, "kind" | "limits" | "local" | "end"> & {
  /** The run directory of a private engine; undefined: the engine that the Docker command line finds by itself. */
  run: string | undefined;
};

function engineAt({ kind, run, limits, local, end }: EngineKind): Engine {
  const engine = run === undefined ? [] : ["--host", `unix://${socketIn(run)}`];
  const argv = (args: string[]): [string, ...string[]] => ["docker", ...engine, ...args];
  const environment: Record<string, string> = run === undefined ? {} : { [ENGINE_VARIABLE]: run };
  return { kind, limits, local, environment, argv, end, docker: (args, options) => runProgram(argv(args), options) };
}
