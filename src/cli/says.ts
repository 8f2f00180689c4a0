// SPDX-License-Identifier: Apache-2.0
// Text to the person at the front door.

import * as os from "os";

/** Writes ASCII text to standard output or error, as far as it is taken; always 0, for `return say(...)`. */
export function say(stream: "out" | "err", text: string): 0 {
  const bytes = new Uint8Array(text.length);
  for (let index = 0; index < text.length; index++) bytes[index] = text.charCodeAt(index) & 0x7f;
  for (let at = 0; at < bytes.length; ) {
    const count = os.write(stream === "out" ? 1 : 2, bytes.buffer, at, bytes.length - at);
    if (count <= 0) return 0;
    at += count;
  }
  return 0;
}
