// SPDX-License-Identifier: Apache-2.0
// Whether an operator gets to the stop without a password: sudo's own list of what somebody may run, in which the last
// rule that fits decides. Reading its files would have to understand all of them, and other sources than files.

import type { Ground } from "../ground/ground.ts";
import { readPasswd } from "../ground/operator.ts";
import { helpers } from "../ground/places.ts";
import { EACCES, ENOENT, isErrno, type KernelView } from "../stop/kernel.ts";
import { printable, printableWord, shellWord } from "../stop/printable.ts";
import { decimal } from "../stop/proc-files.ts";
import { runProgram } from "../stop/programs.ts";
import { broken, type Check, note, ok, unknown } from "./facts.ts";

const sudo = "/usr/bin/sudo";
const stopHelper = "/usr/libexec/ai-tools/ai-tools-stop";
/** What operators are granted, the stop first. */
const granted = [
  ["the stop", stopHelper],
  ["--run", helpers.run],
  ["--claim", helpers.claim],
  ["--hold", helpers.hold],
] as const;
const dropIn = "/etc/sudoers.d/ai-tools";
const reinstall = "dnf reinstall ai-tools";
const name = "sudo rule";
/** sudo may ask a directory service; so many operators are asked for, each at most so long. */
const sudoLimits = { listMs: 2_000, operators: 20 } as const;

/** Lines of the drop-in that the stop rests on; a test compares them with `sudoers.d/ai-tools`. */
export const expectedLines = [
  `Cmnd_Alias AI_TOOLS_STOP = ${stopHelper} ""`,
  "Defaults!AI_TOOLS_STOP !use_pty, !pam_session, !pam_setcred, !requiretty, !log_input, !log_output, !syslog, !logfile",
  "%ai-ops ALL = (root) NOPASSWD: AI_TOOLS_STOP",
] as const;

/** The drop-in as far as it can be seen, and then what sudo makes of it: for the caller, or for each operator as root. */
export async function checkSudoRule(ground: Ground): Promise<Check> {
  return checkDropIn(ground) ?? (ground.isRoot() ? await checkOperators(ground) : await checkCaller(ground));
}

/** What is wrong with the file itself: sudo drops one with a wrong owner or mode, in silence. */
function checkDropIn(ground: Ground): Check | undefined {
  const stat = ground.lstat(dropIn);
  if (stat === EACCES && !ground.isRoot()) return undefined;
  if (stat === ENOENT) return broken(name, `${dropIn} is not there`, reinstall);
  if (isErrno(stat)) return broken(name, `${dropIn} cannot be looked at (errno ${stat})`, reinstall);
  if (stat.kind !== "file") return broken(name, `${dropIn} is not a file`, `rm ${dropIn}`, reinstall);
  if (stat.uid !== 0)
    return broken(name, `${dropIn} is not root's, and sudo does not read it`, `chown root:root ${dropIn}`);
  if (stat.mode !== 0o440 && stat.mode !== 0o400) {
    return broken(name, `${dropIn} has mode ${stat.mode.toString(8)}, not 440`, `chmod 0440 ${dropIn}`);
  }
  const text = ground.readText(dropIn);
  if (isErrno(text))
    return ground.isRoot() ? broken(name, `${dropIn} cannot be read (errno ${text})`, reinstall) : undefined;
  const lines = text.split("\n").map((line) => line.trim());
  // A reinstallation keeps an edited file that the package has not changed; one that is gone comes back.
  const missing = expectedLines.find((line) => !lines.includes(line));
  return missing === undefined
    ? undefined
    : broken(name, `${dropIn} was changed: it lacks "${missing}"`, `rm ${dropIn}`, reinstall);
}

/**
 * An operator may list the own rules without a password; what sudo lists is what sudo does. Nobody else is tried: sudo
 * would write a refusal to its log, or a mail, whenever they looked at the status.
 */
async function checkCaller(ground: Ground): Promise<Check> {
  const hidden = unknown(name, "only root or an operator can tell");
  if (!isCallerInGroup(ground)) return hidden;
  const listing = await listRules(ground, [sudo, "-n", "-l"]);
  if (listing === undefined) return unknown(name, "sudo does not say what you may run without a password: sudo -l");
  return judge(listing, "you") ?? ok(name, "you may stop without a password, and no later rule undoes it");
}

/** As of the caller's login, which is what sudo goes by as well where it knows no more. */
function isCallerInGroup(view: KernelView): boolean {
  const status = view.readText("/proc/self/status");
  const gid = groupLine(view)?.[2];
  const groups = isErrno(status) ? "" : (/^Groups:\t(.*)$/m.exec(status)?.[1] ?? "");
  return gid !== undefined && groups.trim().split(/\s+/).includes(gid);
}

function groupLine(view: KernelView): string[] | undefined {
  const text = view.readText("/etc/group");
  return isErrno(text)
    ? undefined
    : text
        .split("\n")
        .find((line) => line.startsWith("ai-ops:"))
        ?.split(":");
}

async function checkOperators(ground: Ground): Promise<Check> {
  const operators = operatorsOf(ground);
  if (typeof operators === "string") return unknown(name, operators);
  if (operators.length === 0) return note(name, "in place; nobody is in the group ai-ops, so only root can stop");
  for (const operator of operators.slice(0, sudoLimits.operators)) {
    const listing = await listRules(ground, [sudo, "-n", "-l", "-U", operator]);
    const who = printableWord(operator);
    if (listing === undefined)
      return unknown(name, `sudo does not say what ${who} may run: sudo -l -U ${shellWord(operator) ?? who}`);
    const wrong = judge(listing, who);
    if (wrong !== undefined) return wrong;
  }
  const others = operators.length - sudoLimits.operators;
  const asked =
    others > 0
      ? `${sudoLimits.operators} operators (${others} more not asked about)`
      : `${operators.length} operator(s)`;
  return ok(name, `${asked} may stop without a password, and no later rule undoes it`);
}

/** Members of the group by name, and those whose first group it is. */
function operatorsOf(view: KernelView): string[] | string {
  const [, , gid, members = ""] = groupLine(view) ?? [];
  if (gid === undefined) return "there is no group ai-ops to be read in /etc/group";
  const passwd = readPasswd(view);
  if (typeof passwd === "string") return passwd;
  const first = passwd.filter(({ person }) => person.gid === decimal(gid)).map(({ person }) => person.name);
  const named = members.split(",").map((member) => member.trim());
  return [...new Set([...first, ...named])].filter((member) => member !== "");
}

/** undefined: sudo gave no list in time. */
async function listRules(ground: Ground, argv: string[]): Promise<string | undefined> {
  const ran = await runProgram(ground, argv, ground.nowMs() + sudoLimits.listMs);
  return ran.kind === "ended" && ran.code === 0 ? ran.output : undefined;
}

/** What is wrong with somebody's rules; undefined where the last one that fits each helper asks for no password. */
function judge(listing: string, who: string): Check | undefined {
  const see = who === "you" ? "sudo -l" : `sudo -l -U ${who}`;
  for (const [what, helper] of granted) {
    const rule = lastRuleFor(listing, helper);
    if (rule === undefined) return broken(name, `sudo does not grant ${who} ${what}; the rules: ${see}`, reinstall);
    if (rule.passwordless) continue;
    return broken(
      name,
      `a later rule takes ${what} without a password away from ${who}: "${printable(rule.text)}" comes after the grant, and ` +
        "the last rule decides. Move it to a file whose name sorts before ai-tools",
      "grep -rn ALL /etc/sudoers /etc/sudoers.d",
    );
  }
  return undefined;
}

export interface Rule {
  text: string;
  /** The command may be run, and without a password. */
  passwordless: boolean;
}

/**
 * The last rule of a `sudo -l` that fits a command without arguments as root; undefined where none does.
 * @param listing as sudo and sudo-rs print it in English: after a colon, a rule in each line that begins with `(`
 */
export function lastRuleFor(listing: string, command: string): Rule | undefined {
  let last: Rule | undefined;
  for (const line of listing.split("\n")) {
    const match = /^ +\(([^)]*)\) +(.*)$/.exec(line);
    if (match === null || !isForRoot(match[1] ?? "")) continue;
    let password = true;
    // Tags hold for the commands after them; a comma of a command itself has a backslash before it.
    for (const item of (match[2] ?? "").split(/(?<!\\), */)) {
      const [, tags = "", rest = ""] = /^((?:[A-Z_]+: *)*)(.*)$/.exec(item) ?? [];
      for (const tag of tags.split(/: */)) if (tag === "NOPASSWD" || tag === "PASSWD") password = tag === "PASSWD";
      const denied = rest.startsWith("!");
      if (fits(denied ? rest.slice(1) : rest, command))
        last = { text: line.trim(), passwordless: !password && !denied };
    }
  }
  return last;
}

function isForRoot(runAs: string): boolean {
  const [users = ""] = runAs.split(":");
  return users.split(",").some((user) => user.trim() === "root" || user.trim() === "ALL" || user.trim() === "#0");
}

/** Where a pattern is more than a name, it fits: a rule that may undo the grant is one to be looked at. */
function fits(rule: string, command: string): boolean {
  if (rule === "ALL" || rule === command || rule === `${command} ""` || rule === `${command} *`) return true;
  const [path = ""] = rule.split(" ");
  if (path.endsWith("/")) return command.startsWith(path) && !command.slice(path.length).includes("/");
  if (!/[*?[\]^$]/.test(path)) return false;
  if (/[[\]^$]/.test(path)) return true;
  const pattern = path
    .replace(/[.+(){}|\\]/g, "\\$&")
    .replaceAll("*", "[^/]*")
    .replaceAll("?", "[^/]");
  return new RegExp(`^${pattern}$`).test(command);
}
