// SPDX-License-Identifier: Apache-2.0
// Threaded: lives in threaded cgroups below its own, which have no list of processes and no kill. Called as `threaded
// COUNTER-FILE SECONDS (whole|split)`: the whole process in one, or its two threads in one each.

#include "own-cgroup.h"

static int first_cgroup, second_cgroup;

static int open_threaded_cgroup(int own, const char *name) {
  int cgroup = open_child_cgroup(own, name);
  if (write_to_cgroup(cgroup, "cgroup.type", "threaded")) fail("cgroup.type");
  return cgroup;
}

static void move_this_thread_into(int cgroup) {
  if (write_to_cgroup(cgroup, "cgroup.threads", "0")) fail("cgroup.threads");
}

// Both threads count in one slot each, so `mine` is not shared here.
static void count_in(struct slot *slot) {
  for (;;) {
    __atomic_add_fetch(&slot->ticks, 1, __ATOMIC_RELAXED);
    usleep(TICK_US);
  }
}

static void *work_apart(void *slot) {
  move_this_thread_into(second_cgroup);
  count_in(slot);
  return NULL;
}

static void *work_beside(void *slot) {
  count_in(slot);
  return NULL;
}

int main(int argc, char **argv) {
  begin_with_words(argc, argv, 1);
  int split = strcmp(argv[3], "split") == 0;
  ignore_all_signals();
  int own = open_own_cgroup();
  first_cgroup = open_threaded_cgroup(own, "first");
  second_cgroup = open_threaded_cgroup(own, "second");
  if (!split) move_into(first_cgroup);
  struct slot *first = mine;
  take_a_counter();
  pthread_t thread;
  if (pthread_create(&thread, NULL, split ? work_apart : work_beside, mine)) fail("pthread_create");
  if (split) move_this_thread_into(first_cgroup);
  count_in(first);
}
