// SPDX-License-Identifier: Apache-2.0
// Heir: when it is told to end it forks and ends, and the child works on and does the same.

#include "temper.h"

static void leave(int number) {
  (void)number;
  mine->terms++;
  if (fork_or_fail() != 0) _exit(0);
  take_a_counter();
}

int main(int argc, char **argv) {
  begin(argc, argv);
  on_signal(SIGTERM, leave);
  tick_for_ever();
}
