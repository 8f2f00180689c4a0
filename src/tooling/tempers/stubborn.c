// SPDX-License-Identifier: Apache-2.0
// Stubborn: hears every SIGTERM, counts it and works on.

#include "temper.h"

static void count(int number) {
  (void)number;
  mine->terms++;
}

int main(int argc, char **argv) {
  begin(argc, argv);
  on_signal(SIGTERM, count);
  tick_for_ever();
}
