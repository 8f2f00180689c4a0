// SPDX-License-Identifier: Apache-2.0
// Scattered: works in three processes of which two have left it, one by a double fork and one by a session of its own.

#include "temper.h"

static void work_orphaned(void) {
  if (fork_or_fail() != 0) _exit(0);
  take_a_counter();
  tick_for_ever();
}

static void work_in_own_session(void) {
  if (setsid() < 0) fail("setsid");
  take_a_counter();
  ignore_all_signals();
  tick_for_ever();
}

int main(int argc, char **argv) {
  begin(argc, argv);
  pid_t between = fork_or_fail();
  if (between == 0) work_orphaned();
  if (waitpid(between, NULL, 0) != between) fail("waitpid");
  if (fork_or_fail() == 0) work_in_own_session();
  tick_for_ever();
}
