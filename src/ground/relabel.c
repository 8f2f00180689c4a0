// SPDX-License-Identifier: Apache-2.0
// Of a context only the type is changed: user and level stay, so that nothing becomes readable at a lower level. The
// label that is looked at and the label that is set are those of one descriptor (project-walk.c), by its name in /proc,
// since the kernel takes no label through a descriptor that only names a file.

#include "relabel.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

static const char attribute[] = "security.selinux";

int read_context(const char *path, int of_link, char context[most_context_bytes]) {
  ssize_t bytes = of_link ? lgetxattr(path, attribute, context, most_context_bytes - 1)
                          : getxattr(path, attribute, context, most_context_bytes - 1);
  if (bytes < 0) return errno;
  // The NUL at its end is the kernel's, and may be missing.
  context[bytes] = 0;
  size_t length = strlen(context);
  if (length + 1 < (size_t)bytes) return EINVAL;
  for (size_t at = 0; at < length; at++)
    if (context[at] <= ' ' || context[at] > '~') return EINVAL;
  return 0;
}

// Where the type, the third word, begins and ends; 0 where the context has none.
static int find_type(const char *context, size_t *begins, size_t *ends) {
  const char *role = strchr(context, ':');
  const char *type = role == NULL ? NULL : strchr(role + 1, ':');
  if (type == NULL) return 0;
  *begins = (size_t)(type + 1 - context);
  *ends = *begins + strcspn(type + 1, ":");
  return 1;
}

static int is_one_of_both(const void *request, const struct stat *stat) {
  const struct relabel *of = request;
  return stat->st_uid == of->owner || stat->st_uid == of->account;
}

static int change_type(const void *request, int fd) {
  const struct relabel *how = request;
  char name[64], context[most_context_bytes], word[most_context_bytes + 2], changed[2 * most_context_bytes];
  size_t begins, ends;
  snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  int error = read_context(name, 0, context);
  if (error != 0) return -error;
  if (!find_type(context, &begins, &ends)) return -EINVAL;
  snprintf(word, sizeof word, " %.*s ", (int)(ends - begins), context + begins);
  if (strncmp(word + 1, how->to, ends - begins) == 0 && how->to[ends - begins] == 0) return visit_nothing;
  if (strstr(how->from, word) == NULL) return visit_left;
  int length = snprintf(changed, sizeof changed, "%.*s%s%s", (int)begins, context, how->to, context + ends);
  if (length < 0 || (size_t)length >= sizeof changed) return -ENAMETOOLONG;
  return setxattr(name, attribute, changed, (size_t)length + 1, XATTR_REPLACE) == 0 ? visit_changed : -errno;
}

int relabel(const struct relabel *request, struct walked *result) {
  const struct visitor visitor = {
      .request = request, .with_git = 1, .concerns = is_one_of_both, .change = change_type};
  if (request->owner == 0 || request->account == 0 || request->to[0] == 0) return EINVAL;
  return walk_project(&request->project, &visitor, result);
}
