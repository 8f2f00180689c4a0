// SPDX-License-Identifier: Apache-2.0
// Churning, no temper of a session: begets children without pause, of which each ends by itself at once, so that numbers
// come round again and again; counts in `signs` those that a signal ended.

#include "temper.h"

int main(int argc, char **argv) {
  begin(argc, argv);
  while (!is_past_end()) {
    pid_t child = fork_or_fail();
    if (child == 0) _exit(0);
    int end;
    if (waitpid(child, &end, 0) != child) fail("waitpid");
    if (WIFSIGNALED(end)) mine->signs++;
    mine->ticks++;
  }
}
