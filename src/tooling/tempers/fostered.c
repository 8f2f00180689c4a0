// SPDX-License-Identifier: Apache-2.0
// Fostered: works as the init of a pid namespace in a user namespace of its own, and has given itself its parent's
// parent, so that root's own shell may be the first process above it outside.

#include "temper.h"

#include <sched.h>
#include <sys/syscall.h>

int main(int argc, char **argv) {
  begin(argc, argv);
  long inner = syscall(SYS_clone, CLONE_NEWUSER | CLONE_NEWPID | CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, NULL);
  if (inner < 0) fail("clone");
  if (inner != 0) return 0;
  take_a_counter();
  tick_for_ever();
}
