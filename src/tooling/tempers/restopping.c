// SPDX-License-Identifier: Apache-2.0
// Restopping: one process of it stops the other again every millisecond and is deaf; the other would end politely.

#include "temper.h"

static void leave(int number) {
  (void)number;
  mine->terms++;
  _exit(0);
}

static void be_polite(void) {
  take_a_counter();
  on_signal(SIGTERM, leave);
  tick_for_ever();
}

int main(int argc, char **argv) {
  begin(argc, argv);
  pid_t child = fork_or_fail();
  if (child == 0) be_polite();
  ignore_all_signals();
  for (int ticks = 0; ticks < 20; ticks++) tick();
  for (;;) {
    kill(child, SIGSTOP);
    __atomic_add_fetch(&mine->ticks, 1, __ATOMIC_RELAXED);
    usleep(1000);
  }
}
