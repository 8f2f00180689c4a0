// SPDX-License-Identifier: Apache-2.0
// Adopting: a subreaper whose orphaned grandchildren work, and which has another one whenever one of them ends.

#include <sys/prctl.h>

#include "temper.h"

#define GRANDCHILDREN 2

static void start_grandchild(void) {
  pid_t between = fork_or_fail();
  if (between != 0) return;
  if (fork_or_fail() != 0) _exit(0);
  take_a_counter();
  tick_for_ever();
}

int main(int argc, char **argv) {
  begin(argc, argv);
  ignore_all_signals();
  on_signal(SIGCHLD, SIG_DFL);
  if (prctl(PR_SET_CHILD_SUBREAPER, 1)) fail("prctl");
  for (int number = 0; number < GRANDCHILDREN; number++) start_grandchild();
  int ended = 0;
  for (;;) {
    // The one in between ends as well; it is counted by its code.
    int status;
    while (waitpid(-1, &status, WNOHANG) > 0) ended += WIFSIGNALED(status);
    for (; ended > 0; ended--) start_grandchild();
    tick();
  }
}
