// SPDX-License-Identifier: Apache-2.0
// The recorder: a child of the helper that writes the trail and can hang without holding up a kill. Each event goes to
// the log at once, and to the journal when the helper says so (never between consent and verdict: no program may run
// then). The two sinks fail independently. A helper that dies without a last word is recorded as interrupted.

import { findIdentity } from "./identity.ts";
import { type Host, isErrno } from "./kernel.ts";
import { leftBehind } from "./left-behind.ts";
import { limits } from "./limits.ts";
import { loggerPath, waitFor } from "./programs.ts";
import { doneWord, type Event, endWord, hintWord, identifier, journalWord, logPath } from "./trail.ts";

/** Socket of journald; without it, `logger --journald` succeeds and writes nothing. */
const journalSocket = "/run/systemd/journal/socket";

/** syslog(3) severities. */
const priorities: Partial<Record<Event["AI_TOOLS_RESULT"], number>> = {
  alive: 2,
  incomplete: 2,
  reappeared: 2,
  "stray-alive": 2,
  refused: 3,
  interrupted: 4,
  "identity-rejected": 4,
  "manager-not-restored": 4,
};

interface Sinks {
  unsent: Event[];
  logProblem: string | undefined;
  journalProblem: string | undefined;
}

/** Reads events from standard input until it is told the end. Returns the exit code, 0 when both sinks have everything. */
export async function recordEvents(host: Host): Promise<number> {
  const sinks: Sinks = { unsent: [], logProblem: undefined, journalProblem: undefined };
  let pending = "";
  let last: Event | undefined;
  let ended = false;
  for (;;) {
    const text = host.typed();
    if (text === undefined) break;
    if (text === "") {
      await host.sleep(limits.childPollMs);
      continue;
    }
    const lines = (pending + text).split("\n");
    pending = lines.pop() ?? "";
    for (const line of lines) {
      if (line === journalWord) await sendToJournal(host, sinks);
      else if (line === endWord) ended = true;
      else last = takeEvent(host, sinks, line) ?? last;
    }
  }
  if (!ended && last !== undefined) write(host, sinks, helperDied(host, last));
  await sendToJournal(host, sinks);
  return tell(host, sinks, ended);
}

function takeEvent(host: Host, sinks: Sinks, line: string): Event | undefined {
  try {
    const event = JSON.parse(line) as Event;
    write(host, sinks, event);
    return event;
  } catch (error) {
    sinks.logProblem ??= `an event could not be read: ${String(error)}`;
    return undefined;
  }
}

function write(host: Host, sinks: Sinks, event: Event): void {
  // A disk that is full tears a line, maybe one of the stop before.
  const errno = host.appendLine(logPath, `${JSON.stringify(event)}\n`, 0o600);
  if (errno !== 0) sinks.logProblem ??= `${logPath} could not be written (errno ${errno})`;
  sinks.unsent.push(event);
}

function helperDied(host: Host, last: Event): Event {
  return {
    ...last,
    time: new Date(host.wallClockMs()).toISOString(),
    message:
      "AI_TOOLS_VERDICT" in last
        ? "the helper ended after this verdict and before the end of its run"
        : "the helper ended without a verdict: run the stop again",
    AI_TOOLS_RESULT: "interrupted",
  };
}

/** One entry per event. The first one that does not go through within its limit ends the attempt: the others would not either. */
async function sendToJournal(host: Host, sinks: Sinks): Promise<void> {
  const events = sinks.unsent;
  sinks.unsent = [];
  if (events.length === 0 || sinks.journalProblem !== undefined) return;
  if (isErrno(host.lstat(journalSocket))) {
    sinks.journalProblem = "the journal has nothing: journald does not run";
    return;
  }
  for (const event of events) {
    const problem = await sendEntry(host, event);
    if (problem !== undefined) {
      sinks.journalProblem = `the journal is incomplete: ${problem}`;
      return;
    }
  }
}

async function sendEntry(host: Host, event: Event): Promise<string | undefined> {
  const { time, message, ...fields } = event;
  const lines = [
    `MESSAGE=${message}`,
    `SYSLOG_IDENTIFIER=${identifier}`,
    `PRIORITY=${priorities[event.AI_TOOLS_RESULT] ?? 5}`,
    // The entry comes after the verdict: what it tells of may be older.
    `AI_TOOLS_TIME=${time}`,
    ...Object.entries(fields).map(([name, value]) => `${name}=${String(value)}`),
  ];
  const logger = host.startProgram([loggerPath, "--journald"], { input: true });
  if (isErrno(logger)) return `logger did not start (errno ${logger})`;
  logger.send(`${lines.join("\n")}\n`);
  logger.closeInput();
  if (!(await waitFor(host, logger, host.nowMs() + limits.reportMs))) {
    logger.abandon();
    return "logger hung";
  }
  return logger.exitCode() === 0 ? undefined : `logger failed (exit code ${logger.exitCode()})`;
}

/** What the helper passes on to the person: sinks that failed, and what a stop does not undo (a dead /var holds us only). */
function tell(host: Host, sinks: Sinks, ended: boolean): number {
  const problems = [sinks.logProblem, sinks.journalProblem].filter((problem) => problem !== undefined);
  const identity = findIdentity(host);
  const hints = typeof identity === "string" ? [] : leftBehind(host, identity);
  const lines = [...problems, ...hints.map((hint) => `${hintWord}${hint}`), ...(ended ? [doneWord] : [])];
  host.print("out", lines.map((line) => `${line}\n`).join(""));
  return problems.length === 0 ? 0 : 1;
}
