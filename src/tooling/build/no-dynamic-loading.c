// SPDX-License-Identifier: Apache-2.0
// The executables are static and load no code. QuickJS's library refers to these functions for native modules; the
// linker (--wrap) gives it these instead of the C library's, and they only say no.

#include <stddef.h>

void *__wrap_dlopen(const char *path, int flags) {
  (void)path;
  (void)flags;
  return NULL;
}

void *__wrap_dlsym(void *handle, const char *name) {
  (void)handle;
  (void)name;
  return NULL;
}

int __wrap_dlclose(void *handle) {
  (void)handle;
  return -1;
}
