// SPDX-License-Identifier: Apache-2.0
// The operator's side, served so that it can never hold up a stop: terminals and pipes through a non-blocking reopening
// of the descriptor, regular files and sockets through a child.

import * as os from "os";
import type { ProgramRunner } from "./children.ts";
import { close, kindOf, Outgoing, readAvailable, readWhole, reopenWithinItsRights } from "./descriptors.ts";
import { type Child, isErrno, type Stream } from "./kernel.ts";

/** Under this name the executable copies its standard input to its standard output (`copyToOutput`). */
export const outputName = "ai-tools-stop: output";

/** Under this name the executable empties the terminal at its standard input (`discardPending`). */
export const discardName = "ai-tools-stop: discard";

interface Sink {
  write(text: string): void;
  /** true when nothing is left to write. */
  pump(): boolean;
  drop(): void;
  /** Nothing more will come; true when all of it has arrived. */
  close(): boolean;
}

/** Nobody is there. */
const nowhere: Sink = { write: () => undefined, pump: () => true, drop: () => undefined, close: () => true };

export class Terminal {
  readonly #programs: ProgramRunner;
  readonly #sinks = new Map<Stream, Sink>();
  /** Descriptor of the keyboard, -1 where there is none, undefined before the first look. */
  #keyboard: number | undefined;

  constructor(programs: ProgramRunner) {
    this.#programs = programs;
  }

  print(stream: Stream, text: string): void {
    const sink = this.#sinks.get(stream) ?? this.#openSink(stream === "out" ? 1 : stream === "err" ? 2 : 0);
    this.#sinks.set(stream, sink);
    sink.write(text);
    sink.pump();
  }

  /** true when everything is taken. */
  pump(): boolean {
    let taken = true;
    for (const sink of this.#sinks.values()) if (!sink.pump()) taken = false;
    return taken;
  }

  /** true when everything has arrived, also what goes through a child. */
  close(): boolean {
    let arrived = true;
    for (const sink of this.#sinks.values()) if (!sink.pump() || !sink.close()) arrived = false;
    return arrived;
  }

  drop(): void {
    for (const sink of this.#sinks.values()) sink.drop();
  }

  /**
   * A child that throws away what was typed before. A terminal gives out an unfinished line only in raw mode, and
   * QuickJS gives the mode back only at the end of a process: so this is a process of its own.
   */
  discardTyped(): Child | undefined {
    const child = this.#programs.start([discardName], { inputFrom: 0, itself: true });
    return isErrno(child) ? undefined : child;
  }

  typed(): string | undefined {
    this.#keyboard ??= reopenWithinItsRights(0, "read") ?? -1;
    return this.#keyboard < 0 ? undefined : readAvailable(this.#keyboard);
  }

  #openSink(fd: number): Sink {
    const kind = kindOf(fd);
    if (kind === "closed") return nowhere;
    // The disk of a file can hang as well as a socket's peer, and opening it again would lose the shared offset.
    if (kind === "other") return this.#throughChild(fd);
    const reopened = reopenWithinItsRights(fd, "write");
    if (reopened === undefined) return nowhere;
    const outgoing = new Outgoing(reopened);
    return {
      write: (text) => outgoing.add(text),
      pump: () => outgoing.pump(),
      drop: () => outgoing.drop(),
      close: () => outgoing.pump(),
    };
  }

  #throughChild(fd: number): Sink {
    const child = this.#programs.start([outputName], { input: true, outputTo: fd, itself: true });
    return isErrno(child) ? nowhere : childSink(child);
  }
}

/** The child inherits the descriptor itself, and may wait as long as it likes. */
function childSink(child: Child): Sink {
  return {
    write: (text) => child.send(text),
    pump: () => child.sentAll(),
    drop: () => child.closeInput(true),
    close: () => {
      child.closeInput();
      return child.exitCode() !== undefined;
    },
  };
}

/** The child's work: everything from standard input to standard output, waiting as long as the other side likes. */
export function copyToOutput(): void {
  const buffer = new ArrayBuffer(65_536);
  for (;;) {
    const count = os.read(0, buffer, 0, buffer.byteLength);
    if (count <= 0) return;
    for (let at = 0; at < count; ) {
      const written = os.write(1, buffer, at, count - at);
      if (written <= 0) return;
      at += written;
    }
  }
}

/** The child's work: raw mode, everything that is there, and the old mode again when the process ends. */
export function discardPending(): void {
  const fd = reopenWithinItsRights(0, "read");
  if (fd === undefined || !isInForeground()) return;
  os.ttySetRaw(0);
  for (let reading = 0; reading < 1_000; reading++) if (!readAvailable(fd)) return;
}

/** In the background the terminal's modes are somebody else's: giving back what was found would undo their changes. */
function isInForeground(): boolean {
  const fd = os.open("/proc/self/stat", os.O_RDONLY);
  if (fd < 0) return false;
  const stat = String(readWhole(fd, 4_096));
  close(fd);
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields[2] === fields[5];
}
