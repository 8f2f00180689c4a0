// SPDX-License-Identifier: Apache-2.0
// Refreezing: one process of it sits frozen in a cgroup of its own, another freezes that again every millisecond and
// is deaf.

#include "own-cgroup.h"

static void sit(int cold) {
  take_a_counter();
  move_into(cold);
  tick_for_ever();
}

int main(int argc, char **argv) {
  begin(argc, argv);
  int own = open_own_cgroup();
  int cold = open_child_cgroup(own, "cold");
  move_into(open_child_cgroup(own, "warm"));
  if (fork_or_fail() == 0) sit(cold);
  ignore_all_signals();
  for (int ticks = 0; ticks < 20; ticks++) tick();
  for (;;) {
    if (write_to_cgroup(cold, "cgroup.freeze", "1")) fail("cgroup.freeze");
    __atomic_add_fetch(&mine->ticks, 1, __ATOMIC_RELAXED);
    usleep(1000);
  }
}
