// SPDX-License-Identifier: Apache-2.0
// Acting: a root process that acts for the account, as file servers do: real and saved uid 0, effective uid that
// of the account. Called as `acting COUNTER-FILE UID [SECONDS]` by root.

#include "temper.h"

int main(int argc, char **argv) {
  if (argc < 3 || argc > 4) {
    fprintf(stderr, "usage: %s COUNTER-FILE UID [SECONDS]\n", argv[0]);
    return 64;
  }
  uid_t uid = (uid_t)atoi(argv[2]);
  char *rest[] = {argv[0], argv[1], argc == 4 ? argv[3] : NULL, NULL};
  begin(argc - 1, rest);
  on_signal(SIGTERM, SIG_IGN);
  if (setresuid(0, uid, 0)) fail("setresuid");
  tick_for_ever();
}
