// SPDX-License-Identifier: Apache-2.0
// Self-frozen: works for a while in a cgroup below its own, then freezes that and itself with it; it would end politely,
// but hears nothing until somebody thaws it.

#include "own-cgroup.h"

static void leave(int number) {
  (void)number;
  mine->terms++;
  _exit(0);
}

int main(int argc, char **argv) {
  begin(argc, argv);
  on_signal(SIGTERM, leave);
  // The files of its own cgroup are its manager's, where that is PID 1.
  int cold = open_child_cgroup(open_own_cgroup(), "cold");
  move_into(cold);
  for (int ticks = 0; ticks < 20; ticks++) tick();
  if (write_to_cgroup(cold, "cgroup.freeze", "1")) fail("cgroup.freeze");
  tick_for_ever();
}
