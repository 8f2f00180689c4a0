// SPDX-License-Identifier: Apache-2.0
// Buried: headless, in a cgroup below its own whose path is longer than PATH_MAX.

#include "own-cgroup.h"

#define NAME_LENGTH 200
#define LEVELS (1 + PATH_MAX / NAME_LENGTH)

static int dig(void) {
  char name[NAME_LENGTH + 1];
  memset(name, 'b', NAME_LENGTH);
  name[NAME_LENGTH] = 0;
  int cgroup = open_own_cgroup();
  for (int level = 0; level < LEVELS; level++) {
    int below = open_child_cgroup(cgroup, name);
    close(cgroup);
    cgroup = below;
  }
  return cgroup;
}

static void *work(void *nothing) {
  tick_for_ever();
  return nothing;
}

int main(int argc, char **argv) {
  begin(argc, argv);
  ignore_all_signals();
  move_into(dig());
  pthread_t thread;
  if (pthread_create(&thread, NULL, work, NULL)) fail("pthread_create");
  pthread_exit(NULL);
}
