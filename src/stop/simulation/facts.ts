// SPDX-License-Identifier: Apache-2.0
// What the simulation believes about Linux, fact by fact. Each is checked here against the simulator, and under the same
// name against a real kernel (tests/boundary/kernel-facts.test.ts): where the two differ, the laws prove nothing.

import type { KernelFact } from "./fact.ts";
import { cgroupFacts } from "./facts-cgroup.ts";
import { killFacts } from "./facts-kill.ts";
import { readingFacts } from "./facts-reading.ts";

export const kernelFacts: readonly KernelFact[] = [...killFacts, ...cgroupFacts, ...readingFacts];
