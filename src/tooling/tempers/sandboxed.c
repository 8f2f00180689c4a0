// SPDX-License-Identifier: Apache-2.0
// Sandboxed: a setuid-root program that makes a pid namespace in the host's own user namespace and works there under
// its caller's numbers, as firejail and chrome-sandbox do. Called as `sandboxed COUNTER-FILE SECONDS OUTER`; of the
// process outside, `ends` means that it goes away, `waits` that it keeps the caller's real uid, and `roots` that it
// makes itself wholly root's, a session leader far from its caller.

#include "temper.h"

#include <grp.h>
#include <sched.h>
#include <sys/syscall.h>

static void work_as(uid_t uid, gid_t gid) {
  if (setresgid(gid, gid, gid)) fail("setresgid");
  if (setresuid(uid, uid, uid)) fail("setresuid");
  take_a_counter();
  on_signal(SIGTERM, SIG_IGN);
  tick_for_ever();
}

// What a setuid program does to be root's in everything that a process may choose for itself.
static void be_roots(void) {
  if (fork_or_fail() != 0) _exit(0);
  keep_an_end();
  if (setsid() < 0) fail("setsid");
  if (setgroups(0, NULL)) fail("setgroups");
  if (setresgid(0, 0, 0)) fail("setresgid");
  if (setresuid(0, 0, 0)) fail("setresuid");
}

int main(int argc, char **argv) {
  begin_with_words(argc, argv, 1);
  uid_t uid = getuid();
  gid_t gid = getgid();
  if (!strcmp(argv[3], "roots")) be_roots();
  long inner = syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL, NULL);
  if (inner < 0) fail("clone");
  if (inner == 0) work_as(uid, gid);
  if (strcmp(argv[3], "ends")) waitpid((pid_t)inner, NULL, 0);
}
