// SPDX-License-Identifier: Apache-2.0
// Headless: its main thread has exited and another one works on, so that the kernel shows a zombie that runs.

#include "temper.h"

static void *work(void *nothing) {
  tick_for_ever();
  return nothing;
}

int main(int argc, char **argv) {
  begin(argc, argv);
  ignore_all_signals();
  pthread_t thread;
  if (pthread_create(&thread, NULL, work, NULL)) fail("pthread_create");
  pthread_exit(NULL);
}
