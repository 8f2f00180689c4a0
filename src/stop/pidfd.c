// SPDX-License-Identifier: Apache-2.0
// The module "pidfd" of every static executable: a process is held by a descriptor before it is looked at, and signalled
// through that descriptor. A number can be somebody else's between the look and the signal; a descriptor never is.
//
// QuickJS has no function for either call. Errors are negative errnos, as in its own module "os". Declared in quickjs.d.ts.

#include "quickjs.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

// The same numbers on every architecture; the headers of old distributions do not have them.
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

// open(pid): pidfd_open(2), Linux 5.3. The descriptor is closed at an execve(2) by itself.
static JSValue pidfd_open(JSContext *ctx, JSValueConst self, int count, JSValueConst *words) {
  int32_t pid;
  (void)self;
  (void)count;
  if (JS_ToInt32(ctx, &pid, words[0])) return JS_EXCEPTION;
  long fd = syscall(SYS_pidfd_open, pid, 0);
  return JS_NewInt32(ctx, fd < 0 ? -errno : (int32_t)fd);
}

// signal(fd, number): pidfd_send_signal(2), Linux 5.1; 0, or -ESRCH once the process has been reaped.
static JSValue pidfd_signal(JSContext *ctx, JSValueConst self, int count, JSValueConst *words) {
  int32_t fd, number;
  (void)self;
  (void)count;
  if (JS_ToInt32(ctx, &fd, words[0]) || JS_ToInt32(ctx, &number, words[1])) return JS_EXCEPTION;
  return JS_NewInt32(ctx, syscall(SYS_pidfd_send_signal, fd, number, NULL, 0) == 0 ? 0 : -errno);
}

static const JSCFunctionListEntry functions[] = {
    JS_CFUNC_DEF("open", 1, pidfd_open),
    JS_CFUNC_DEF("signal", 2, pidfd_signal),
};

static int add_functions(JSContext *ctx, JSModuleDef *module) {
  return JS_SetModuleExportList(ctx, module, functions, sizeof functions / sizeof functions[0]);
}

// Called by the main function that qjsc makes (option -M).
JSModuleDef *js_init_module_pidfd(JSContext *ctx, const char *name) {
  JSModuleDef *module = JS_NewCModule(ctx, name, add_functions);
  if (module != NULL) JS_AddModuleExportList(ctx, module, functions, sizeof functions / sizeof functions[0]);
  return module;
}
