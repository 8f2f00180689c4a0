// SPDX-License-Identifier: Apache-2.0
// What the boundary tests and whoever starts them agree on: names of environment variables and what a host may use. It
// imports nothing, so that the test runner's configuration can know it without the lab.

/** Names the RPM that the tests install; without it each worker builds it. */
export const RPM_VARIABLE = "AI_TOOLS_BOUNDARY_RPM";
/** Names the RPM of the SELinux policy for a release where SELinux enforces; without it each worker builds it. */
export const POLICY_VARIABLE = "AI_TOOLS_BOUNDARY_POLICY_RPM";
/** The name of the hosts of one test run, as in src/tooling/lab/host-names.ts; default: `bookworm`. */
export const HOSTS_VARIABLE = "AI_TOOLS_HOSTS";
/** How many workers there are, each with a host of its own; 2 when absent. */
export const WORKERS_VARIABLE = "AI_TOOLS_BOUNDARY_WORKERS";
/** `1`: races are tried twenty times instead of three. */
export const FULL_VARIABLE = "AI_TOOLS_FULL";
/** Names a host that stands ready with package and tempers, so that a short run does not boot one of its own. */
export const READY_HOST_VARIABLE = "AI_TOOLS_BOUNDARY_HOST";

/** What a host of the tests may use: /dev/fuse, for files that hang; loop devices, for file systems that are frozen. */
export const devices = ["c 10:229", "c 10:237", "b 7:*"];
