// SPDX-License-Identifier: Apache-2.0
// Successor, no temper of a session: waits until the process PID is gone, takes its number at once and works under UID,
// counting each signal that it is told of. Called as `successor COUNTER-FILE SECONDS PID UID` by root.

#include "temper.h"

#include <linux/sched.h>
#include <poll.h>
#include <sys/syscall.h>

static void count(int number) {
  (void)number;
  mine->terms++;
}

static void wait_until_gone(pid_t pid) {
  struct pollfd end = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
  if (end.fd < 0) fail("pidfd_open");
  if (poll(&end, 1, -1) != 1) fail("poll");
}

// A dead process keeps its number until its parent has asked for it.
static pid_t fork_with_number(pid_t pid) {
  struct clone_args args = {.exit_signal = SIGCHLD, .set_tid = (uintptr_t)&pid, .set_tid_size = 1};
  for (;;) {
    pid_t child = (pid_t)syscall(SYS_clone3, &args, sizeof args);
    if (child >= 0) return child;
    if (errno != EEXIST) fail("clone3");
  }
}

static void work_as(uid_t uid) {
  for (int number = 1; number < NSIG; number++) signal(number, count);
  if (setresuid(uid, uid, uid)) fail("setresuid");
  take_a_counter();
  tick_for_ever();
}

int main(int argc, char **argv) {
  begin_with_words(argc, argv, 2);
  wait_until_gone(atoi(argv[3]));
  pid_t child = fork_with_number(atoi(argv[3]));
  if (child == 0) work_as((uid_t)atoi(argv[4]));
  waitpid(child, NULL, 0);
}
