// SPDX-License-Identifier: Apache-2.0
// Chain: no process of it lives longer than a hop, since each forks its successor and ends. Called as `chain
// COUNTER-FILE SECONDS SHORTEST-HOP-US LONGEST-HOP-US LINEAGES (plain|headless)`; in a headless one each link is a
// zombie whose only thread works. A chain also ends when its counter file is removed, since no list of processes ever
// names a link in time for whoever cleans up.

#define MOST_PROCESSES 2000
#include "temper.h"

#include <sys/prctl.h>

static unsigned shortest_us, longest_us, seed;
static const char *counter_file;

static void live_for_a_hop(void) {
  __atomic_add_fetch(&mine->ticks, 1, __ATOMIC_RELAXED);
  usleep(shortest_us + (longest_us > shortest_us ? (unsigned)rand_r(&seed) % (longest_us - shortest_us) : 0));
  if (is_past_end() || access(counter_file, F_OK)) _exit(0);
}

// A full process table or the limit of the account ends no lineage: it waits for room.
static int became_successor(void) {
  pid_t child;
  while ((child = fork()) < 0) {
    if (is_past_end()) _exit(0);
    usleep(shortest_us);
  }
  return child == 0;
}

static void plain_chain(void) {
  for (;;) {
    live_for_a_hop();
    if (!became_successor()) _exit(0);
  }
}

static void headless_link(void);

static void *work_without_leader(void *nothing) {
  live_for_a_hop();
  if (!became_successor()) _exit(0);
  headless_link();
  return nothing;
}

static void headless_link(void) {
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 65536);
  pthread_t thread;
  while (pthread_create(&thread, &small, work_without_leader, NULL)) usleep(shortest_us);
  pthread_exit(NULL);
}

int main(int argc, char **argv) {
  begin_with_words(argc, argv, 4);
  counter_file = argv[1];
  shortest_us = (unsigned)atoi(argv[3]);
  longest_us = (unsigned)atoi(argv[4]);
  int lineages = atoi(argv[5]);
  int headless = strcmp(argv[6], "headless") == 0;
  ignore_all_signals();
  prctl(PR_SET_TIMERSLACK, 1);
  for (int number = 0; number < lineages; number++) {
    seed = (unsigned)number + 1;
    if (fork_or_fail() != 0) continue;
    take_a_counter();
    headless ? headless_link() : plain_chain();
  }
  return 0;
}
