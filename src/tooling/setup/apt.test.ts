// SPDX-License-Identifier: Apache-2.0
// Packages are installed only where they are missing and may be, a held lock is waited for, and who may not install
// is told exactly what to do: tried on a machine that only exists here.

import { expect, test } from "vitest";
import { ensurePackages, type PackageMachine } from "./apt.ts";

interface Imagined {
  machine: PackageMachine;
  /** The apt-get calls, without the lock option. */
  calls: string[];
  pauses: number;
}

/** A root machine with apt whose lists know everything; `answers` are the codes and outputs of its apt-get calls. */
function imagine(change: Partial<PackageMachine> = {}, answers: [number, string][] = []): Imagined {
  const imagined: Imagined = {
    calls: [],
    pauses: 0,
    machine: {
      root: true,
      hasApt: true,
      isInstalled: () => false,
      hasProgram: () => false,
      isKnown: () => true,
      aptGet: async (...args) => {
        expect(args.slice(0, 2)).toEqual(["-o", expect.stringMatching(/^DPkg::Lock::Timeout=\d+$/)]);
        imagined.calls.push(args.slice(2).join(" "));
        const [code, output] = answers.shift() ?? [0, ""];
        return { code, output, logPath: "" };
      },
      pause: async () => {
        imagined.pauses += 1;
      },
      ...change,
    },
  };
  return imagined;
}

test("nothing is done where everything is there", async () => {
  const { machine, calls } = imagine({ isInstalled: () => true });
  await ensurePackages(["gcc", "mandoc"], machine);
  expect(calls).toEqual([]);
});

test("a program from elsewhere counts as its package", async () => {
  const { machine, calls } = imagine({ hasProgram: (program) => program === "dockerd" });
  await ensurePackages(["docker.io"], machine);
  expect(calls).toEqual([]);
});

test("a container client is no container engine", async () => {
  const { machine, calls } = imagine({ hasProgram: (program) => program === "docker" });
  await ensurePackages(["docker.io"], machine);
  expect(calls).toEqual(["install --yes --no-install-recommends docker.io"]);
});

test("only what is missing is installed, without an update where the lists know it", async () => {
  const { machine, calls } = imagine({ isInstalled: (name) => name === "gcc" });
  await ensurePackages(["gcc", "mandoc"], machine);
  expect(calls).toEqual(["install --yes --no-install-recommends mandoc"]);
});

test("empty lists are updated first", async () => {
  const { machine, calls } = imagine({ isKnown: () => false });
  await ensurePackages(["mandoc"], machine);
  expect(calls).toEqual(["update", "install --yes --no-install-recommends mandoc"]);
});

test("stale lists are updated once, and the second answer is final", async () => {
  const { machine, calls } = imagine({}, [
    [100, "404 Not Found"],
    [0, ""],
    [100, "still gone"],
  ]);
  await expect(ensurePackages(["mandoc"], machine)).rejects.toThrow(/sudo apt-get install|as root/);
  expect(calls.map((call) => call.split(" ")[0])).toEqual(["install", "update", "install"]);
});

test("another package manager at work is waited for", async () => {
  const imagined = imagine({}, [
    [100, "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7"],
    [100, "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7"],
    [0, ""],
  ]);
  await ensurePackages(["mandoc"], imagined.machine);
  expect(imagined.pauses).toBe(2);
});

test("a lock that is never released ends the wait", async () => {
  const held = Array.from({ length: 1_000 }, (): [number, string] => [100, "E: Unable to lock directory"]);
  const imagined = imagine({}, held);
  await expect(ensurePackages(["mandoc"], imagined.machine)).rejects.toThrow("Unable to lock directory");
  expect(imagined.calls.length).toBeLessThan(1_000);
});

test("without root the answer names each package, its purpose and the command", async () => {
  const { machine, calls } = imagine({ root: false });
  const refused = ensurePackages(["mandoc", "strace"], machine);
  await expect(refused).rejects.toThrow(/mandoc \(checks the man pages\)/);
  await expect(refused).rejects.toThrow("sudo apt-get install --no-install-recommends mandoc strace");
  expect(calls).toEqual([]);
});

test("without apt the answer names what is missing", async () => {
  const { machine } = imagine({ hasApt: false });
  await expect(ensurePackages(["mmdebstrap"], machine)).rejects.toThrow(/mmdebstrap[\s\S]*no apt-get/);
});
