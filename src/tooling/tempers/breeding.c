// SPDX-License-Identifier: Apache-2.0
// Breeding: makes new cgroups as fast as it can, moves on into each of them and removes those that it left long ago;
// deaf to every signal.

#include "own-cgroup.h"

#define LEFT_BEHIND 500

int main(int argc, char **argv) {
  begin(argc, argv);
  int own = open_own_cgroup();
  ignore_all_signals();
  fork_or_fail(); // two of them, so that one is always at it
  take_a_counter();
  for (unsigned long long number = 0;; number++) {
    char name[64];
    snprintf(name, sizeof name, "%d-%llu", (int)getpid(), number);
    int cgroup = open_child_cgroup(own, name);
    move_into(cgroup);
    close(cgroup);
    __atomic_add_fetch(&mine->ticks, 1, __ATOMIC_RELAXED);
    snprintf(name, sizeof name, "%d-%llu", (int)getpid(), number - LEFT_BEHIND);
    if (number >= LEFT_BEHIND && unlinkat(own, name, AT_REMOVEDIR)) fail("rmdir of a cgroup");
  }
}
