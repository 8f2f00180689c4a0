// SPDX-License-Identifier: Apache-2.0
// The walk through a project that changes something of each entry, as root, while others may be at work in it. How it is
// safe is told in project-walk.c; what is changed is the visitor's.

#ifndef AI_TOOLS_PROJECT_WALK_H
#define AI_TOOLS_PROJECT_WALK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

// Failures of which the path is kept, and how much of it.
enum { most_failures = 10, most_path_bytes = 1000 };

// Which directory it must be. Doubles, since that is what a number of JavaScript is; both sides are rounded alike.
struct project {
  const char *path;
  double device, inode;
};

enum { visit_nothing = 0, visit_changed = 1, visit_left = 2 };

struct visitor {
  const void *request;
  // Whether what is named .git is visited and gone into.
  int with_git;
  int (*concerns)(const void *request, const struct stat *stat);
  // Changes what a descriptor (O_PATH) is of: one of the above, or a negative errno.
  int (*change)(const void *request, int fd);
};

struct failure {
  int error;
  size_t path_bytes;
  char path[most_path_bytes];
};

struct walked {
  uint64_t changed, left, git_left, mounts, failed;
  int failures_kept;
  struct failure failures[most_failures];
};

// 0, or the errno for which nothing was touched: ESTALE where the path leads to another directory now.
int walk_project(const struct project *project, const struct visitor *visitor, struct walked *result);

#endif
