// SPDX-License-Identifier: Apache-2.0
// Giving back: everything below a directory that belongs to one uid gets another owner and group.

#ifndef AI_TOOLS_HAND_BACK_H
#define AI_TOOLS_HAND_BACK_H

#include "project-walk.h"

#include <sys/types.h>

struct hand_back {
  struct project project;
  uid_t from, uid;
  gid_t gid;
  int with_git;
};

// 0, or the errno for which nothing was touched.
int hand_back(const struct hand_back *request, struct walked *result);

#endif
