// SPDX-License-Identifier: Apache-2.0
// sudo hands its caller's limits on to what it starts as root, hard ones too: with `ulimit -f 0` a record that root keeps
// would stay empty, with `ulimit -t 1` the kernel would end the helper in the middle of its work. So every program of root
// puts them back before its main function. Best effort, silent: for anybody else it does nothing.

#include <sys/resource.h>

#include "unfiltered.h"

__attribute__((constructor)) static void forget_callers_limits(void) {
  static const int endless[] = {RLIMIT_FSIZE, RLIMIT_CPU, RLIMIT_AS, RLIMIT_DATA};
  struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY}, files = {4096, 4096};
  if (geteuid() != 0 || !is_unfiltered()) return;
  for (unsigned index = 0; index < sizeof endless / sizeof *endless; index++) setrlimit(endless[index], &none);
  setrlimit(RLIMIT_NOFILE, &files);
}
