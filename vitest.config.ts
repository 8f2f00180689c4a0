// SPDX-License-Identifier: Apache-2.0
// Two projects: unit tests stand beside their source and touch nothing outside this process; boundary tests prove the
// promises on the installed product, on real hosts.

import { defineConfig } from "vitest/config";
import { productVersion } from "./src/tooling/machine.ts";

// A constant of the executables (src/tooling/build/compile.ts).
const define = { AI_TOOLS_VERSION: JSON.stringify(productVersion()) };

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
          // No retries and no real clock: a unit test that hangs is a fault of the code.
          testTimeout: 20_000,
        },
      },
      {
        define,
        test: {
          name: "boundary",
          include: ["tests/boundary/**/*.test.ts"],
          // Each worker boots one host and runs its files one after another on it.
          pool: "forks",
          maxWorkers: 2,
          isolate: false,
          fileParallelism: true,
          testTimeout: 120_000,
          hookTimeout: 600_000,
        },
      },
    ],
  },
});
