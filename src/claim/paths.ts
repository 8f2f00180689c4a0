// SPDX-License-Identifier: Apache-2.0
// Paths as text: made absolute and plain, compared, and shown to people so that no byte of a name reaches a terminal as
// it is. Nothing here looks at the world.

import { encodeUtf8 } from "../ground/records.ts";
import { printable, shellWord } from "../stop/printable.ts";

/** A shown path is never cut: every byte of the longest one (PATH_MAX) as `\xNN`. */
const mostShown = 4 * 4_096;

/** A path without `.`, `..`, double and trailing slashes, as text alone: the same place only where no link is in it. */
export function plainPath(word: string, directory: string): string {
  const names: string[] = [];
  for (const name of (word.startsWith("/") ? word : `${directory}/${word}`).split("/")) {
    if (name === "..") names.pop();
    else if (name !== "" && name !== ".") names.push(name);
  }
  return `/${names.join("/")}`;
}

/** Whether a text is what `plainPath` gives, and goes out of this program as the bytes that it came in as. */
export function isPlainPath(text: string): boolean {
  // Half of a surrogate pair has no bytes.
  return (
    text.startsWith("/") && !text.includes("\0") && !/[\ud800-\udfff]/u.test(text) && plainPath(text, "/") === text
  );
}

/** Whether a path is a directory or somewhere below it. */
export function isAtOrBelow(path: string, directory: string): boolean {
  return directory === "/" || path === directory || path.startsWith(`${directory}/`);
}

/** The directories above a path, the root first. */
export function parentsOf(path: string): string[] {
  const names = path.split("/").slice(1, -1);
  return ["/", ...names.map((_name, index) => `/${names.slice(0, index + 1).join("/")}`)];
}

/** A path for a sentence: printable ASCII, its other bytes as `\xNN`. */
export function shownPath(path: string): string {
  return printable(encodeUtf8(path), mostShown);
}

/** A path for a command that a person pastes into bash, zsh or ksh. */
export function pastedPath(path: string): string {
  // Only a path that is no path at all has no such word.
  return shellWord(encodeUtf8(path)) ?? "PATH";
}
