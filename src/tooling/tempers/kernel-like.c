// SPDX-License-Identifier: Apache-2.0
// Kernel-like: looks in ps as threads of the kernel do. Its name is the one that it is given, it has no arguments and no
// environment, and it works in `/`. Called as `kernel-like COUNTER-FILE SECONDS NAME`.

#include "temper.h"

#include <sys/prctl.h>

extern char **environ;

static void wipe(char **words) {
  for (int i = 0; words[i]; i++) memset(words[i], 0, strlen(words[i]));
}

int main(int argc, char **argv) {
  begin_with_words(argc, argv, 1);
  if (prctl(PR_SET_NAME, argv[3])) fail("prctl");
  // With the end of the arguments at their start the kernel shows none, as for its own threads.
  wipe(environ);
  wipe(argv);
  if (prctl(PR_SET_MM, PR_SET_MM_ARG_END, argv[0], 0, 0) && errno != EPERM && errno != EINVAL) fail("prctl");
  if (chdir("/")) fail("chdir");
  ignore_all_signals();
  tick_for_ever();
}
