// SPDX-License-Identifier: Apache-2.0
// Saving by a program: at SIGTERM it executes a shell that takes a second to write what it holds to the file
// COUNTER-FILE with a dot before its name, waits for that and ends.

#include "temper.h"

#include <libgen.h>

static volatile sig_atomic_t told;

static void hear(int number) {
  (void)number;
  mine->terms++;
  told = 1;
}

static void save(char *counter_file) {
  char script[600];
  const char *directory = dirname(strdupa(counter_file));
  snprintf(script, sizeof script, "sleep 1 && echo saved >'%s/.%s'", directory, basename(counter_file));
  on_signal(SIGTERM, SIG_DFL);
  execl("/bin/sh", "sh", "-c", script, (char *)NULL);
  fail("execl");
}

int main(int argc, char **argv) {
  begin(argc, argv);
  on_signal(SIGTERM, hear);
  while (!told) tick();
  pid_t saver = fork_or_fail();
  if (saver == 0) save(argv[1]);
  int status;
  while (waitpid(saver, &status, 0) != saver)
    if (errno != EINTR) fail("waitpid");
  _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}
