// SPDX-License-Identifier: Apache-2.0
// Paths and limits of a session's life beside the records of src/ground: where what the launcher needs stands, and how
// long each wait may take.

/** Where a project is mounted for PID 1 to bring it into a session, by the unit's name. Nobody but root can enter it. */
export const projectPlaces = "/run/ai-tools/projects";
/** The named pipes of sessions without a terminal, `UNIT.DESCRIPTOR`. Nobody but root can enter it. */
export const streamPlaces = "/run/ai-tools/streams";
/** Where a project is seen inside its session whose path systemd's own files cannot hold. */
export const projectInside = "/home/ai-tools-project";

export const programs = {
  systemdRun: "/usr/bin/systemd-run",
  systemctl: "/usr/bin/systemctl",
  setsid: "/usr/bin/setsid",
  cat: "/usr/bin/cat",
  test: "/usr/bin/test",
} as const;

/** Every wait of the launcher and of `ai-tools-ended`, with its reason. */
export const limits = {
  /** Right after a stop PID 1 still has a job for the empty slice, and refuses to start it (measured: well below 1 s). */
  sliceMs: 5_000,
  sliceRetryMs: 100,
  /** One call of systemctl; a sick PID 1 answers after 90 s, and nobody waits for that. */
  systemctlMs: 5_000,
  /** Ending what was started although it must not run, and seeing it gone. */
  endMs: 15_000,
  /** Poll of a session: fast while it starts and ends, slow while it works (its exit is seen that much later). */
  fastPollMs: 10,
  slowPollMs: 50,
  fastPollsMs: 5_000,
  /** What holds a session that lost its terminal or its launcher's child, before it is said that it goes on. */
  hangUpMs: 3_000,
  /** Word of `ai-tools-ended`, which PID 1 starts when the session's unit is gone. */
  wordMs: 15_000,
  /** The handback of a large project. A launcher that waits longer says so and goes; the handback goes on. */
  handBackMs: 600_000,
  /** After so long the launcher says what it waits for. */
  silentMs: 2_000,
  /** What the session wrote last has still to get from a pipe to the terminal. */
  drainMs: 2_000,
  /** The same to a file or to a program that is slow; a signal ends the wait. */
  drainSlowlyMs: 600_000,
  /** A session of the same project that is only being started or ended, before it counts as one that runs. */
  betweenMs: 10_000,
  /** A session that is to begin waits for a handback in its project. */
  beforeStartMs: 60_000,
  /** The unit's last processes, when PID 1 says that it has ended. */
  emptyMs: 15_000,
  /** Handing over what was said. */
  reportMs: 2_000,
} as const;

/** What one session may use at most; the slice's own limits stand above all of them together. */
export const sessionLimits = { tasks: 2_048, memoryHigh: "60%", files: 65_536 } as const;
