// SPDX-License-Identifier: Apache-2.0
// Spinning: many processes that never rest, each in a session of its own, so that whoever else wants a processor waits.
// Called as `spinning COUNTER-FILE SECONDS PROCESSES`.

#include "temper.h"

static void spin(void) {
  for (;;) __atomic_add_fetch(&mine->ticks, 1, __ATOMIC_RELAXED);
}

int main(int argc, char **argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: %s COUNTER-FILE SECONDS PROCESSES\n", argv[0]);
    return 64;
  }
  begin(3, argv);
  ignore_all_signals();
  for (int process = 1; process < atoi(argv[3]); process++)
    if (fork_or_fail() == 0) {
      take_a_counter();
      if (setsid() < 0) fail("setsid");
      spin();
    }
  mine->signs = 1; // all are there
  spin();
}
