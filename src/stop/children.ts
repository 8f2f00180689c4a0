// SPDX-License-Identifier: Apache-2.0
// Programs beside the stop, started so that none of them can hold it up: fixed environment, /dev/null as standard
// descriptors except the pipes that the helper itself serves without blocking, and an end by SIGKILL to it alone. The
// helper's signals stay as they are meanwhile, so that none is lost; a terminal's Ctrl-C may end a child instead.

import * as os from "os";
import { close, O_NOCTTY, Outgoing, readAvailable, reopenWithinItsRights } from "./descriptors.ts";
import { type Child, EAGAIN, type Errno, SIGKILL } from "./kernel.ts";

const environment = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C" };

export interface StartOptions {
  input?: boolean;
  output?: boolean;
  /** This very executable, under the name that the first argument gives it. */
  itself?: boolean;
  /** Descriptor that becomes its standard input, instead of a pipe. */
  inputFrom?: number;
  /** Descriptor that becomes its standard output, instead of a pipe. */
  outputTo?: number;
}

export class ProgramRunner {
  #null = -1;

  /** Makes sure that 0 to 2 are open, so that no file that is opened later lands there. */
  openStandardDescriptors(): void {
    while (this.#null < 3) {
      const fd = os.open("/dev/null", os.O_RDWR | O_NOCTTY);
      if (fd < 0) return;
      this.#null = fd;
    }
  }

  start(argv: string[], options: StartOptions): Child | Errno {
    this.openStandardDescriptors();
    const input = options.input === true ? os.pipe() : undefined;
    const output = options.output === true ? os.pipe() : undefined;
    if (input === null || output === null) {
      for (const fd of [...(input ?? []), ...(output ?? [])]) close(fd);
      return EAGAIN;
    }
    let pid = -1;
    try {
      const execOptions = {
        block: false,
        usePath: false,
        env: environment,
        cwd: "/",
        stdin: input?.[0] ?? options.inputFrom ?? this.#null,
        stdout: output?.[1] ?? options.outputTo ?? this.#null,
        stderr: output?.[1] ?? this.#null,
      };
      const file = options.itself === true ? { file: "/proc/self/exe" } : {};
      pid = os.exec(argv, { ...execOptions, ...file });
    } catch {
      // QuickJS throws when fork fails and does not say why: out of pids or memory. pid stays -1.
    }
    if (input !== undefined) close(input[0]);
    if (output !== undefined) close(output[1]);
    // The same pipes through descriptions of their own, which do not block.
    const writeTo = pid > 0 && input !== undefined ? reopenWithinItsRights(input[1], "write") : undefined;
    const readFrom = pid > 0 && output !== undefined ? reopenWithinItsRights(output[0], "read") : undefined;
    if (input !== undefined) close(input[1]);
    if (output !== undefined) close(output[0]);
    return pid > 0 ? new RunningChild(pid, writeTo, readFrom) : EAGAIN;
  }
}

class RunningChild implements Child {
  readonly #pid: number;
  readonly #input: Outgoing | undefined;
  #inputDescriptor: number | undefined;
  #outputDescriptor: number | undefined;
  #closing = false;
  #output = "";
  #code: number | undefined;
  #abandoned = false;

  constructor(pid: number, input: number | undefined, output: number | undefined) {
    this.#pid = pid;
    this.#inputDescriptor = input;
    this.#input = input === undefined ? undefined : new Outgoing(input);
    this.#outputDescriptor = output;
  }

  exitCode(): number | undefined {
    this.#serve();
    if (this.#code !== undefined || this.#abandoned) return this.#code;
    const [pid, status] = os.waitpid(this.#pid, os.WNOHANG);
    // No errno means that it has ended.
    if (pid !== this.#pid) return undefined;
    const signal = status & 0x7f;
    this.#code = signal === 0 ? (status >> 8) & 0xff : 128 + signal;
    this.#serve();
    return this.#code;
  }

  send(text: string): void {
    if (text !== "") this.#input?.add(text);
    this.#serve();
  }

  sentAll(): boolean {
    this.#serve();
    return this.#input?.isEmpty() ?? true;
  }

  closeInput(drop = false): void {
    if (drop) this.#input?.drop();
    this.#closing = true;
    this.#serve();
  }

  output(): string {
    this.#serve();
    return this.#output;
  }

  abandon(): void {
    if (this.exitCode() === undefined) os.kill(this.#pid, SIGKILL);
    this.#abandoned = true;
  }

  #serve(): void {
    const sent = this.#input?.pump() ?? true;
    if (sent && this.#closing && this.#inputDescriptor !== undefined) {
      close(this.#inputDescriptor);
      this.#inputDescriptor = undefined;
    }
    while (this.#outputDescriptor !== undefined) {
      const text = readAvailable(this.#outputDescriptor);
      if (text === "") return;
      if (text !== undefined && this.#output.length < 1_048_576) {
        this.#output += text;
        continue;
      }
      close(this.#outputDescriptor);
      this.#outputDescriptor = undefined;
    }
  }
}
