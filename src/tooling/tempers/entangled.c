// SPDX-License-Identifier: Apache-2.0
// Entangled: a FUSE daemon that asks its own file system and never answers, so that after SIGKILL one of its threads
// waits for itself for ever, its connection open, until somebody aborts that. Called as `entangled COUNTER-FILE SECONDS
// PLACE UID` by root; daemon and connection are UID's.

#include "temper.h"

#include <linux/fuse.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>

static char request[1 << 20];
static char path[4096];

static struct fuse_in_header *next_request(int connection) {
  if (read(connection, request, sizeof request) < 0) fail("read");
  return (struct fuse_in_header *)request;
}

static void answer_init(int connection) {
  struct {
    struct fuse_out_header header;
    struct fuse_init_out body;
  } answer = {
      .header = {.len = sizeof answer, .unique = next_request(connection)->unique},
      .body = {.major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION, .max_write = 4096},
  };
  if (write(connection, &answer, sizeof answer) != sizeof answer) fail("write");
}

static void *ask(void *nothing) {
  struct stat found;
  stat(path, &found);
  return nothing;
}

int main(int argc, char **argv) {
  begin_with_words(argc, argv, 2);
  if (mknod("/dev/fuse", S_IFCHR | 0666, makedev(10, 229)) && errno != EEXIST) fail("mknod");
  if (mkdir(argv[3], 0755) && errno != EEXIST) fail("mkdir");
  int connection = open("/dev/fuse", O_RDWR | O_CLOEXEC);
  if (connection < 0) fail("/dev/fuse");
  char options[200];
  snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=%s,group_id=0,allow_other", connection, argv[4]);
  if (mount("lab", argv[3], "fuse", 0, options)) fail("mount");
  answer_init(connection);
  uid_t uid = (uid_t)atoi(argv[4]);
  if (setresuid(uid, uid, uid)) fail("setresuid");
  snprintf(path, sizeof path, "%s/file", argv[3]);
  pthread_t asking;
  if (pthread_create(&asking, NULL, ask, NULL)) fail("pthread_create");
  // The question is taken, so that no signal calls it back any more.
  next_request(connection);
  tick_for_ever();
}
