// SPDX-License-Identifier: Apache-2.0
// sudo hands its caller's limits on to what it starts as root, hard ones too: with `ulimit -f 0` a record that root keeps
// would stay empty, with `ulimit -t 1` the kernel would end the helper in the middle of its work. So every program of root
// puts them back before its main function. Best effort, silent: for anybody else it does nothing.

#include <sys/resource.h>

#include "unfiltered.h"

// Where not even root may raise a hard limit (in a container), as far as that one.
static void raise(int limit, rlim_t wanted) {
  struct rlimit now, both = {wanted, wanted};
  if (setrlimit(limit, &both) == 0 || getrlimit(limit, &now) != 0) return;
  now.rlim_cur = now.rlim_max;
  setrlimit(limit, &now);
}

__attribute__((constructor)) static void forget_callers_limits(void) {
  if (geteuid() != 0 || !is_unfiltered()) return;
  raise(RLIMIT_FSIZE, RLIM_INFINITY);
  raise(RLIMIT_CPU, RLIM_INFINITY);
  raise(RLIMIT_AS, RLIM_INFINITY);
  raise(RLIMIT_DATA, RLIM_INFINITY);
  raise(RLIMIT_NOFILE, 4096);
}
