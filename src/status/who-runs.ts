// SPDX-License-Identifier: Apache-2.0
// Who of the account is at work: sessions and plumbing from the files of its slice, strays from a census. Both are
// readable by everybody, unless the host hides processes; then it is unknown, and never nobody.

import type { SessionRecord } from "../ground/records.ts";
import { readStatus, takeCensus } from "../stop/census.ts";
import type { Identity } from "../stop/identity.ts";
import { ENODEV, ENOENT, EOPNOTSUPP, ESRCH, isErrno, type KernelView } from "../stop/kernel.ts";
import { printable, printableWord } from "../stop/printable.ts";
import { decimal, parseCgroupPath, parsePopulated } from "../stop/proc-files.ts";
import { isInSlice, type Slice } from "../stop/slice.ts";
import type { Plumbing, RunningSession, Stray } from "./facts.ts";

/** A look is for a person who waits: at most so long, and so many cgroups. */
const lookLimits = { censusMs: 2_000, pathsMs: 1_000, cgroups: 4_000 } as const;

const sessionForm = /^ai-tools-[a-z0-9-]+-[0-9]+\.service$/;

/** A unit of the slice and how many processes it has; undefined: nobody could tell what is in the slice. */
export interface SliceContent {
  sessions: RunningSession[];
  plumbing: Plumbing[];
}

/** What is in the slice; `records` are root's, of sessions that may run. */
export function lookIntoSlice(
  view: KernelView,
  slice: Slice,
  uid: number,
  records: readonly SessionRecord[],
): SliceContent | undefined {
  const units = unitsOf(view, slice.directory);
  if (units === undefined) return undefined;
  const content: SliceContent = { sessions: [], plumbing: [] };
  const budget = { cgroups: lookLimits.cgroups };
  for (const unit of units) {
    const directory = `${slice.directory}/${unit}`;
    const count = countProcesses(view, directory, budget);
    if (count.processes === 0 && !count.atLeast) continue;
    const seen = {
      unit,
      processes: count.known ? count.processes : null,
      atLeast: count.atLeast,
      memory: memoryOf(view, directory),
    };
    if (sessionForm.test(unit))
      content.sessions.push({
        ...seen,
        ...ofRecord(
          view,
          records.find((record) => record.unit === unit),
        ),
      });
    else content.plumbing.push({ ...seen, works: works(view, directory, unit, uid, count) });
  }
  const direct = countIn(view, slice.directory);
  if (direct !== 0) {
    const seen = { processes: direct ?? null, atLeast: direct === undefined, memory: null };
    content.plumbing.push({ unit: slice.path, ...seen, works: true });
  }
  content.sessions.sort((a, b) => (a.unit < b.unit ? -1 : 1));
  return content;
}

/** Sessions without a cgroup that holds anything, whose launcher is at work on them: being started or put away. */
export function startingSessions(
  view: KernelView,
  { sessions }: SliceContent,
  records: readonly SessionRecord[],
): RunningSession[] {
  return records
    .filter(({ unit }) => sessions.every((session) => session.unit !== unit))
    .map((record) => ({ unit: record.unit, processes: 0, atLeast: false, memory: null, ...ofRecord(view, record) }));
}

/** Names of the cgroups right below the slice: PID 1's units. An absent slice has none. */
function unitsOf(view: KernelView, directory: string): string[] | undefined {
  const names = view.list(directory);
  if (isErrno(names)) return names === ENOENT || names === ENODEV ? [] : undefined;
  return names.filter((name) => isDirectory(view, `${directory}/${name}`));
}

/** The account's manager with nothing to do is waiting; whatever else is in a unit can be anything. */
function works(view: KernelView, directory: string, unit: string, uid: number, count: Count): boolean {
  if (unit === `user-runtime-dir@${uid}.service`) return false;
  if (unit !== `user@${uid}.service` || count.atLeast) return true;
  const text = view.readText(`${directory}/init.scope/cgroup.procs`);
  if (isErrno(text)) return true;
  const pids = text.split("\n").filter((line) => line !== "");
  // The manager's cgroups are the account's: what it has started can be moved beside it, and be called anything.
  return pids.length !== count.processes || !isManagerAlone(view, pids.map(Number), uid);
}

/**
 * Whether these are a manager of the account (a child of PID 1) and at most its `(sd-pam)`: the child that PID 1's program
 * made before it became the manager, and so in the manager's session, which no unit of a manager is in.
 */
function isManagerAlone(view: KernelView, pids: readonly number[], uid: number): boolean {
  const kin = pids.map((pid) => kinOf(view, pid));
  const manager = kin.find((one) => one?.parent === 1 && one.uids.every((each) => each === uid));
  if (manager === undefined || manager.session !== manager.pid || pids.length > 2) return false;
  return kin.every(
    (one) => one === manager || (one !== undefined && one.parent === manager.pid && one.session === manager.pid),
  );
}

/** What the kernel says of where a process comes from; undefined: it is gone, hidden, or in a namespace of another host. */
function kinOf(view: KernelView, pid: number) {
  const status = readStatus(view, pid);
  const session = sessionOf(view, pid);
  if (typeof status === "string" || status.tgid !== pid || session === undefined) return undefined;
  return { pid, parent: status.parent, uids: status.uids, session };
}

/** The sixth field of `/proc/PID/stat` (proc_pid_stat(5)); the name before it can hold anything, also a `)`. */
function sessionOf(view: KernelView, pid: number): number | undefined {
  const text = view.readText(`/proc/${pid}/stat`);
  return isErrno(text) ? undefined : decimal(text.slice(text.lastIndexOf(")") + 2).split(" ")[3]);
}

function ofRecord(view: KernelView, record: SessionRecord | undefined) {
  if (record === undefined) return { entryPoint: null, project: null, operator: null, since: null, ageSeconds: null };
  const sinceMs = Date.parse(record.since);
  const ageSeconds = Number.isNaN(sinceMs) ? null : Math.max(0, Math.floor((view.wallClockMs() - sinceMs) / 1_000));
  const { entryPoint, project, since } = record;
  return { entryPoint, project, operator: record.operator.name, since, ageSeconds };
}

interface Count {
  processes: number;
  /** Something could not be read, or there was too much of it. */
  atLeast: boolean;
  /** false: it is alive and nothing of it could be counted. */
  known: boolean;
}

interface Budget {
  cgroups: number;
}

/** Processes in a cgroup and all below it. Names below a unit of the account are its own choice: some cannot be opened. */
function countProcesses(view: KernelView, top: string, budget: Budget): Count {
  let processes = 0;
  let atLeast = false;
  const left = [top];
  for (let directory = left.pop(); directory !== undefined; directory = left.pop()) {
    if (budget.cgroups-- <= 0) return { processes, atLeast: true, known: processes > 0 };
    const events = view.readText(`${directory}/cgroup.events`);
    if (events === ENOENT || events === ENODEV) continue;
    const populated = isErrno(events) ? undefined : parsePopulated(events);
    if (populated === false) continue;
    const own = countIn(view, directory);
    if (own === undefined || populated === undefined) atLeast = true;
    processes += own ?? 0;
    const below = directoriesIn(view, directory);
    if (!below.whole) atLeast = true;
    left.push(...below.directories);
  }
  return { processes, atLeast, known: processes > 0 || !atLeast };
}

/** Processes in exactly this cgroup; 0 where it is gone, undefined where it cannot be read. */
function countIn(view: KernelView, directory: string): number | undefined {
  const text = view.readText(`${directory}/cgroup.procs`);
  // The processes of a threaded cgroup are listed at the domain above it.
  if (text === ENOENT || text === ENODEV || text === EOPNOTSUPP) return 0;
  return isErrno(text) ? undefined : text.split("\n").filter((line) => line !== "").length;
}

/** kernfs keeps the number of directories in `nlink`: most cgroups have none, and one that is missed is noticed. */
function directoriesIn(view: KernelView, directory: string): { directories: string[]; whole: boolean } {
  const stat = view.lstat(directory);
  if (isErrno(stat)) return { directories: [], whole: stat === ENOENT || stat === ENODEV };
  if (stat.nlink === 2) return { directories: [], whole: true };
  const names = view.list(directory);
  if (isErrno(names)) return { directories: [], whole: names === ENOENT || names === ENODEV };
  const directories = names.map((name) => `${directory}/${name}`).filter((path) => isDirectory(view, path));
  return { directories, whole: directories.length >= stat.nlink - 2 };
}

function isDirectory(view: KernelView, path: string): boolean {
  const stat = view.lstat(path);
  return !isErrno(stat) && stat.kind === "directory";
}

function memoryOf(view: KernelView, directory: string): number | null {
  const text = view.readText(`${directory}/memory.current`);
  const bytes = isErrno(text) ? Number.NaN : Number(text.trim());
  return Number.isInteger(bytes) ? bytes : null;
}

/** Processes of the account outside its slice, printable; undefined: somebody could not be told. */
export function findStrays(view: KernelView, identity: Identity, slice: Slice): Stray[] | undefined {
  const census = takeCensus(
    view,
    { identity, slice },
    {
      deadlineMs: view.nowMs() + lookLimits.censusMs,
      detailsMs: lookLimits.pathsMs,
    },
  );
  if (!census.complete || census.held.length + census.unreadable.length > 0) return undefined;
  return census.alive.flatMap(({ pid, status, cgroup }) => {
    const place = cgroup ?? cgroupOf(view, pid);
    if (place === "gone" || (place !== undefined && isInSlice(slice, place))) return [];
    const { state, uids } = status;
    const command = printableWord(status.command);
    return [{ pid, command, state, uid: uids[0], cgroup: place === undefined ? null : printable(place) }];
  });
}

function cgroupOf(view: KernelView, pid: number): string | "gone" | undefined {
  const text = view.readText(`/proc/${pid}/cgroup`);
  if (text === ENOENT || text === ESRCH) return "gone";
  return isErrno(text) ? undefined : parseCgroupPath(text);
}
