// SPDX-License-Identifier: Apache-2.0
// Every wait and every walk of a stop, with its limit, unit and reason. Detectors and fleets rely on these numbers: the
// man page and the operator guide repeat the ones in seconds. Together at most 40 s without the question.

export const limits = {
  /** Reading who is there for the table; a host so busy that this is not enough gets an incomplete table, not a late stop. */
  readingMs: 2_000,
  /** Reading cgroup paths within one census, for the table only: one can cost 18 ms at depth 2,000. Half of what the census
   * has, so that it gets to the end: the statuses alone decide who is asked and who counts. */
  cgroupPathsMs: 1_000,
  /** Asking PID 1 for projects; a sick PID 1 answers after 90 s, and nobody waits for that. */
  attributionMs: 1_000,
  /** Showing the table to a terminal or pipe that may not be read at all. */
  tableMs: 2_000,
  /** How long a question may stand unanswered before the stop goes on by itself. */
  questionMs: 60_000,
  /** One window for everything to end by itself after SIGTERM, shared, absolute. */
  graceMs: 10_000,
  /** Looking who is left at the end of the grace, so that the report can tell who ended by itself from who was killed. */
  leftoverMs: 500,
  /** Kill and verify together: what is not gone after this is reported as alive. */
  killMs: 10_000,
  /** Reading where newcomers sit, in one pass of the kill, for the report only. */
  killDetailsMs: 20,
  /** How long killing alone is tried before what keeps growing is stopped first, and how long that may take each time. */
  killAloneMs: 300,
  stopFirstMs: 500,
  /** Pause of the kill as long as its pass was, at most this, where nobody new came: the dying need the processor too. */
  restMs: 100,
  /** The last part of the kill in which hung FUSE daemons of the account are cut off. */
  fuseAbortMs: 2_000,
  /** Clearing the runtime directory and bringing the user manager back. */
  restoreMs: 8_000,
  /** Looking once more after the restore. */
  finalLookMs: 2_000,
  /** Longer than this no stop is at work; an entry that is older belongs to a helper that stands still. */
  stopAtMostMs: 180_000,
  /** Opening the record of the last stop to readers, where the caller's umask had closed it. */
  openRecordMs: 250,
  /** Waiting for the recorder, and handing over the report: together at most as long as the second. */
  trailMs: 1_500,
  reportMs: 2_000,
  /** What the report has for itself, however long the recorder took. */
  reportAloneMs: 500,
  /** Poll interval right after SIGTERM or a kill pass: cgroup.events notifications are rate-limited to 10 ms, so 1 ms polls are as good. */
  firstPollMs: 1,
  /** Poll interval once the first ones did not suffice. */
  laterPollMs: 10,
  /** How long the short polls last. */
  shortPollsMs: 50,
  /** Emptying the terminal before the question. */
  discardMs: 500,
  /** Interval at which the keyboard is looked at while a question stands. */
  keyboardPollMs: 50,
  /** Interval of the progress line during the grace, and of the look at the children of the restore. */
  progressMs: 1_000,
  childPollMs: 10,
  /** Pause between two tries to start the user manager: pids of a big kill are not free at once (EAGAIN, EBUSY). */
  restoreRetryMs: 250,

  /** Numbers between the last listed process and the last allocated pid that a census looks at. pid_max may be 4,194,304. */
  gapPids: 3_000,
  /** Looks at the newest number at the end of a census during which numbers were given out, and how far above it. */
  probes: 64,
  probeReach: 8,
  /** Readings of one process that says `X` or `Threads: 0` (between states) before it counts as alive. */
  unsettledReadings: 3,
  /** Reading one process's place takes microseconds; beyond this somebody holds the kernel's list of cgroups. */
  slowPlaceMs: 5,
  /** Ancestors walked to find a container engine's shim. */
  ancestors: 64,
  /** Empty censuses in a row that are a proof while the last pid keeps changing (a host that forks without pause). */
  emptyCensusesOnBusyHost: 10,
  /** Rows in the table and the report, then "and N more". */
  rows: 200,
  /** Rows of the report that are also single events in the trail; one journal entry costs 3.5 ms. */
  trailRows: 100,
  /** Survivors, strays and bystanders named one by one. */
  named: 100,
  /** Characters of a name that somebody else chose. */
  nameCharacters: 120,
  /** Bytes read of one file of procfs or cgroupfs. */
  fileBytes: 4 * 1024 * 1024,
  /** Bytes read of the list of mounts, which the account can make as long as it likes; those of the boot stand first. */
  mountBytes: 1024 * 1024,
  /** Threads of one survivor that are looked at for what holds it. */
  tasks: 100,
  /** Entries of the passwd home that are checked for their owner before the user manager may read them. */
  homeEntries: 1_000,
} as const;
