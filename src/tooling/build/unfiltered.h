// SPDX-License-Identifier: Apache-2.0
// Whether this process may make any system call: a filter may kill whoever makes one that it does not know or like
// (systemd's `SystemCallFilter=~@resources`). For what runs before the main function.

#ifndef UNFILTERED_H
#define UNFILTERED_H

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

// Unknown is no.
static int is_unfiltered(void) {
  static char text[8192];
  int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  return length > 0 && strstr(text, "\nSeccomp:\t0\n") != NULL;
}

#endif
