// SPDX-License-Identifier: Apache-2.0
// For tempers that make cgroups below their own, as a unit of the account's manager may, and work in them. Cgroups are
// named by descriptors of their directories, so that no path is too long.

#ifndef OWN_CGROUP_H
#define OWN_CGROUP_H

#include <limits.h>

#include "temper.h"

// The directory of the cgroup that this process is in, in the one hierarchy.
static int open_own_cgroup(void) {
  // Lines of v1 hierarchies come first where there are any.
  char line[PATH_MAX] = "";
  FILE *file = fopen("/proc/self/cgroup", "r");
  while (file && strncmp(line, "0::", 3) && fgets(line, sizeof line, file));
  if (!file || strncmp(line, "0::", 3)) fail("no unified hierarchy");
  fclose(file);
  line[strcspn(line, "\n")] = 0;
  char path[PATH_MAX + 32];
  snprintf(path, sizeof path, "/sys/fs/cgroup%s", line + 3);
  int cgroup = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (cgroup < 0) fail(path);
  return cgroup;
}

// Makes the cgroup where it is not there yet.
static int open_child_cgroup(int parent, const char *name) {
  if (mkdirat(parent, name, 0755) && errno != EEXIST) fail("mkdir of a cgroup");
  int cgroup = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (cgroup < 0) fail("open of a cgroup");
  return cgroup;
}

// 0, or -1 with errno.
static int write_to_cgroup(int cgroup, const char *file, const char *text) {
  int descriptor = openat(cgroup, file, O_WRONLY | O_CLOEXEC);
  if (descriptor < 0) return -1;
  ssize_t written = write(descriptor, text, strlen(text));
  int error = errno;
  close(descriptor);
  errno = error;
  return written == (ssize_t)strlen(text) ? 0 : -1;
}

// The whole process.
static void move_into(int cgroup) {
  if (write_to_cgroup(cgroup, "cgroup.procs", "0")) fail("cgroup.procs");
}

#endif
