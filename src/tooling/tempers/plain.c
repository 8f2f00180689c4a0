// SPDX-License-Identifier: Apache-2.0
// Plain: does its work and has no opinion about any signal, so that each does to it what the kernel does by default.

#include "temper.h"

int main(int argc, char **argv) {
  begin(argc, argv);
  tick_for_ever();
}
