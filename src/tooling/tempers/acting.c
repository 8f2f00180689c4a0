// SPDX-License-Identifier: Apache-2.0
// Acting: works under the uids that it is given, as file servers, setuid programs and half-finished changes of identity
// do, and counts every SIGTERM. Called as `acting COUNTER-FILE REAL EFFECTIVE SAVED [SECONDS]` by root.

#include "temper.h"

static void count(int number) {
  (void)number;
  mine->terms++;
}

int main(int argc, char **argv) {
  if (argc < 5 || argc > 6) {
    fprintf(stderr, "usage: %s COUNTER-FILE REAL EFFECTIVE SAVED [SECONDS]\n", argv[0]);
    return 64;
  }
  char *rest[] = {argv[0], argv[1], argc == 6 ? argv[5] : NULL, NULL};
  begin(argc - 3, rest);
  on_signal(SIGTERM, count);
  if (setresuid((uid_t)atoi(argv[2]), (uid_t)atoi(argv[3]), (uid_t)atoi(argv[4]))) fail("setresuid");
  tick_for_ever();
}
