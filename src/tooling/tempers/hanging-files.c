// SPDX-License-Identifier: Apache-2.0
// Hanging files, no temper of a session: a FUSE file system with one file, `file`, that can be opened and written, until
// a sign file exists; from then on nobody gets an answer any more. Called as `hanging-files PLACE SIGN SECONDS` by root.

#include <linux/fuse.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>

#include "temper.h"

static char request[1 << 20];
static int daemon_file;

static void answer(uint64_t unique, int error, const void *body, size_t length) {
  static char out[4096];
  struct fuse_out_header header = {.len = sizeof header + length, .error = -error, .unique = unique};
  memcpy(out, &header, sizeof header);
  if (length > 0) memcpy(out + sizeof header, body, length);
  // ENOENT: who asked has gone.
  if (write(daemon_file, out, header.len) < 0 && errno != ENOENT) fail("write");
}

// Nothing is remembered by the kernel (no validity), so that everything is asked again.
static struct fuse_attr attributes_of(uint64_t node) {
  return (struct fuse_attr){.ino = node, .nlink = 1, .mode = node == 1 ? S_IFDIR | 0755 : S_IFREG | 0666};
}

static void serve(void) {
  struct fuse_in_header *in = (struct fuse_in_header *)request;
  if (in->opcode == FUSE_INIT) {
    struct fuse_init_out out = {
        .major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION, .max_write = 4096};
    answer(in->unique, 0, &out, sizeof out);
  } else if (in->opcode == FUSE_LOOKUP) {
    struct fuse_entry_out out = {.nodeid = 2, .attr = attributes_of(2)};
    answer(in->unique, 0, &out, sizeof out);
  } else if (in->opcode == FUSE_GETATTR) {
    struct fuse_attr_out out = {.attr = attributes_of(in->nodeid)};
    answer(in->unique, 0, &out, sizeof out);
  } else if (in->opcode == FUSE_OPEN) {
    struct fuse_open_out out = {.open_flags = FOPEN_DIRECT_IO};
    answer(in->unique, 0, &out, sizeof out);
  } else if (in->opcode == FUSE_WRITE) {
    struct fuse_write_out out = {.size = ((struct fuse_write_in *)(in + 1))->size};
    answer(in->unique, 0, &out, sizeof out);
  } else if (in->opcode == FUSE_RELEASE) {
    answer(in->unique, 0, NULL, 0);
  } else if (in->opcode != FUSE_FORGET && in->opcode != FUSE_BATCH_FORGET && in->opcode != FUSE_INTERRUPT) {
    answer(in->unique, ENOSYS, NULL, 0);
  }
}

int main(int argc, char **argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: %s PLACE SIGN SECONDS\n", argv[0]);
    return 64;
  }
  longest_life_s = atoi(argv[3]);
  keep_an_end();
  if (mknod("/dev/fuse", S_IFCHR | 0666, makedev(10, 229)) && errno != EEXIST) fail("mknod");
  if (mkdir(argv[1], 0755) && errno != EEXIST) fail("mkdir");
  daemon_file = open("/dev/fuse", O_RDWR | O_CLOEXEC);
  if (daemon_file < 0) fail("/dev/fuse");
  char options[200];
  snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", daemon_file);
  if (mount("lab", argv[1], "fuse", 0, options)) fail("mount");
  for (;;) {
    if (read(daemon_file, request, sizeof request) < 0) fail("read");
    if (access(argv[2], F_OK) != 0) serve();
  }
}
