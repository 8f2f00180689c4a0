// SPDX-License-Identifier: Apache-2.0
// Burning, no temper of a session: uses up pid numbers until they have begun again from the low ones, or until LEFT are
// left before that. Called as `burning LEFT` by root; prints the last number that it got. Where there are millions of
// them and /proc/sys can be written, it skips all but the last ones of its pid namespace.

#include "temper.h"

static long pid_max(void) {
  long number = 0;
  FILE *file = fopen("/proc/sys/kernel/pid_max", "r");
  if (!file || fscanf(file, "%ld", &number) != 1) fail("pid_max");
  fclose(file);
  return number;
}

#define MOST_TO_BURN 40000

static void skip_to(long number) {
  FILE *file = fopen("/proc/sys/kernel/ns_last_pid", "w");
  if (!file || fprintf(file, "%ld", number) < 0 || fclose(file)) fail("ns_last_pid");
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: %s LEFT\n", argv[0]);
    return 64;
  }
  keep_an_end();
  long left = atol(argv[1]);
  long enough = pid_max() - left;
  if (pid_max() > MOST_TO_BURN) skip_to(enough - 1000);
  pid_t last = 0;
  for (;;) {
    pid_t child = vfork();
    if (child < 0) fail("vfork");
    if (child == 0) _exit(0);
    waitpid(child, NULL, 0);
    if (left == 0 ? child < last : child >= enough) break;
    last = child;
  }
  printf("%d\n", (int)last);
  return 0;
}
