// SPDX-License-Identifier: Apache-2.0
// Spread: makes many cgroups side by side and works in some of them, one process in each. Called as
// `spread COUNTER-FILE SECONDS CGROUPS PROCESSES [DIRECTORY]`; DIRECTORY is where to make them, its own cgroup when absent.

#define MOST_PROCESSES 2000
#include "own-cgroup.h"

#define IDLE_US 200000

static void idle_for_ever(void) {
  for (;;) {
    __atomic_add_fetch(&mine->ticks, 1, __ATOMIC_RELAXED);
    usleep(IDLE_US);
  }
}

int main(int argc, char **argv) {
  if (argc < 5 || argc > 6) {
    fprintf(stderr, "usage: %s COUNTER-FILE SECONDS CGROUPS PROCESSES [DIRECTORY]\n", argv[0]);
    return 64;
  }
  begin(3, argv);
  int place = argc == 6 ? open(argv[5], O_RDONLY | O_DIRECTORY | O_CLOEXEC) : open_own_cgroup();
  if (place < 0) fail(argv[5]);
  for (int number = 0; number < atoi(argv[3]); number++) {
    char name[32];
    snprintf(name, sizeof name, "spread-%d", number);
    int cgroup = open_child_cgroup(place, name);
    if (number < atoi(argv[4]) && fork_or_fail() == 0) {
      take_a_counter();
      move_into(cgroup);
      idle_for_ever();
    }
    close(cgroup);
  }
  mine->signs = 1; // all are there
  idle_for_ever();
}
