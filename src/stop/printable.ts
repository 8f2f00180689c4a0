// SPDX-License-Identifier: Apache-2.0
// Text that somebody else chose (unit names, paths, commands) is made printable ASCII and short before a person or a log
// sees it: no escape sequence, no line break and no look-alike passes.

import { limits } from "./limits.ts";

/** Printable ASCII of at most `characters`; every other byte as `\xNN`, a backslash doubled; a cut is marked by `...`. */
export function printable(text: string, characters: number = limits.nameCharacters): string {
  let shown = "";
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    const piece =
      code === 0x5c
        ? "\\\\"
        : code >= 0x20 && code < 0x7f
          ? text.charAt(index)
          : `\\x${code.toString(16).padStart(2, "0")}`;
    if (shown.length + piece.length > characters) return `${shown}...`;
    shown += piece;
  }
  return shown;
}

/** The same for a line that a person reads, without blanks: a padded name must not wrap into a sentence of ours. */
export function printableWord(text: string, characters: number = limits.nameCharacters): string {
  return printable(text, characters).replaceAll(" ", "\\x20");
}

/**
 * A word for a shell line that a person pastes: whatever is not plain with a backslash before it, blanks too (see
 * above); other bytes than printable ASCII as `$'\NNN'`, which bash, zsh and ksh know; undefined when it cannot be pasted.
 */
export function shellWord(text: string): string | undefined {
  if (text === "" || /[\0\u0100-\uffff]/.test(text)) return undefined;
  if (/^[\x20-\x7e]+$/.test(text)) return text.replace(/[^A-Za-z0-9_@%+=:,./-]/g, "\\$&");
  const octal = (byte: string) => `\\${byte.charCodeAt(0).toString(8).padStart(3, "0")}`;
  return `$'${text.replace(/[^A-Za-z0-9_@%+=:,./-]/g, octal)}'`;
}
