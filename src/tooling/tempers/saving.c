// SPDX-License-Identifier: Apache-2.0
// Saving: at SIGTERM it starts a program of its own that saves its work, waits for that and ends; `signs` is 1 in the
// slot of the saver that got to its end.

#include "temper.h"

#define SAVING_TICKS 300

static volatile sig_atomic_t told;

static void hear(int number) {
  (void)number;
  mine->terms++;
  told = 1;
}

static void save(void) {
  take_a_counter();
  on_signal(SIGTERM, SIG_DFL);
  for (int ticks = 0; ticks < SAVING_TICKS; ticks++) tick();
  mine->signs = 1;
  _exit(0);
}

int main(int argc, char **argv) {
  begin(argc, argv);
  on_signal(SIGTERM, hear);
  while (!told) tick();
  pid_t saver = fork_or_fail();
  if (saver == 0) save();
  int status;
  while (waitpid(saver, &status, 0) != saver)
    if (errno != EINTR) fail("waitpid");
  _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}
