// SPDX-License-Identifier: Apache-2.0
// Crowded: many processes that hardly do anything, all of them in one cgroup far below their own. Called as
// `crowded COUNTER-FILE SECONDS PROCESSES [DEPTH [LENGTH OF A NAME]]`.

#define MOST_PROCESSES 2000
#include "own-cgroup.h"

// Each time that a process falls asleep or wakes up the kernel goes through all cgroups above it.
#define IDLE_US 200000
#define IDLE_IN_THE_DEPTH_US 2000000

static void idle_for_ever(int depth) {
  for (;;) {
    __atomic_add_fetch(&mine->ticks, 1, __ATOMIC_RELAXED);
    usleep(depth > 100 ? IDLE_IN_THE_DEPTH_US : IDLE_US);
  }
}

static int dig(int depth, int length) {
  char name[256];
  memset(name, 'd', sizeof name);
  name[length] = 0;
  int cgroup = open_own_cgroup();
  for (int level = 0; level < depth; level++) {
    int below = open_child_cgroup(cgroup, name);
    close(cgroup);
    cgroup = below;
  }
  return cgroup;
}

int main(int argc, char **argv) {
  if (argc < 4 || argc > 6) {
    fprintf(stderr, "usage: %s COUNTER-FILE SECONDS PROCESSES [DEPTH [LENGTH]]\n", argv[0]);
    return 64;
  }
  begin(3, argv);
  int depth = argc > 4 ? atoi(argv[4]) : 0;
  int length = argc > 5 ? atoi(argv[5]) : 1;
  if (depth > 0) move_into(dig(depth, length));
  for (int process = 1; process < atoi(argv[3]); process++)
    if (fork_or_fail() == 0) {
      take_a_counter();
      idle_for_ever(depth);
    }
  mine->signs = 1; // all are there
  idle_for_ever(0);
}
