// SPDX-License-Identifier: Apache-2.0
// The module "native" of the executables beside the stop: system calls that QuickJS has no function for, and nothing
// that could be said in TypeScript. Errors are negative errnos, as in its own module "os". Declared in native.d.ts.

#include "hand-back.h"
#include "quickjs.h"
#include "relabel.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

// umask(mask): the old mask. Records are to be readable whatever the caller's umask is.
static JSValue native_umask(JSContext *ctx, JSValueConst self, int count, JSValueConst *words) {
  int32_t mask;
  (void)self;
  (void)count;
  if (JS_ToInt32(ctx, &mask, words[0])) return JS_EXCEPTION;
  return JS_NewInt32(ctx, (int32_t)umask((mode_t)mask & 0777));
}

// flock(fd): 0, or -EWOULDBLOCK where another process has the lock. Two claims at once must see each other.
static JSValue native_flock(JSContext *ctx, JSValueConst self, int count, JSValueConst *words) {
  int32_t fd;
  (void)self;
  (void)count;
  if (JS_ToInt32(ctx, &fd, words[0])) return JS_EXCEPTION;
  return JS_NewInt32(ctx, flock(fd, LOCK_EX | LOCK_NB) == 0 ? 0 : -errno);
}

// A path as text; -EILSEQ where it would not come out again byte by byte, since QuickJS mangles what is no UTF-8.
static JSValue path_as_text(JSContext *ctx, const char *path) {
  if (path == NULL) return JS_NewInt32(ctx, -errno);
  JSValue text = JS_NewString(ctx, path);
  const char *again = JS_ToCString(ctx, text);
  int is_whole = again != NULL && strcmp(again, path) == 0;
  if (again == NULL) return JS_EXCEPTION;
  JS_FreeCString(ctx, again);
  if (is_whole) return text;
  JS_FreeValue(ctx, text);
  return JS_NewInt32(ctx, -EILSEQ);
}

// getcwd(): unlike os.getcwd it says when the name is not whole.
static JSValue native_getcwd(JSContext *ctx, JSValueConst self, int count, JSValueConst *words) {
  char path[PATH_MAX];
  (void)self;
  (void)count;
  (void)words;
  return path_as_text(ctx, getcwd(path, sizeof path));
}

// realpath(path): the same for os.realpath.
static JSValue native_realpath(JSContext *ctx, JSValueConst self, int count, JSValueConst *words) {
  char real[PATH_MAX];
  (void)self;
  (void)count;
  const char *path = JS_ToCString(ctx, words[0]);
  if (path == NULL) return JS_EXCEPTION;
  JSValue text = path_as_text(ctx, realpath(path, real));
  JS_FreeCString(ctx, path);
  return text;
}

// The very directory that is meant, as a descriptor; -errno where the path leads to another one or through a last link.
static int open_directory(const char *path, double device, double inode, double uid) {
  struct stat stat;
  int fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return -errno;
  int error = fstat(fd, &stat) != 0 ? errno : 0;
  int is_same = (double)stat.st_dev == device && (double)stat.st_ino == inode && (double)stat.st_uid == uid;
  if (error == 0 && !is_same) error = ESTALE;
  if (error == 0) return fd;
  close(fd);
  return -error;
}

// bindDirectory(path, device, inode, uid, place): 0 or -errno. What is mounted is the descriptor that was compared, alone,
// without what is mounted below it. Private: or the end of this mount would be the end of the host's own ones below it.
static JSValue native_bind_directory(JSContext *ctx, JSValueConst self, int count, JSValueConst *words) {
  double numbers[3];
  char source[64];
  (void)self;
  (void)count;
  for (int index = 0; index < 3; index++)
    if (JS_ToFloat64(ctx, &numbers[index], words[1 + index])) return JS_EXCEPTION;
  const char *path = JS_ToCString(ctx, words[0]), *place = JS_ToCString(ctx, words[4]);
  if (path == NULL || place == NULL) return JS_EXCEPTION;
  int fd = open_directory(path, numbers[0], numbers[1], numbers[2]);
  int error = fd < 0 ? -fd : 0;
  if (error == 0) {
    snprintf(source, sizeof source, "/proc/self/fd/%d", fd);
    if (mount(source, place, NULL, MS_BIND, NULL) != 0) error = errno;
    if (error == 0 && mount(NULL, place, NULL, MS_PRIVATE, NULL) != 0) {
      error = errno;
      umount2(place, MNT_DETACH | UMOUNT_NOFOLLOW);
    }
    close(fd);
  }
  JS_FreeCString(ctx, path);
  JS_FreeCString(ctx, place);
  return JS_NewInt32(ctx, -error);
}

// unbindDirectory(place): 0 or -errno; -EINVAL where nothing is mounted there.
static JSValue native_unbind_directory(JSContext *ctx, JSValueConst self, int count, JSValueConst *words) {
  (void)self;
  (void)count;
  const char *place = JS_ToCString(ctx, words[0]);
  if (place == NULL) return JS_EXCEPTION;
  int error = umount2(place, MNT_DETACH | UMOUNT_NOFOLLOW) != 0 ? errno : 0;
  JS_FreeCString(ctx, place);
  return JS_NewInt32(ctx, -error);
}

// mkfifo(path, mode): 0 or -errno.
static JSValue native_mkfifo(JSContext *ctx, JSValueConst self, int count, JSValueConst *words) {
  int32_t mode;
  (void)self;
  (void)count;
  if (JS_ToInt32(ctx, &mode, words[1])) return JS_EXCEPTION;
  const char *path = JS_ToCString(ctx, words[0]);
  if (path == NULL) return JS_EXCEPTION;
  int error = mkfifo(path, (mode_t)mode & 0777) != 0 ? errno : 0;
  JS_FreeCString(ctx, path);
  return JS_NewInt32(ctx, -error);
}

// fileContext(path): the SELinux context of a file, of a link itself, or -errno; -EINVAL where it is no plain text.
static JSValue native_file_context(JSContext *ctx, JSValueConst self, int count, JSValueConst *words) {
  char context[most_context_bytes];
  (void)self;
  (void)count;
  const char *path = JS_ToCString(ctx, words[0]);
  if (path == NULL) return JS_EXCEPTION;
  int error = read_context(path, 1, context);
  JS_FreeCString(ctx, path);
  return error != 0 ? JS_NewInt32(ctx, -error) : JS_NewString(ctx, context);
}

// Whoever waits for a walk must be able to end it, and no handler of QuickJS runs in it. What is ignored stays ignored.
static void let_end(int signal, struct sigaction *before) {
  struct sigaction by_default = {.sa_handler = SIG_DFL};
  sigaction(signal, NULL, before);
  if (before->sa_handler != SIG_IGN) sigaction(signal, &by_default, NULL);
}

static JSValue result_as_object(JSContext *ctx, const struct walked *result) {
  JSValue object = JS_NewObject(ctx), failures = JS_NewArray(ctx);
  for (int index = 0; index < result->failures_kept; index++) {
    const struct failure *failure = &result->failures[index];
    JSValue entry = JS_NewObject(ctx);
    JS_SetPropertyStr(ctx, entry, "path",
                      JS_NewArrayBufferCopy(ctx, (const uint8_t *)failure->path, failure->path_bytes));
    JS_SetPropertyStr(ctx, entry, "errno", JS_NewInt32(ctx, failure->error));
    JS_SetPropertyUint32(ctx, failures, (uint32_t)index, entry);
  }
  JS_SetPropertyStr(ctx, object, "changed", JS_NewInt64(ctx, (int64_t)result->changed));
  JS_SetPropertyStr(ctx, object, "left", JS_NewInt64(ctx, (int64_t)result->left));
  JS_SetPropertyStr(ctx, object, "gitLeft", JS_NewInt64(ctx, (int64_t)result->git_left));
  JS_SetPropertyStr(ctx, object, "mounts", JS_NewInt64(ctx, (int64_t)result->mounts));
  JS_SetPropertyStr(ctx, object, "failed", JS_NewInt64(ctx, (int64_t)result->failed));
  JS_SetPropertyStr(ctx, object, "failures", failures);
  return object;
}

// The project of the first three words; its path is to be freed. An exception where it is none.
static int get_project(JSContext *ctx, JSValueConst *words, struct project *project) {
  if (JS_ToFloat64(ctx, &project->device, words[1]) || JS_ToFloat64(ctx, &project->inode, words[2])) return -1;
  size_t length;
  project->path = JS_ToCStringLen(ctx, &length, words[0]);
  if (project->path == NULL) return -1;
  if (strlen(project->path) == length) return 0;
  JS_ThrowTypeError(ctx, "a path with a NUL in it");
  return -1;
}

// relabel(path, device, inode, owner, account, from, to): see relabel.c. Numbers that are no uid are -EINVAL.
static JSValue native_relabel(JSContext *ctx, JSValueConst self, int count, JSValueConst *words) {
  struct relabel request = {0};
  struct walked result;
  int64_t owner, account;
  (void)self;
  (void)count;
  if (JS_ToInt64(ctx, &owner, words[3]) || JS_ToInt64(ctx, &account, words[4])) return JS_EXCEPTION;
  if (owner <= 0 || owner >= UINT32_MAX || account <= 0 || account >= UINT32_MAX) return JS_NewInt32(ctx, -EINVAL);
  request.owner = (uid_t)owner;
  request.account = (uid_t)account;
  request.from = JS_ToCString(ctx, words[5]);
  request.to = JS_ToCString(ctx, words[6]);
  if (request.from == NULL || request.to == NULL || get_project(ctx, words, &request.project)) return JS_EXCEPTION;
  int error = relabel(&request, &result);
  JS_FreeCString(ctx, request.project.path);
  JS_FreeCString(ctx, request.from);
  JS_FreeCString(ctx, request.to);
  return error != 0 ? JS_NewInt32(ctx, -error) : result_as_object(ctx, &result);
}

// handBack(path, device, inode, from, uid, gid, withGit): see hand-back.c. Numbers that are no uid are -EINVAL.
static JSValue native_hand_back(JSContext *ctx, JSValueConst self, int count, JSValueConst *words) {
  struct hand_back request = {0};
  struct walked result;
  struct sigaction interrupt, terminate;
  int64_t numbers[3];
  (void)self;
  (void)count;
  if (get_project(ctx, words, &request.project)) return JS_EXCEPTION;
  for (int index = 0; index < 3; index++) {
    if (JS_ToInt64(ctx, &numbers[index], words[3 + index])) return JS_EXCEPTION;
    if (numbers[index] <= 0 || numbers[index] >= UINT32_MAX) numbers[index] = 0;
  }
  request.from = (uid_t)numbers[0];
  request.uid = (uid_t)numbers[1];
  request.gid = (gid_t)numbers[2];
  request.with_git = JS_ToBool(ctx, words[6]);
  let_end(SIGINT, &interrupt);
  let_end(SIGTERM, &terminate);
  int error = hand_back(&request, &result);
  sigaction(SIGINT, &interrupt, NULL);
  sigaction(SIGTERM, &terminate, NULL);
  JS_FreeCString(ctx, request.project.path);
  return error != 0 ? JS_NewInt32(ctx, -error) : result_as_object(ctx, &result);
}

static const JSCFunctionListEntry functions[] = {
    JS_CFUNC_DEF("umask", 1, native_umask),       JS_CFUNC_DEF("flock", 1, native_flock),
    JS_CFUNC_DEF("getcwd", 0, native_getcwd),     JS_CFUNC_DEF("realpath", 1, native_realpath),
    JS_CFUNC_DEF("handBack", 7, native_hand_back),
    JS_CFUNC_DEF("bindDirectory", 5, native_bind_directory),
    JS_CFUNC_DEF("unbindDirectory", 1, native_unbind_directory),
    JS_CFUNC_DEF("fileContext", 1, native_file_context), JS_CFUNC_DEF("relabel", 7, native_relabel),
    JS_CFUNC_DEF("mkfifo", 2, native_mkfifo),
};

static int add_functions(JSContext *ctx, JSModuleDef *module) {
  return JS_SetModuleExportList(ctx, module, functions, sizeof functions / sizeof functions[0]);
}

// Called by the main function that qjsc makes (option -M).
JSModuleDef *js_init_module_native(JSContext *ctx, const char *name) {
  JSModuleDef *module = JS_NewCModule(ctx, name, add_functions);
  if (module != NULL) JS_AddModuleExportList(ctx, module, functions, sizeof functions / sizeof functions[0]);
  return module;
}
