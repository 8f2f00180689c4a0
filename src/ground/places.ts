// SPDX-License-Identifier: Apache-2.0
// Where root keeps what it knows about projects and sessions. All of it is root's, readable by everybody and writable by
// nobody else, so that neither an operator nor a session can change what was recorded.

/** `NAME.conf`, one for each kind of session. */
export const entryPointDirectory = "/etc/ai-tools/entrypoints.d";
/** One record (`Claim`) for each claimed project. */
export const claimDirectory = "/var/lib/ai-tools/claims";
/** One record (`SessionRecord`) for each session that runs or did not end by itself. */
export const sessionDirectory = "/var/lib/ai-tools/sessions";
/** The record (`Hold`) while a hold is set. It outlives a restart of the host: whoever set it has not lifted it. */
export const holdPath = "/var/lib/ai-tools/hold.json";
/** Where sessions write what belongs to no project; never the account's home in passwd. */
export const sessionHome = "/var/lib/ai-tools/home";

/** What every session executes first, and the only way into its SELinux domain (src/run/ai-tools-session). */
export const launcherPath = "/usr/lib/ai-tools/ai-tools-session";

/** The root helpers, each reached through sudo. */
export const helpers = {
  claim: "/usr/libexec/ai-tools/ai-tools-claim",
  run: "/usr/libexec/ai-tools/ai-tools-run",
  hold: "/usr/libexec/ai-tools/ai-tools-hold",
} as const;
