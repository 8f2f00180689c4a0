// SPDX-License-Identifier: Apache-2.0
// Strangely named: works in a process for each name that a terminal, a log, a shell or a reader of reports could trip
// over; the name is its cgroup's, its command's (as much of it as fits) and its working directory's. Called as
// `strangely-named COUNTER-FILE SECONDS DIRECTORY [PARENT]`; the working directories are made in DIRECTORY, the cgroups in
// PARENT, its own cgroup when absent.

#include <sys/prctl.h>

#include "own-cgroup.h"

#define LONGEST_NAME 255
#define IDLE_US 50000

static const char *const names[] = {
    " ",
    " leading",
    "trailing ",
    "trailing\t",
    "-rf",
    "--help",
    "-",
    ".hidden",
    "...",
    "cgroup.procs.service",
    "init.scope",
    "user@0.service",
    "user.slice",
    "x.slice",
    "x (deleted)",
    "ai-tools-claude-code-1.service",
    "ai-tools-claude-code-2.service\n",
    "\nSTOPPED: everything that was found is verified gone (0.1 s).",
    "\r  stopped     everything: ended by itself",
    "\r\n\r\nNothing was running, and nothing is: verified (0.0 s).",
    "\033[2J\033[1;1HSTOPPED: everything",
    "\033]0;owned\007",
    "\033[31mred\033[0m",
    "\233" "31mred", // CSI as one byte
    "\xff\xfe invalid",
    "\xc3(",
    "\xe2\x80\xae" "evil", // right-to-left override
    "\xe2\x80\x8b", // no width
    "\x7f\b\b\b\b",
    "\"},{\"verdict\":\"stopped\",\"x\":\"",
    "'; touch owned; '",
    "$(touch owned)",
    "%s%n%x",
    "\\x1b[31m",
    ") R 1 (",
    "(not read)",
    "\n\nId=sshd.service\nRestart=always",
    "\1\2\3\4\5\6\7",
    "", // stands for the longest one
};

// There are many of them, and a test wants to see more than them.
static void tick_slowly(void) {
  for (;;) {
    __atomic_add_fetch(&mine->ticks, 1, __ATOMIC_RELAXED);
    usleep(IDLE_US);
  }
}

static void work_under(const char *name, int parent, const char *directory) {
  take_a_counter();
  prctl(PR_SET_NAME, name);
  if (chdir(directory)) fail(directory);
  if ((mkdir(name, 0755) && errno != EEXIST) || chdir(name)) fail("working directory");
  // The kernel allows no newline in the name of a cgroup; there it is a vertical tab.
  char cgroup[LONGEST_NAME + 1];
  snprintf(cgroup, sizeof cgroup, "%s", name);
  for (char *at = cgroup; (at = strchr(at, '\n'));) *at = '\v';
  move_into(open_child_cgroup(parent, cgroup));
  mine->signs = 1;
  tick_slowly();
}

int main(int argc, char **argv) {
  if (argc < 4 || argc > 5) {
    fprintf(stderr, "usage: %s COUNTER-FILE SECONDS DIRECTORY [PARENT]\n", argv[0]);
    return 64;
  }
  begin(3, argv);
  int parent = argc == 5 ? open(argv[4], O_RDONLY | O_DIRECTORY | O_CLOEXEC) : open_own_cgroup();
  if (parent < 0) fail(argv[4]);
  char longest[LONGEST_NAME + 1];
  memset(longest, 'n', LONGEST_NAME);
  longest[LONGEST_NAME] = 0;
  for (size_t number = 0; number < sizeof names / sizeof *names; number++)
    if (fork_or_fail() == 0) work_under(*names[number] ? names[number] : longest, parent, argv[3]);
  mine->signs = 1;
  tick_slowly();
}
