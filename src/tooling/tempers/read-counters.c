// SPDX-License-Identifier: Apache-2.0
// No temper: prints the counters below a directory, one line `FILE SLOT PID TICKS TERMS SIGNS` for each slot in use.

#include <dirent.h>

#include "temper.h"

static void print_counters(const char *name) {
  struct slot table[SLOTS] = {0};
  int file = open(name, O_RDONLY);
  if (file < 0) fail(name);
  if (read(file, table, sizeof table) < 0) fail(name);
  close(file);
  for (int number = 1; number < SLOTS; number++) {
    struct slot *slot = &table[number];
    if (slot->pid == 0) continue;
    printf("%s %d %llu %llu %llu %llu\n", name, number, (unsigned long long)slot->pid, (unsigned long long)slot->ticks,
           (unsigned long long)slot->terms, (unsigned long long)slot->signs);
  }
}

int main(int argc, char **argv) {
  if (argc != 2 || chdir(argv[1])) {
    fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
    return 64;
  }
  DIR *directory = opendir(".");
  if (!directory) fail(argv[1]);
  struct dirent *entry;
  while ((entry = readdir(directory)))
    if (entry->d_name[0] != '.') print_counters(entry->d_name);
  return 0;
}
