// SPDX-License-Identifier: Apache-2.0
// Hung files, no temper of a session: a FUSE file system whose daemon takes every question and answers none, so that who
// asks sits in state D, also after SIGKILL, until the connection is aborted or this one ends. Called as
// `hung-files PLACE OWNER SECONDS` by root; the connection belongs to OWNER.

#include <linux/fuse.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>

#include "temper.h"

static char request[1 << 20];

static void read_request(int daemon) {
  if (read(daemon, request, sizeof request) < 0) fail("read");
}

// The kernel asks nothing else before this is answered, and who waits for it can still be killed.
static void answer_init(int daemon) {
  read_request(daemon);
  struct {
    struct fuse_out_header header;
    struct fuse_init_out body;
  } answer = {
      .header = {.len = sizeof answer, .unique = ((struct fuse_in_header *)request)->unique},
      .body = {.major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION, .max_write = 4096},
  };
  if (write(daemon, &answer, sizeof answer) != sizeof answer) fail("write");
}

int main(int argc, char **argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: %s PLACE OWNER SECONDS\n", argv[0]);
    return 64;
  }
  longest_life_s = atoi(argv[3]);
  keep_an_end();
  if (mknod("/dev/fuse", S_IFCHR | 0666, makedev(10, 229)) && errno != EEXIST) fail("mknod");
  if (mkdir(argv[1], 0755) && errno != EEXIST) fail("mkdir");
  int daemon = open("/dev/fuse", O_RDWR | O_CLOEXEC);
  if (daemon < 0) fail("/dev/fuse");
  char options[200];
  snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=%s,group_id=0,allow_other", daemon, argv[2]);
  if (mount("lab", argv[1], "fuse", 0, options)) fail("mount");
  answer_init(daemon);
  for (;;) read_request(daemon);
}
