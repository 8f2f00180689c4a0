// SPDX-License-Identifier: Apache-2.0
// Restarting: starts its worker again whenever that ends, and ignores what it can itself.

#include "temper.h"

static void work(void) {
  take_a_counter();
  on_signal(SIGTERM, SIG_DFL);
  tick_for_ever();
}

int main(int argc, char **argv) {
  begin(argc, argv);
  ignore_all_signals();
  on_signal(SIGCHLD, SIG_DFL);
  for (;;) {
    pid_t worker = fork_or_fail();
    if (worker == 0) work();
    while (waitpid(worker, NULL, WNOHANG) == 0) tick();
    usleep(TICK_US);
  }
}
