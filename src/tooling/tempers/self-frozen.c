// SPDX-License-Identifier: Apache-2.0
// Self-frozen: works for a while, then freezes its own cgroup and itself with it; it would end politely, but hears
// nothing until somebody thaws it.

#include "own-cgroup.h"

static void leave(int number) {
  (void)number;
  mine->terms++;
  _exit(0);
}

int main(int argc, char **argv) {
  begin(argc, argv);
  on_signal(SIGTERM, leave);
  int own = open_own_cgroup();
  for (int ticks = 0; ticks < 20; ticks++) tick();
  if (write_to_cgroup(own, "cgroup.freeze", "1")) fail("cgroup.freeze");
  tick_for_ever();
}
