// SPDX-License-Identifier: Apache-2.0
// Holding: three processes of which each holds the next at its exit, as a debugger may, so that SIGKILL alone does not
// finish them in every order; the first one does not even look when it is told of an exit.

#include "temper.h"

#include <sys/ptrace.h>

static void hold(pid_t held) {
  if (ptrace(PTRACE_SEIZE, held, NULL, PTRACE_O_TRACEEXIT)) fail("ptrace");
}

int main(int argc, char **argv) {
  begin(argc, argv);
  ignore_all_signals();
  for (int generation = 0; generation < 2; generation++) {
    pid_t child = fork_or_fail();
    if (child != 0) {
      hold(child);
      break;
    }
    take_a_counter();
  }
  tick_for_ever();
}
