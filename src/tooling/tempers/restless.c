// SPDX-License-Identifier: Apache-2.0
// Restless: from SIGTERM on it starts a process a second for 16 s, as if there were always one more thing to save; the
// number of them is in `signs`. It ends by itself when it has waited 10 s more.

#include "temper.h"

#define NEWCOMERS 16
#define NEWCOMER_LIFE_US 1500000
#define LAST_WAIT_S 10

static volatile sig_atomic_t told;

static void hear(int number) {
  (void)number;
  mine->terms++;
  told = 1;
}

static void come_and_go(void) {
  on_signal(SIGTERM, SIG_DFL);
  usleep(NEWCOMER_LIFE_US);
  _exit(0);
}

int main(int argc, char **argv) {
  begin(argc, argv);
  signal(SIGCHLD, SIG_IGN);
  on_signal(SIGTERM, hear);
  while (!told) tick();
  for (int number = 0; number < NEWCOMERS; number++) {
    if (fork_or_fail() == 0) come_and_go();
    mine->signs++;
    for (int ticks = 0; ticks < 1000000 / TICK_US; ticks++) tick();
  }
  for (int ticks = 0; ticks < LAST_WAIT_S * 1000000 / TICK_US; ticks++) tick();
  _exit(0);
}
