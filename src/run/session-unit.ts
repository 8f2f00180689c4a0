// SPDX-License-Identifier: Apache-2.0
// The unit of a session, as an argv of systemd-run: what a session may do and see is in this file alone. Pure: facts in,
// words out.

import { isBroughtIn } from "../claim/where.ts";
import { launcherPath, sessionHome } from "../ground/places.ts";
import { accountName } from "../stop/identity.ts";
import type { Confinement } from "./confinement.ts";
import type { EntryPoint } from "./entry-point.ts";
import { programs, projectInside, projectPlaces, sessionLimits } from "./places.ts";

/** Paths below a directory that only root can enter. */
export type Pipes = Readonly<Record<0 | 1 | 2, string>>;

export interface SessionUnit {
  /** `ai-tools-<entrypoint>-<pid>.service`. */
  unit: string;
  /** Of the account. */
  uid: number;
  entryPoint: EntryPoint;
  /** The caller's, behind the entry point's own. */
  arguments: readonly string[];
  project: string;
  device: number;
  inode: number;
  /** The project or a directory below it. */
  directory: string;
  /** The counter of stops when the gate was found open. */
  stops: number;
  /** A pty of its own, or the names of pipes for its input, output and error. */
  streams: "pty" | Pipes;
  /** What SELinux is to hold it in. */
  confinement: Confinement;
  /** Names of systemd's services in their directory, which it is not to reach. */
  services: readonly string[];
  /** `TERM` and the like, as far as the caller's are harmless words. */
  terminal: Readonly<Record<string, string>>;
}

/** Sockets through which something outside could be made to act: buses and PID 1's own. */
const inaccessible = ["-/run/dbus", "-/run/systemd/private"];

/** Where systemd's services listen beside the buses, the most of them by PID 1's hand and as root, each release others. */
export const serviceSockets = "/run/systemd";

/** The names there that are of services. */
export function servicesAmong(names: readonly string[]): string[] {
  return names.filter((name) => /^io\.system[A-Za-z0-9.]*$/.test(name)).sort();
}

/** Whether systemd's unit files can hold a path: a line break in one would begin a setting of its own at a reload. */
export function isHeldBySystemd(path: string): boolean {
  return !/[\x00-\x1f\x7f]/.test(path);
}

/** Whether a session sees the project by another path, because its own cannot be given to systemd. */
export function isRenamedInside(project: string): boolean {
  return isBroughtIn(project) && !isHeldBySystemd(project);
}

/** Where the project is mounted for PID 1 (project-place.ts). */
export function placePath(unit: string): string {
  return `${projectPlaces}/${unit}`;
}

/** Where the project is inside the session: its own path, unless that one cannot be made there. */
export function pathInside(project: string, path: string): string {
  return isRenamedInside(project) ? projectInside + path.slice(project.length) : path;
}

/** The name by which PID 1 starts what comes after the session. */
export function endedUnit(kind: "ended" | "failed", unit: string): string {
  return `ai-tools-${kind}@${unit.replace(/\.service$/, "")}.service`;
}

/** The whole command line, systemd-run's absolute path first. */
export function systemdRunCommand(session: SessionUnit): string[] {
  const { unit, uid, entryPoint, streams } = session;
  return [
    programs.systemdRun,
    "--quiet",
    "--wait",
    ...(streams === "pty" ? ["--pty"] : []),
    `--unit=${unit}`,
    `--slice=user-${uid}.slice`,
    `--uid=${accountName}`,
    `--gid=${accountName}`,
    `--description=${descriptionOf(entryPoint)}`,
    ...properties(session).flatMap((property) => ["-p", property]),
    ...Object.entries(environmentOf(session)).map(([name, value]) => `--setenv=${name}=${value}`),
    "--",
    ...commandLine(session).map(literal),
  ];
}

/** Never left to systemd: its own would be the command line, which PID 1 writes into a unit file as it is, line breaks too. */
function descriptionOf({ name, description }: EntryPoint): string {
  return description === "" ? `ai-tools session (${name})` : `ai-tools session (${name}): ${description}`;
}

/** systemd expands variables in a command line; a doubled sign stands for itself (systemd.service(5)). */
function literal(word: string): string {
  return word.replaceAll("$", "$$$$");
}

/**
 * The launcher (`ai-tools-session`) is the session's first step: inside its unit and before the agent's program it looks
 * once more at what `ai-tools-run` saw. It says what its arguments are.
 */
function commandLine(session: SessionUnit): string[] {
  const { confinement, entryPoint, project, directory } = session;
  return [
    launcherPath,
    confinement.held,
    pathInside(project, project),
    `${session.device}:${session.inode}`,
    String(session.stops),
    pathInside(project, directory),
    entryPoint.program,
    ...entryPoint.arguments,
    ...session.arguments,
  ];
}

/**
 * No path that anybody but root can change is in any of them, no working directory either: PID 1 resolves it as root, and
 * whatever it came to could be looked at through the first step's /proc/PID before that one compares anything.
 */
function properties({ unit, services, confinement, entryPoint, project, streams }: SessionUnit): string[] {
  return [
    // Asked for by name: without new privileges a domain that is not asked for is one that is not entered, in silence.
    ...(confinement.context === undefined ? [] : [`SELinuxContext=${confinement.context}`]),
    // Rights: nothing that a program on disk could add.
    "NoNewPrivileges=yes",
    "CapabilityBoundingSet=",
    "UMask=0007",
    // Sight: no homes, no files of others (the trees of `isBroughtIn`), no buses, nobody else's processes.
    "ProtectHome=tmpfs",
    "PrivateTmp=yes",
    "ProtectProc=invisible",
    `InaccessiblePaths=${[...inaccessible, ...services.map((name) => `-${serviceSockets}/${name}`)].join(" ")}`,
    ...bindOf(unit, project),
    `PrivateNetwork=${entryPoint.network ? "no" : "yes"}`,
    // Share of the host.
    `TasksMax=${sessionLimits.tasks}`,
    `MemoryHigh=${sessionLimits.memoryHigh}`,
    `LimitNOFILE=${sessionLimits.files}`,
    "LimitCORE=0",
    ...(streams === "pty" ? [] : streamsOf(streams)),
    // Its end. Two different units, since with the same one for both neither is told how the session ended.
    "IgnoreSIGPIPE=no",
    "TimeoutStopSec=10",
    `OnSuccess=${endedUnit("ended", unit)}`,
    `OnFailure=${endedUnit("failed", unit)}`,
  ];
}

/**
 * PID 1 opens them: a descriptor that is handed over comes through the bus, whose program SELinux lets have none of an
 * operator's, and through it a session would have the caller's own file.
 */
function streamsOf(pipes: Pipes): string[] {
  return [`StandardInput=file:${pipes[0]}`, `StandardOutput=file:${pipes[1]}`, `StandardError=file:${pipes[2]}`];
}

function bindOf(unit: string, project: string): string[] {
  if (!isBroughtIn(project)) return [];
  // The second path is made anew in an empty file system of root's.
  const escaped = pathInside(project, project).replace(/[^A-Za-z0-9_/.@+-]/g, (character) =>
    character.charCodeAt(0) > 0x7f ? character : `\\${character}`,
  );
  return [`BindPaths=${placePath(unit)}:${escaped}`];
}

/** A clean environment: nothing of the caller's but the kind of terminal, then what root wrote into the entry point. */
function environmentOf({ entryPoint, terminal }: SessionUnit): Record<string, string> {
  return {
    HOME: sessionHome,
    // The account has none in passwd, and agents run their commands with it.
    SHELL: "/bin/bash",
    LANG: "C.UTF-8",
    PATH: "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin",
    // The project belongs to the operator, and git takes nothing from another user's repository unless it is told to.
    // Every repository, since submodules, work trees and what is cloned in a session have directories of their own.
    GIT_CONFIG_COUNT: "1",
    GIT_CONFIG_KEY_0: "safe.directory",
    GIT_CONFIG_VALUE_0: "*",
    ...terminal,
    ...entryPoint.environment,
  };
}
