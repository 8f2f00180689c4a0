// SPDX-License-Identifier: Apache-2.0
// The walk through a project, made so that whoever renames, links or mounts below the directory meanwhile gains nothing
// by it. Each entry is opened once, by its one name in a directory that is open already, without following a link
// (O_NOFOLLOW) and without passing a mount (RESOLVE_NO_XDEV, bind mounts too); what is looked at and what is changed are
// those of this descriptor. No file but a directory is opened in earnest (O_PATH): no device acts, no FIFO waits.
//
// The depth is not limited: a level is an entry of a list, no call of a function, and only the last ones keep their
// descriptor. The way back up is then "..", followed only if it is the directory that was there on the way down.

#include "project-walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// Directories that are open at once, the first one besides: well below the usual limit of 1,024 descriptors.
enum { most_open = 256 };

// One directory on the way from the first one to where the walk is.
struct level {
  int fd;
  dev_t device;
  ino_t inode;
  // Names of its directories that are still to be gone into, each with its NUL. The one that was entered last stands
  // behind `used`, and is the name of the next level.
  char *names;
  size_t used, room;
};

struct walk {
  const struct visitor *visitor;
  struct walked *result;
  struct level *levels;
  size_t depth, room;
};

static struct level *top_of(struct walk *walk) { return &walk->levels[walk->depth - 1]; }

static int open_in(int directory, const char *name, int flags) {
  struct open_how how = {.flags = (uint64_t)(flags | O_NOFOLLOW | O_CLOEXEC), .resolve = RESOLVE_NO_XDEV};
  return (int)syscall(SYS_openat2, directory, name, &how, sizeof how);
}

// What could not be read or given, with as much of its path as is kept.
static void fail(struct walk *walk, const char *name, int error) {
  struct walked *result = walk->result;
  result->failed++;
  if (result->failures_kept == most_failures) return;
  struct failure *failure = &result->failures[result->failures_kept++];
  failure->error = error;
  failure->path_bytes = 0;
  for (size_t at = 0; at < walk->depth; at++) {
    const struct level *level = &walk->levels[at];
    const char *part = at + 1 < walk->depth ? level->names + level->used : name;
    size_t length = strlen(part), left = most_path_bytes - failure->path_bytes;
    if (length + 1 > left) length = left == 0 ? 0 : left - 1;
    memcpy(failure->path + failure->path_bytes, part, length);
    failure->path_bytes += length;
    if (at + 1 < walk->depth && left > length) failure->path[failure->path_bytes++] = '/';
  }
}

// What git takes for a repository stays as it is, unless it is asked for.
static int is_kept(const struct walk *walk, const char *name) {
  return !walk->visitor->with_git && strcmp(name, ".git") == 0;
}

static void visit(struct walk *walk, int fd, const struct stat *stat, const char *name) {
  const struct visitor *visitor = walk->visitor;
  if (!visitor->concerns(visitor->request, stat)) return;
  // A file or link of this name leads git to a repository as well.
  if (is_kept(walk, name)) {
    walk->result->git_left++;
    return;
  }
  int answer = visitor->change(visitor->request, fd);
  if (answer < 0) fail(walk, name, -answer);
  else if (answer == visit_changed) walk->result->changed++;
  else if (answer == visit_left) walk->result->left++;
}

// Keeps the name of a directory of this level for later.
static void keep_name(struct walk *walk, const char *name) {
  struct level *level = top_of(walk);
  size_t length = strlen(name) + 1;
  if (level->room - level->used < length) {
    size_t room = 2 * level->room + length + 64;
    char *names = realloc(level->names, room);
    if (names == NULL) return fail(walk, name, ENOMEM);
    level->names = names;
    level->room = room;
  }
  memcpy(level->names + level->used, name, length);
  level->used += length;
}

// An entry of the present directory, without an effect on it; -1 where there is nothing to do. Gone meanwhile is nothing.
static int open_entry(struct walk *walk, const char *name, struct stat *stat) {
  int fd = open_in(top_of(walk)->fd, name, O_PATH);
  if (fd >= 0 && fstat(fd, stat) == 0) return fd;
  int error = errno;
  if (fd >= 0) close(fd);
  if (error == EXDEV) walk->result->mounts++;
  else if (error != ENOENT) fail(walk, name, error);
  return -1;
}

// Visits every entry of the present directory, and keeps the names of those that are directories.
static void read_directory(struct walk *walk) {
  static char entries[65536] __attribute__((aligned(16)));
  int directory = top_of(walk)->fd;
  ssize_t bytes;
  while ((bytes = getdents64(directory, entries, sizeof entries)) > 0) {
    for (ssize_t at = 0; at < bytes;) {
      const struct dirent64 *entry = (const struct dirent64 *)(entries + at);
      const char *name = entry->d_name;
      struct stat stat;
      at += entry->d_reclen;
      if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) continue;
      int fd = entry->d_type == DT_DIR ? -1 : open_entry(walk, name, &stat);
      if (entry->d_type == DT_DIR || (fd >= 0 && S_ISDIR(stat.st_mode))) keep_name(walk, name);
      else if (fd >= 0) visit(walk, fd, &stat, name);
      if (fd >= 0) close(fd);
    }
  }
  if (bytes < 0) fail(walk, ".", errno);
}

// Adds the directory of an open descriptor, which is the walk's from here on, as the present one. 0 or an errno.
static int descend(struct walk *walk, int fd, const struct stat *stat) {
  if (walk->depth == walk->room) {
    size_t room = 2 * walk->room + 64;
    struct level *levels = realloc(walk->levels, room * sizeof *levels);
    if (levels == NULL) return ENOMEM;
    walk->levels = levels;
    walk->room = room;
  }
  walk->levels[walk->depth++] = (struct level){.fd = fd, .device = stat->st_dev, .inode = stat->st_ino};
  // The first one stays open: it is where the walk goes on when the way back up has changed.
  if (walk->depth > most_open + 1) {
    struct level *distant = &walk->levels[walk->depth - most_open - 1];
    close(distant->fd);
    distant->fd = -1;
  }
  read_directory(walk);
  return 0;
}

// Goes into the entry that was a directory when its name was read. What it is now is looked at anew.
static void enter(struct walk *walk, const char *name) {
  struct stat stat;
  int entry = open_entry(walk, name, &stat);
  if (entry < 0) return;
  if (!S_ISDIR(stat.st_mode)) {
    visit(walk, entry, &stat, name);
  } else if (is_kept(walk, name)) {
    walk->result->git_left++;
  } else {
    visit(walk, entry, &stat, name);
    int fd = open_in(entry, ".", O_RDONLY | O_DIRECTORY);
    int error = fd < 0 ? errno : descend(walk, fd, &stat);
    if (error != 0) fail(walk, name, error);
    if (error != 0 && fd >= 0) close(fd);
  }
  close(entry);
}

// Opens the level that is the present one now through the one below it. 0, or an errno: it is not above that any more.
static int reopen(struct level *level, int below) {
  struct stat stat;
  int fd = open_in(below, "..", O_RDONLY | O_DIRECTORY);
  if (fd < 0) return errno;
  if (fstat(fd, &stat) != 0 || stat.st_dev != level->device || stat.st_ino != level->inode) {
    close(fd);
    return ESTALE;
  }
  level->fd = fd;
  return 0;
}

// The last name of the present level that was not entered yet; NULL: none is left.
static const char *next_name(struct level *level) {
  if (level->used == 0) return NULL;
  const char *before = level->used < 2 ? NULL : memrchr(level->names, 0, level->used - 1);
  level->used = before == NULL ? 0 : (size_t)(before + 1 - level->names);
  return level->names + level->used;
}

// Leaves the present directory. Where the way back is lost, what was still to be entered there is told as failed, and
// the walk goes on in the nearest one that is still open.
static void ascend(struct walk *walk) {
  int below = top_of(walk)->fd, error = 0;
  free(top_of(walk)->names);
  walk->depth--;
  if (walk->depth > 0 && top_of(walk)->fd < 0) error = reopen(top_of(walk), below);
  while (error != 0 && top_of(walk)->fd < 0) {
    struct level *level = top_of(walk);
    for (const char *name = next_name(level); name != NULL; name = next_name(level)) fail(walk, name, error);
    free(level->names);
    walk->depth--;
  }
  close(below);
}

int walk_project(const struct project *project, const struct visitor *visitor, struct walked *result) {
  struct walk walk = {.visitor = visitor, .result = result};
  struct stat stat;
  memset(result, 0, sizeof *result);
  int fd = open(project->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return errno;
  int error = fstat(fd, &stat) != 0 ? errno : 0;
  if (error == 0 && ((double)stat.st_dev != project->device || (double)stat.st_ino != project->inode)) error = ESTALE;
  // A kernel without openat2(2), or a filter that refuses it: nothing is done rather than done with less care.
  int itself = error != 0 ? -1 : open_in(fd, ".", O_PATH);
  if (error == 0 && itself < 0) error = errno;
  if (error == 0) {
    visit(&walk, itself, &stat, ".");
    close(itself);
    error = descend(&walk, fd, &stat);
  }
  if (error != 0) {
    close(fd);
    return error;
  }
  while (walk.depth > 0) {
    const char *name = next_name(top_of(&walk));
    if (name == NULL) ascend(&walk);
    else enter(&walk, name);
  }
  free(walk.levels);
  return 0;
}
