// SPDX-License-Identifier: Apache-2.0
// Shows a terminal of the lab on this one while a program runs on it.

import type { LabTerminal } from "../lab/host.ts";

/** How often new text is shown, in milliseconds. */
const refreshMs = 50;

/**
 * Copies what appears on the lab's terminal to standard output until its program ends.
 * @param act what the person at the terminal does; a failure there does not stop the showing
 * @param limitMs longest wait for the program's end
 * @returns its exit code and everything it showed
 */
export async function showWhileRunning(
  terminal: LabTerminal,
  act: () => Promise<void>,
  limitMs: number,
): Promise<{ code: number; screen: string }> {
  let shown = 0;
  const show = () => {
    const text = terminal.text();
    process.stdout.write(text.slice(shown));
    shown = text.length;
  };
  const timer = setInterval(show, refreshMs);
  let deadline: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    deadline = setTimeout(
      () => reject(new Error(`the program on the terminal did not end within ${limitMs / 1000} s`)),
      limitMs,
    );
  });
  try {
    const [code] = await Promise.race([Promise.all([terminal.exit, act()]), late]);
    return { code, screen: terminal.text() };
  } finally {
    clearInterval(timer);
    clearTimeout(deadline);
    show();
  }
}
