// SPDX-License-Identifier: Apache-2.0
// A program on a pseudo-terminal of a lab host, typed at and read from outside, as an operator's remote login would be.

import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { constants } from "node:os";

/** The size that the program sees. */
const ROWS = 40;
const COLUMNS = 120;
const DEFAULT_WAIT_MS = 30_000;

export const terminalSize = { rows: ROWS, columns: COLUMNS };

/**
 * The shell command that puts a program on a new terminal, of which it leads the session and the foreground. The master
 * side is held by script(1) inside the host, so that ending script is a genuine hang-up; its pid goes to `pidFile`.
 */
export function onTerminal(argv: string[], pidFile: string): string {
  const inner = `stty rows ${ROWS} cols ${COLUMNS}; exec ${argv.map(quoted).join(" ")}`;
  return `echo $$ >${quoted(pidFile)}; exec script -qefc ${quoted(inner)} /dev/null`;
}

/** One word for a POSIX shell. */
export function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}

export class LabTerminal {
  /**
   * The program's exit code, 128+n when signal n ended it; 137 after a hang-up, whatever the program did about it.
   */
  readonly exit: Promise<number>;
  readonly #client: ChildProcessWithoutNullStreams;
  readonly #endMaster: () => Promise<void>;
  readonly #patience: number;
  readonly #watchers = new Set<() => void>();
  #text = "";
  #ended = false;

  /**
   * @param argv the command line that carries the terminal's bytes
   * @param endMaster kills the process that holds the master side
   * @param patience the limits of waits are so many times as long
   */
  constructor(argv: [string, ...string[]], endMaster: () => Promise<void>, patience: number = 1) {
    const [program, ...rest] = argv;
    this.#patience = patience;
    this.#endMaster = endMaster;
    this.#client = spawn(program, rest, { stdio: ["pipe", "pipe", "pipe"] });
    const decoder = new TextDecoder();
    const take = (bytes: Buffer) => {
      this.#text += decoder.decode(bytes, { stream: true });
      this.#wake();
    };
    this.#client.stdout.on("data", take);
    this.#client.stderr.on("data", take);
    // The program may end while something is being typed; `exit` says so.
    this.#client.stdin.on("error", () => undefined);
    this.exit = new Promise((resolve, reject) => {
      this.#client.once("error", reject);
      this.#client.once("close", (code, signal) => {
        this.#ended = true;
        this.#wake();
        resolve(code ?? 128 + constants.signals[signal ?? "SIGKILL"]);
      });
    });
  }

  /** Types; Enter is `\r`, Ctrl-C is `\x03`. */
  type(text: string): void {
    this.#client.stdin.write(text);
  }

  /** Everything that appeared on the terminal so far, with the terminal's own `\r\n` and the echo of what was typed. */
  text(): string {
    return this.#text;
  }

  /**
   * Waits until a pattern has appeared.
   * @throws with everything that appeared, when it has not within the limit or the program has ended without it
   */
  async waitFor(pattern: RegExp, timeoutMs: number = DEFAULT_WAIT_MS): Promise<RegExpMatchArray> {
    const deadline = performance.now() + timeoutMs * this.#patience;
    for (;;) {
      const match = this.#text.match(pattern);
      if (match) return match;
      const leftMs = deadline - performance.now();
      if (this.#ended || leftMs <= 0) {
        const why = this.#ended ? "the program has ended" : `nothing within ${timeoutMs} ms`;
        throw new Error(`waiting for ${pattern} on the terminal: ${why}. It shows:\n${this.#text}`);
      }
      await this.#change(leftMs);
    }
  }

  /** Closes the terminal from its other side, as a lost connection does: the program's session gets SIGHUP. */
  async hangUp(): Promise<void> {
    await this.#endMaster();
    await this.exit;
  }

  #change(limitMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(done, limitMs);
      const watchers = this.#watchers;
      function done(): void {
        clearTimeout(timer);
        watchers.delete(done);
        resolve();
      }
      watchers.add(done);
    });
  }

  #wake(): void {
    for (const watcher of [...this.#watchers]) watcher();
  }
}
