// SPDX-License-Identifier: Apache-2.0
// Giving back: everything below a directory that belongs to one uid gets another owner and group. What it promises and
// how is told in hand-back.c.

#ifndef AI_TOOLS_HAND_BACK_H
#define AI_TOOLS_HAND_BACK_H

#include <stdint.h>
#include <sys/types.h>

// Failures of which the path is kept, and how much of it.
enum { most_failures = 10, most_path_bytes = 1000 };

struct hand_back {
  const char *path;
  // Which directory it must be. Doubles, since that is what a number of JavaScript is; both sides are rounded alike.
  double device, inode;
  uid_t from, uid;
  gid_t gid;
  int with_git;
};

struct failure {
  int error;
  size_t path_bytes;
  char path[most_path_bytes];
};

struct handed_back {
  uint64_t changed, git_left, mounts, failed;
  int failures_kept;
  struct failure failures[most_failures];
};

// 0, or the errno for which nothing was touched: ESTALE where the path leads to another directory now.
int hand_back(const struct hand_back *request, struct handed_back *result);

#endif
