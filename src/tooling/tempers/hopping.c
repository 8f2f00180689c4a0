// SPDX-License-Identifier: Apache-2.0
// Hopping: changes all the time between two cgroups of its own subtree.

#include "own-cgroup.h"

int main(int argc, char **argv) {
  begin(argc, argv);
  ignore_all_signals();
  int own = open_own_cgroup();
  int here = open_child_cgroup(own, "here");
  int there = open_child_cgroup(own, "there");
  for (;;) {
    move_into(here);
    move_into(there);
    __atomic_add_fetch(&mine->ticks, 1, __ATOMIC_RELAXED);
  }
}
