// SPDX-License-Identifier: Apache-2.0
// The story of `ai-tools --run`: check, record, start, look again, wait, and say how it ended. Whatever happens between
// the look at the gate and the start, either the session runs and every stop finds it, or it is ended here, or its own
// first step ends it (session-unit.ts).

import { pastedPath } from "../claim/paths.ts";
import type { Ground } from "../ground/ground.ts";
import { sessionDirectory } from "../ground/places.ts";
import { encodeUtf8, type SessionRecord } from "../ground/records.ts";
import { recordedNumbersPath } from "../stop/identity.ts";
import { isErrno } from "../stop/kernel.ts";
import { printable } from "../stop/printable.ts";
import { decimal } from "../stop/proc-files.ts";
import { runProgram } from "../stop/programs.ts";
import { lockProject, unlockProject } from "./handback-lock.ts";
import { checkLaunch, type Launch, whyUnclaimed } from "./launch.ts";
import { limits, programs } from "./places.ts";
import { bringIn, releasePlace, sweepPlaces } from "./project-place.ts";
import { readSession, removeSession, type StoredSession, writeSession } from "./session-records.ts";
import { serviceSockets, servicesAmong, systemdRunCommand } from "./session-unit.ts";
import { finishStreams, openStreams, releaseStreams, startSession, sweepStreams } from "./streams.ts";
import { type Ended, parentOf, watchSession } from "./watch.ts";
import { beginWaiting, endWaiting } from "./word.ts";

/** No session was started, or it was ended by the launcher, or nobody can tell how it ended. */
export const notRun = 125;

/** `TERM` and the like as a session may have them: words, of which programs make nothing but what they are for. */
const terminalVariables = ["TERM", "COLORTERM"];

/** A session with the record that is made of it. */
interface Recorded extends Launch {
  record: SessionRecord;
}

/** Starts a session and waits for its end; the session's exit status, or 125. */
export async function run(ground: Ground): Promise<number> {
  const parent = parentOf(ground);
  const checked = checkLaunch(ground);
  if (typeof checked === "string") return refuse(ground, checked);
  const launch: Recorded = { ...checked, record: recordOf(ground, checked) };
  const unprepared = (await prepare(ground, launch)) ?? (ground.interruption() === 0 ? undefined : "interrupted");
  if (unprepared !== undefined) {
    withdraw(ground, launch);
    return refuse(ground, unprepared);
  }
  const { warning } = launch.confinement;
  if (warning !== undefined) ground.print("err", `ai-tools: ${warning}\n`);
  for (const session of launch.unclean) ground.print("err", describeUnclean(session));
  const streams = openStreams(ground, launch.unit);
  if (typeof streams === "string") {
    withdraw(ground, launch);
    return refuse(ground, streams);
  }
  const command = systemdRunCommand({
    ...launch,
    services: findServices(ground),
    project: launch.claim.path,
    device: launch.claim.device,
    inode: launch.claim.inode,
    streams: streams.forUnit,
    terminal: terminalOf(ground),
  });
  const session = startSession(ground, command, streams);
  if (isErrno(session)) {
    releaseStreams(ground, streams);
    withdraw(ground, launch);
    return refuse(ground, `no process could be started (errno ${session})`);
  }
  const ended = await watchSession(ground, launch, session, parent);
  await finishStreams(ground, session, ended.kind === "goes on");
  return tell(ground, launch, ended);
}

/** What listens there now; a host without the directory has none. */
function findServices(ground: Ground): string[] {
  const names = ground.list(serviceSockets);
  return isErrno(names) ? [] : servicesAmong(names);
}

function refuse(ground: Ground, why: string): number {
  ground.print("err", `ai-tools: ${why}. No session was started.\n`);
  return notRun;
}

/** Everything that has to stand before the start; a sentence where it could not be made. Nothing runs yet. */
async function prepare(ground: Ground, launch: Recorded): Promise<string | undefined> {
  const { unit, uid, claim } = launch;
  const numbered = recordNumber(ground, uid);
  if (numbered !== 0) return `${recordedNumbersPath} could not be written (errno ${numbered})`;
  const waiting = beginWaiting(ground, unit);
  if (waiting !== 0) return `nobody could leave word in /run/ai-tools (errno ${waiting})`;
  sweepPlaces(ground, uid);
  sweepStreams(ground, uid);
  const slice = await startSlice(ground, uid);
  if (slice !== undefined) return slice;
  const recorded = writeSession(ground, launch.record);
  if (recorded !== 0) return `the session could not be recorded in ${sessionDirectory} (errno ${recorded})`;
  const lock = await lockProject(ground, claim, limits.beforeStartMs);
  if (lock === "busy") return "what an earlier session wrote in this project is still being handed back; try again";
  unlockProject(ground, lock);
  return whyUnclaimed(ground, launch) ?? bringIn(ground, unit, claim);
}

/** Takes back what `prepare` made, for a session that was never started. */
function withdraw(ground: Ground, { unit, record }: Recorded): void {
  const session = readSession(ground, unit);
  // Where the record could not be made or replaced, what stands there is an earlier session's.
  if (typeof session === "object" && session.boot === record.boot && session.since === record.since)
    removeSession(ground, session);
  releasePlace(ground, unit);
  endWaiting(ground, unit);
}

function recordOf(ground: Ground, launch: Launch): SessionRecord {
  const { unit, entryPoint, claim, directory, operator, boot, stops, unclean } = launch;
  return {
    unit,
    entryPoint: entryPoint.name,
    project: claim.path,
    device: claim.device,
    inode: claim.inode,
    directory,
    operator,
    since: new Date(ground.wallClockMs()).toISOString(),
    boot,
    stops,
    withGit: unclean.length > 0,
  };
}

/** A stop counts processes of every number that the account ever had while nobody else has it now. */
function recordNumber(ground: Ground, uid: number): number {
  const text = ground.readText(recordedNumbersPath);
  const isThere = !isErrno(text) && text.split("\n").some((line) => decimal(line.trim()) === uid);
  return isThere ? 0 : ground.appendLine(recordedNumbersPath, `${uid}\n`, 0o644);
}

/** Right after a stop PID 1 still has a job for the slice that has just become empty, and refuses to start it. */
async function startSlice(ground: Ground, uid: number): Promise<string | undefined> {
  const slice = `user-${uid}.slice`;
  const deadlineMs = ground.nowMs() + limits.sliceMs;
  for (;;) {
    const ran = await runProgram(ground, [programs.systemctl, "start", slice], deadlineMs);
    if (ran.kind === "ended" && ran.code === 0) return undefined;
    if (ground.nowMs() >= deadlineMs) {
      const said = ran.kind === "ended" ? printable(ran.output.trim()) : "no answer";
      return `PID 1 does not start ${slice} (${said})`;
    }
    await ground.sleep(limits.sliceRetryMs);
  }
}

function terminalOf(ground: Ground): Record<string, string> {
  const variables: Record<string, string> = {};
  for (const name of terminalVariables) {
    const value = ground.environment(name);
    if (value !== undefined && /^[A-Za-z0-9][A-Za-z0-9+._-]{0,63}$/.test(value)) variables[name] = value;
  }
  return variables;
}

function describeUnclean(session: StoredSession): string {
  const { unit, since, entryPoint, project, ended } = session;
  const name = `session ${printable(unit)} of ${printable(since)} (${printable(entryPoint)})`;
  const how = ended === undefined ? "how it ended nobody could tell" : printable(ended.how);
  const what =
    ended?.clean === true ? `${how}, but its handback did not come to its end` : `did not end by itself (${how})`;
  return (
    `ai-tools: ${name} ${what}: what it wrote still belongs to the account. This session's end hands it back, .git ` +
    `included; to do it now: ai-tools --reclaim ${pastedPath(project)}\n`
  );
}

/** The exit code, and every sentence that the operator needs. */
function tell(ground: Ground, launch: Recorded, ended: Ended): number {
  const { unit, claim } = launch;
  const say = (text: string) => ground.print("err", `ai-tools: ${text}\n`);
  // Otherwise what follows the session does it (ai-tools-ended).
  if (ended.kind !== "goes on") releasePlace(ground, unit);
  switch (ended.kind) {
    case "never started":
      withdraw(ground, launch);
      return refuse(ground, "systemd did not start the session (its own message is above)");
    case "ended by us":
      endWaiting(ground, unit);
      if (ended.proved) say(`the session was ended: ${ended.why}`);
      else say(`the session was to be ended (${ended.why}), and that could NOT be proved: run ai-tools --stop`);
      return notRun;
    case "goes on":
      endWaiting(ground, unit);
      say(`session ${unit} goes on without this terminal; to see it: ai-tools --status; to end it: ai-tools --stop`);
      return ended.code;
    case "unknown":
      endWaiting(ground, unit);
      say(`session ${unit} is over, and how it ended nobody could tell; to see more: journalctl -u ${unit}`);
      say(`to get back what it wrote: ai-tools --reclaim ${pastedPath(claim.path)}`);
      return notRun;
    case "ended":
      endWaiting(ground, unit);
      for (const sentence of describeEnd(ended, unit, pastedPath(claim.path))) say(sentence);
      return ended.word.code;
  }
}

/** systemd's own exit codes of what it could not prepare (systemd.exec(5)); a program may use them as well. */
function isSystemdsOwn(code: number): boolean {
  return code >= 200 && code <= 243;
}

function describeEnd({ word }: Extract<Ended, { kind: "ended" }>, unit: string, project: string): string[] {
  const reclaim = `to get back what it wrote: ai-tools --reclaim ${project}`;
  const sentences: string[] = [];
  if (!word.clean) sentences.push(`session ${unit} ${printable(word.how)}: nothing was handed back; ${reclaim}`);
  else if (word.waitsFor !== undefined)
    sentences.push(
      `session ${printable(word.waitsFor)} of this project still runs: what this one wrote is handed back when the last one of the project has ended by itself; to do it now: ai-tools --reclaim ${project}`,
    );
  else if (word.after === undefined) sentences.push("what the session wrote is still being handed back");
  else if (typeof word.after === "string")
    sentences.push(`nothing was handed back (${printable(encodeUtf8(word.after), 400)}); ${reclaim}`);
  else if (word.after.failed > 0)
    sentences.push(
      `${word.after.failed} files could not be handed back: ${word.after.failures.join("; ")}; ${reclaim}`,
    );
  if (word.clean && isSystemdsOwn(word.code))
    sentences.push(
      `exit code ${word.code} is mostly systemd's own word that it could not prepare the session; to see more: journalctl -u ${unit}`,
    );
  return sentences;
}
