// SPDX-License-Identifier: Apache-2.0
// A ground on which olga has claimed a project and a session can be started: systemd-run, the unit's cgroup and word of
// its end come and go when the test says so, on the clock that moves in `sleep` alone. For tests only.

import { type ClaimRecord, claimRecordPath } from "../claim/claims.ts";
import type { Foreground } from "../ground/ground.ts";
import { HandMadeGround } from "../ground/hand-made-ground.fixture.ts";
import { entryPointDirectory, launcherPath } from "../ground/places.ts";
import { encodeUtf8, type Person, type SessionRecord } from "../ground/records.ts";
import { counterPath } from "../stop/announcement.ts";
import { slicePath, stat, statText, statusText } from "../stop/hand-made-processes.fixture.ts";
import { type Child, ENOENT, type Errno } from "../stop/kernel.ts";
import { programs } from "./places.ts";
import { recordPath, waitingPath } from "./session-records.ts";
import type { Word } from "./word.ts";

export const uid = 990;
export const project = "/srv/data/site";
export const boot = "11111111-2222-3333-4444-555555555555";
/** The launcher of these tests has pid 400. */
export const unit = "ai-tools-shell-400.service";
const cgroup = `/sys/fs/cgroup${slicePath}/${unit}`;
export const events = `${cgroup}/cgroup.events`;

/** When things come, in milliseconds after systemd-run was started; never where it is not said. */
export interface Script {
  begins?: number;
  /** The unit's last process is gone. */
  ends?: number;
  /** systemd-run returns; with the unit where it is not said. */
  returns?: number;
  /** What systemd-run returns. */
  code?: number;
  word?: Word;
  wordAt?: number;
}

export class HandMadeSession extends HandMadeGround {
  readonly olga: Person;
  readonly claim: ClaimRecord;
  script: Script = { begins: 20, ends: 100, code: 0, word: word() };
  /** What happens at the moment in which systemd-run is started. */
  atStart: () => void = () => undefined;
  /** What PID 1 says of the unit. */
  loadState = "not-found";
  /** Whether a SIGKILL to the unit ends it. */
  isMortal = true;
  #startedMs: number | undefined;
  #killedMs: number | undefined;
  #isServed = true;

  constructor() {
    super();
    const passwd = `root:x:0:0::/root:/bin/sh\nai-tools:x:${uid}:${uid}::/var/lib/ai-tools:/x\n`;
    const mounts = "22 28 0:20 / /proc rw - proc proc rw\n30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
    this.files.set("/etc/passwd", passwd);
    this.files.set("/proc/1/cgroup", "0::/init.scope\n");
    this.files.set("/proc/self/status", statusText({ pid: this.pid, uids: [0, 0, 0, 0] }));
    this.files.set("/proc/self/uid_map", "0 0 4294967295\n");
    this.files.set("/proc/self/mountinfo", mounts);
    this.files.set("/proc/loadavg", "0 0 0 1/100 400\n");
    this.files.set("/proc/sys/kernel/random/boot_id", `${boot}\n`);
    this.links.set("/proc/self", String(this.pid));
    for (const process of ["self", "1"]) this.links.set(`/proc/${process}/ns/mnt`, "mnt:[1]");
    this.launcher(this.pid);
    this.olga = this.person("olga", 1001);
    this.calledBy(this.olga);
    for (const path of ["/etc", "/etc/ai-tools", entryPointDirectory, "/bin/bash"]) this.existing(path);
    this.existing(launcherPath, { kind: "file", mode: 0o755 });
    this.existing("/bin/bash", { kind: "file", mode: 0o755 });
    this.entryPoint("shell", "[Entrypoint]\nExec=/bin/bash\n");
    this.existing(project, { uid: this.olga.uid, gid: this.olga.gid, device: 8, inode: 72 });
    this.claim = this.claimed(project);
    this.directory = project;
    this.words = ["shell", "--", "-c", "make $HOME"];
    this.files.set("/var/lib/ai-tools/uids", `${uid}\n`);
    this.files.set(events, () => (this.#isAlive() ? "populated 1\nfrozen 0\n" : ENOENT));
    this.onRead = (path) => this.#leaveWord(path);
    this.program = (line) => this.#run(line);
  }

  /** A process that a mark can be of: started at tick 1000 plus its pid. */
  launcher(pid: number): void {
    this.files.set(`/proc/${pid}/status`, statusText({ pid, uids: [0, 0, 0, 0] }));
    this.files.set(`/proc/${pid}/stat`, statText({ pid, startTicks: 1_000 + pid }));
  }

  entryPoint(name: string, text: string): void {
    this.files.set(`${entryPointDirectory}/${name}.conf`, encodeUtf8(text));
  }

  claimed(path: string): ClaimRecord {
    const { device, inode } = this.statPath(path) as { device: number; inode: number };
    const claim = { path, device, inode, operator: this.olga, since: "2026-01-01T00:00:00.000Z", hadLists: false };
    this.files.set(claimRecordPath(path), encodeUtf8(JSON.stringify(claim)));
    return claim;
  }

  /** So many stops have begun since boot. */
  stopsBegun(count: number): void {
    this.stats.set(counterPath, stat({ size: count }));
  }

  /** A record of a session of this boot. */
  sessionRecord(changes: Partial<SessionRecord> = {}): SessionRecord {
    const { device, inode } = this.claim;
    const record = { unit, entryPoint: "shell", project, device, inode, directory: project, operator: this.olga };
    return { ...record, since: "2026-01-02T00:00:00.000Z", boot, stops: 0, withGit: false, ...changes };
  }

  recorded(changes: Partial<SessionRecord> = {}): SessionRecord {
    const record = this.sessionRecord(changes);
    this.files.set(recordPath(record.unit), encodeUtf8(JSON.stringify(record)));
    return record;
  }

  record(name = unit): SessionRecord | undefined {
    const text = this.files.get(recordPath(name));
    return typeof text === "string" && text.startsWith('{"') ? JSON.parse(text) : undefined;
  }

  /** The argv of systemd-run, once it was started. */
  started(): string[] | undefined {
    return this.executed.find((argv) => argv.includes(programs.systemdRun));
  }

  /** The signals that were sent to the unit through systemd, by number. */
  sentToUnit(): number[] {
    return this.commandLines.flatMap((line) => {
      const signal = /systemctl kill --signal=([0-9]+)/.exec(line)?.[1];
      return signal === undefined ? [] : [Number(signal)];
    });
  }

  override startInForeground(argv: string[], how: Foreground = {}): Child | Errno {
    const child = super.startInForeground(argv, how);
    if (!argv.includes(programs.systemdRun) || typeof child === "number") return child;
    this.#startedMs = this.clockMs;
    this.atStart();
    return {
      exitCode: () => (this.#hasReturned() ? (this.script.code ?? 255) : undefined),
      send: () => undefined,
      sentAll: () => true,
      closeInput: () => undefined,
      output: () => "",
      abandon: () => {
        this.acts.push("abandon systemd-run");
        this.#isServed = false;
      },
    };
  }

  override writeFile(path: string, text: string): Errno {
    if (path === `${cgroup}/cgroup.kill`) this.#kill();
    return super.writeFile(path, text);
  }

  /** systemd-run does not serve the pty any more. */
  get isServed(): boolean {
    return this.#isServed;
  }

  #run(line: string): { code: number; output?: string } {
    // test -t N: 1 says that it is no terminal.
    if (line.startsWith(programs.test)) return { code: this.isTerminal(Number(line.slice(-1)) as 0 | 1 | 2) ? 0 : 1 };
    if (line.includes("systemctl kill --signal=9")) this.#kill();
    if (line.includes("systemctl show")) return { code: 0, output: `LoadState=${this.loadState}\n` };
    return { code: 0 };
  }

  #kill(): void {
    if (this.isMortal && this.#startedMs !== undefined) this.#killedMs ??= this.clockMs;
  }

  #sinceStart(): number {
    return this.#startedMs === undefined ? -1 : this.clockMs - this.#startedMs;
  }

  #isAlive(): boolean {
    const since = this.#sinceStart();
    const { begins = Infinity, ends = Infinity } = this.script;
    return this.#killedMs === undefined && since >= begins && since < ends;
  }

  #hasReturned(): boolean {
    const { ends = Infinity, returns = ends } = this.script;
    return this.#killedMs !== undefined || this.#sinceStart() >= returns;
  }

  #leaveWord(path: string): void {
    const { word, ends = Infinity, wordAt = ends } = this.script;
    if (path !== waitingPath(unit) || word === undefined || this.#sinceStart() < wordAt) return;
    const text = this.files.get(path);
    if (typeof text !== "string") return;
    this.files.set(path, `${text.split("\n")[0]}\n${encodeUtf8(JSON.stringify(word))}\n`);
  }
}

/** Word of a session that ended with 0 and whose files were handed back. */
export function word(changes: Partial<Word> = {}): Word {
  const after = { changed: 2, gitLeft: 0, mounts: 0, failed: 0, failures: [] };
  return { code: 0, how: "ended with 0", clean: true, after, ...changes };
}
