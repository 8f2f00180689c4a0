// SPDX-License-Identifier: Apache-2.0
// Polite: does its work until it is told to end, and ends at once with code 0.

#include "temper.h"

static void leave(int number) {
  (void)number;
  mine->terms++;
  _exit(0);
}

int main(int argc, char **argv) {
  begin(argc, argv);
  on_signal(SIGTERM, leave);
  tick_for_ever();
}
