// SPDX-License-Identifier: Apache-2.0
// Words of a configuration line, quoted as in systemd's unit files (systemd.syntax(7)): blanks between words, single and
// double quotes, and C-style escapes. Nothing is expanded: `$` and `%` stand for themselves.

/** What stands for one character after a backslash; `\s` is systemd's own for a blank. */
const simpleEscapes: Readonly<Record<string, string>> = {
  a: "\x07",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
  s: " ",
  "\\": "\\",
  '"': '"',
  "'": "'",
};

/** How many digits follow, and in which base. */
const numericEscapes: Readonly<Record<string, { digits: number; base: number }>> = {
  x: { digits: 2, base: 16 },
  u: { digits: 4, base: 16 },
  U: { digits: 8, base: 16 },
};

/** The words of a line, or a sentence (without a full stop) that says what is wrong with it. */
export function splitWords(line: string): string[] | string {
  const words: string[] = [];
  let word: string | undefined;
  let quote = "";
  for (let at = 0; at < line.length; at++) {
    const character = line.charAt(at);
    if (character === "\\") {
      const found = readEscape(line, at + 1);
      if (typeof found === "string") return found;
      word = (word ?? "") + found.text;
      at = found.last;
    } else if (quote !== "") {
      if (character === quote) quote = "";
      else word = (word ?? "") + character;
    } else if (character === '"' || character === "'") {
      quote = character;
      word ??= "";
    } else if (character === " " || character === "\t") {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else word = (word ?? "") + character;
  }
  if (quote !== "") return `a quote (${quote}) is not closed`;
  if (word !== undefined) words.push(word);
  return words;
}

/** The character that an escape stands for, and where its last digit is. `at` is behind the backslash. */
function readEscape(line: string, at: number): { text: string; last: number } | string {
  const letter = line.charAt(at);
  if (letter === "") return "a backslash stands at the end (lines cannot be continued)";
  const simple = simpleEscapes[letter];
  if (simple !== undefined) return { text: simple, last: at };
  const octal = /^[0-7]{3}/.exec(line.slice(at))?.[0];
  if (octal !== undefined) return character(Number.parseInt(octal, 8), at + 2, 0x7f);
  const numeric = numericEscapes[letter];
  const digits = line.slice(at + 1, at + 1 + (numeric?.digits ?? 0));
  if (numeric === undefined) return `\\${letter} is no escape (a backslash itself is \\\\)`;
  if (!new RegExp(`^[0-9a-fA-F]{${numeric.digits}}$`).test(digits))
    return `\\${letter} needs ${numeric.digits} hexadecimal digits`;
  // A single byte above 0x7f is no character of UTF-8.
  return character(Number.parseInt(digits, numeric.base), at + numeric.digits, letter === "x" ? 0x7f : 0x10ffff);
}

function character(code: number, last: number, most: number): { text: string; last: number } | string {
  if (code === 0) return "a NUL cannot be part of a word";
  if (code > most || (code >= 0xd800 && code <= 0xdfff)) return "an escape is no character (others than ASCII: \\u)";
  return { text: String.fromCodePoint(code), last };
}
