// SPDX-License-Identifier: Apache-2.0
// Stopped: works for a while, then stops itself; it would end politely, but hears nothing until somebody continues it.

#include "temper.h"

static void leave(int number) {
  (void)number;
  mine->terms++;
  _exit(0);
}

int main(int argc, char **argv) {
  begin(argc, argv);
  on_signal(SIGTERM, leave);
  for (int ticks = 0; ticks < 20; ticks++) tick();
  raise(SIGSTOP);
  tick_for_ever();
}
