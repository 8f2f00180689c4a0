// SPDX-License-Identifier: Apache-2.0
// Changed: a setuid program of somebody else that makes itself wholly its owner's, so that nothing in it is its caller's
// any more but the place where it runs. Deaf to SIGTERM, which its caller may not send it.

#include "temper.h"

int main(int argc, char **argv) {
  begin(argc, argv);
  uid_t owner = geteuid();
  on_signal(SIGTERM, SIG_IGN);
  if (setresuid(owner, owner, owner)) fail("setresuid");
  tick_for_ever();
}
