// SPDX-License-Identifier: Apache-2.0
// Storm: each process forks another one every few milliseconds, until the account's limit, and tries on. All of it ends
// after SECONDS from its start, or when its counter file is removed: a timer is not inherited by a fork, and a cleaner
// that ends one process after another never catches up.

#include "temper.h"

#define MOST_OF_A_STORM 600
#define TICKS_BETWEEN_FORKS 3

int main(int argc, char **argv) {
  begin(argc, argv);
  struct rlimit limit = {MOST_OF_A_STORM, MOST_OF_A_STORM};
  if (setrlimit(RLIMIT_NPROC, &limit)) fail("setrlimit");
  ignore_all_signals();
  while (!is_past_end() && access(argv[1], F_OK) == 0) {
    for (int ticks = 0; ticks < TICKS_BETWEEN_FORKS; ticks++) tick();
    if (fork() == 0) take_a_counter();
  }
  return 0;
}
