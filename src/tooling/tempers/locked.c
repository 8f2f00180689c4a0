// SPDX-License-Identifier: Apache-2.0
// Locked: works in a cgroup of its own on whose files nobody has any right and whose limits leave no room for another
// process or cgroup, deaf to every signal; `signs` is how many files it could do that to.

#include "own-cgroup.h"

static const char *const limits[] = {"cgroup.max.descendants", "cgroup.max.depth", "pids.max"};
static const char *const files[] = {"cgroup.procs",       "cgroup.threads", "cgroup.events", "cgroup.kill",
                                    "cgroup.controllers", "cgroup.freeze",  "cgroup.stat",   "cgroup.subtree_control",
                                    "cgroup.type"};

static void close_off(int cgroup) {
  for (size_t number = 0; number < sizeof limits / sizeof *limits; number++) {
    if (write_to_cgroup(cgroup, limits[number], "0") == 0) mine->signs++;
    fchmodat(cgroup, limits[number], 0, 0);
  }
  for (size_t number = 0; number < sizeof files / sizeof *files; number++)
    if (fchmodat(cgroup, files[number], 0, 0) == 0) mine->signs++;
  if (fchmod(cgroup, 0) == 0) mine->signs++;
}

int main(int argc, char **argv) {
  begin(argc, argv);
  int own = open_own_cgroup();
  int locked = open_child_cgroup(own, "locked");
  move_into(locked);
  close_off(locked);
  close_off(own); // as far as it is its own
  ignore_all_signals();
  tick_for_ever();
}
