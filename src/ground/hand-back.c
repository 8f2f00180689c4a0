// SPDX-License-Identifier: Apache-2.0
// Only a file that belongs to `from` ever gets another owner, whatever its name refers to by then: the owner that is
// looked at and the owner that is changed are those of one descriptor (project-walk.c).
//
// chown(2) itself takes away set-uid and set-gid bits and file capabilities of what is executable, for root as well.

#include "hand-back.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static int is_theirs(const void *request, const struct stat *stat) {
  return stat->st_uid == ((const struct hand_back *)request)->from;
}

static int give(const void *request, int fd) {
  const struct hand_back *to = request;
  return fchownat(fd, "", to->uid, to->gid, AT_EMPTY_PATH) == 0 ? visit_changed : -errno;
}

int hand_back(const struct hand_back *request, struct walked *result) {
  // Nobody's files become root's, root's become nobody's, and -1 would leave an owner as it is.
  const uid_t nobody = (uid_t)-1;
  if (request->from == 0 || request->uid == 0 || request->gid == 0) return EINVAL;
  if (request->from == nobody || request->uid == nobody || request->gid == (gid_t)-1) return EINVAL;
  const struct visitor visitor = {
      .request = request, .with_git = request->with_git, .concerns = is_theirs, .change = give};
  return walk_project(&request->project, &visitor, result);
}
