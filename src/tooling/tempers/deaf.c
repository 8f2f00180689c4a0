// SPDX-License-Identifier: Apache-2.0
// Deaf: ignores every signal that a process can ignore.

#include "temper.h"

int main(int argc, char **argv) {
  begin(argc, argv);
  ignore_all_signals();
  tick_for_ever();
}
