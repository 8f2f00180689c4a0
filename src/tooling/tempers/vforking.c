// SPDX-License-Identifier: Apache-2.0
// Vforking: waits uninterruptibly for its vfork child, which works on in the same memory and is deaf.

#include "temper.h"

int main(int argc, char **argv) {
  begin(argc, argv);
  ignore_all_signals();
  pid_t child = vfork();
  if (child < 0) fail("vfork");
  if (child == 0) tick_for_ever();
  return 0;
}
