// SPDX-License-Identifier: Apache-2.0
// Tracing, no temper of a session: holds the process PID at its exit, as a debugger of somebody else may, so that it
// outlives SIGKILL for as long as this one lives. Called as `tracing PID SECONDS` by root.

#include <sys/ptrace.h>

#include "temper.h"

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: %s PID SECONDS\n", argv[0]);
    return 64;
  }
  longest_life_s = atoi(argv[2]);
  keep_an_end();
  if (ptrace(PTRACE_SEIZE, atoi(argv[1]), NULL, PTRACE_O_TRACEEXIT)) fail("ptrace");
  for (;;) pause();
}
