// SPDX-License-Identifier: Apache-2.0
// Giving what is below a directory, and belongs to one of two uids, another SELinux type.

#ifndef AI_TOOLS_RELABEL_H
#define AI_TOOLS_RELABEL_H

#include "project-walk.h"

#include <sys/types.h>

struct relabel {
  struct project project;
  uid_t owner, account;
  // Types that are changed, each between two spaces (" a_t b_t "), and the type that they become.
  const char *from, *to;
};

// 0, or the errno for which nothing was touched. `left`: what has yet another type, and keeps it.
int relabel(const struct relabel *request, struct walked *result);

// The SELinux context of what a path leads to, or of a link itself, with a NUL: 0 or an errno; EINVAL where it is no
// plain text.
enum { most_context_bytes = 4096 };
int read_context(const char *path, int of_link, char context[most_context_bytes]);

#endif
