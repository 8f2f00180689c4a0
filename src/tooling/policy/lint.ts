// SPDX-License-Identifier: Apache-2.0
// What the source of the SELinux policy may not say, whatever it comes to on the suite at hand: on Fedora and EL some
// interfaces give more than their names tell, and what compiles on Debian alone shows nothing of that.

/** Interfaces that no line may call, each with what it would give a session. */
export const FORBIDDEN: readonly { name: RegExp; because: string }[] = [
  { name: /^auth_use_nsswitch$/, because: "on Fedora it reads control groups, and reaches the system bus and PID 1" },
  { name: /^auth_read_passwd$/, because: "on Fedora it brings the bus of PID 1: name passwd_file_t instead" },
  { name: /^init_dbus_chat$/, because: "it asks PID 1 to act" },
  { name: /^init_stream_connect$/, because: "it reaches PID 1's own socket" },
  { name: /^dbus_/, because: "a bus reaches what acts for others" },
  { name: /^systemd_/, because: "its services act for others" },
  { name: /^unconfined_/, because: "unconfined domains may do everything" },
  { name: /^userdom_(base|login)_user_template$/, because: "it makes a person's domain, with a manager and buses" },
  { name: /^userdom_(manage|read|rw|delete)_/, because: "it opens files of persons" },
  { name: /^fs_\w*cgroup/, because: "control groups are how a stop finds a session" },
  { name: /^domain_(dyntrans|ptrace_all|signal_all|kill_all)\w*$/, because: "a session has its own domain alone" },
  { name: /^domain_type$/, because: "it sends signals to PID 1 and uses the pipes of rpm: domain_base_type is enough" },
  { name: /^auth_(domtrans|exec|run)_|^(sudo|su)_/, because: "no program that becomes somebody else" },
];

/**
 * What is wrong with the source of the policy, a sentence each.
 * @param te the text of the .te file
 */
export function lintPolicy(te: string): string[] {
  return [...forbiddenCalls(te), ...unexplained(te)];
}

function forbiddenCalls(te: string): string[] {
  return te.split("\n").flatMap((line, index) =>
    // An m4 call anywhere in a line, also inside of tunable_policy; `ifdef` only asks whether a name exists.
    [...withoutComment(line).matchAll(/(?<!ifdef\(`)\b([a-z]\w*)\(/g)].flatMap(([, called = ""]) =>
      FORBIDDEN.filter(({ name }) => name.test(called)).map(
        ({ because }) => `selinux/ai_tools.te:${index + 1}: ${called} must not be used: ${because}.`,
      ),
    ),
  );
}

/** A grant, by a rule or by an interface, has a sentence above it, or above the lines that it stands together with. */
function unexplained(te: string): string[] {
  const lines = te.split("\n");
  return lines.flatMap((line, index) => {
    if (!isGrant(line)) return [];
    let above = index - 1;
    while (above >= 0 && isOfTheSameThought(lines[above] ?? "")) above--;
    if (/^\s*# .*[a-z].*[.]$/.test(lines[above] ?? "")) return [];
    return [`selinux/ai_tools.te:${index + 1}: say in a sentence above it what this is for: ${line.trim()}`];
  });
}

function isGrant(line: string): boolean {
  return (
    /^\s*(allow|dontaudit|neverallow|type_transition)\s/.test(line) ||
    /^\s*(?!ifdef|optional|tunable|gen_|policy_module)\w+\(\w/.test(line)
  );
}

function isOfTheSameThought(line: string): boolean {
  return (
    isGrant(line) ||
    /^\s*(ifdef|optional_policy|tunable_policy|gen_require)\(|^\s*(type|class|role|attribute)\s|^[\s',`)]+$/.test(line)
  );
}

function withoutComment(line: string): string {
  return line.replace(/#.*$/, "");
}
