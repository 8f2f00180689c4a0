// SPDX-License-Identifier: Apache-2.0
// Four projects: unit tests stand beside their source and touch nothing outside this process; boundary tests prove the
// promises on the installed product, on real hosts; worst-day tests try on the same hosts to make it lie, hang or miss, and
// crowds do so with so many processes that a second host beside theirs would only wait.

import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { HOSTS_VARIABLE, WORKERS_VARIABLE } from "./src/tooling/boundary/variables.ts";
import { hostName, patienceFor } from "./src/tooling/lab/host-names.ts";
import { productVersion } from "./src/tooling/machine.ts";

// A constant of the executables (src/tooling/build/compile.ts).
const define = { AI_TOOLS_VERSION: JSON.stringify(productVersion()) };

const patience = patienceFor(hostName(process.env[HOSTS_VARIABLE] || "bookworm"));

/** Each worker boots one host and runs its files one after another on it. */
const onHosts = {
  pool: "forks",
  maxWorkers: Number(process.env[WORKERS_VARIABLE] ?? 2),
  isolate: false,
  fileParallelism: true,
  testTimeout: 120_000 * patience,
  hookTimeout: 600_000 * patience,
} as const;

export default defineConfig({
  test: {
    // What a passing test prints is of no use to anybody.
    silent: "passed-only",
    projects: [
      {
        define,
        test: {
          name: "unit",
          include: ["src/**/*.test.ts"],
          // All cores: by default one is left out, and the laws of the simulation are the longest part.
          maxWorkers: availableParallelism(),
          // No retries and no real clock: a unit test that hangs is a fault of the code.
          testTimeout: 20_000,
        },
      },
      {
        define,
        test: {
          name: "pages",
          include: ["tests/pages/*.test.ts"],
          hookTimeout: 60_000,
          testTimeout: 60_000,
        },
      },
      {
        define,
        test: {
          name: "boundary",
          include: ["tests/boundary/*.test.ts"],
          ...onHosts,
        },
      },
      {
        define,
        test: {
          name: "worst-day",
          include: ["tests/boundary/worst-day/*.test.ts"],
          ...onHosts,
        },
      },
      {
        define,
        test: {
          name: "out-of-reach",
          include: ["tests/boundary/out-of-reach/*.test.ts"],
          ...onHosts,
        },
      },
      {
        define,
        test: {
          name: "crowds",
          include: ["tests/boundary/worst-day/crowds/*.test.ts"],
          ...onHosts,
          maxWorkers: 1,
        },
      },
    ],
  },
});
