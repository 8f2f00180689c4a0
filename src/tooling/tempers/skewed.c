// SPDX-License-Identifier: Apache-2.0
// Skewed: runs a command to whom the wall clock jumps when it sends its first signal, and to nobody else. Called as
// `skewed SECONDS COMMAND [WORD...]`; SECONDS may be negative. A tracer that hides the kernel's shared clock page from the
// command, so that each reading of a clock is a system call, and adds the seconds to what it answers.

#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pid_t command;
static long skew_s;
static int has_jumped;

static void fail(const char *what) {
  perror(what);
  exit(70);
}

static long peek(uintptr_t address) {
  errno = 0;
  long word = ptrace(PTRACE_PEEKDATA, command, address, NULL);
  if (errno) fail("PTRACE_PEEKDATA");
  return word;
}

static void poke(uintptr_t address, long word) {
  if (ptrace(PTRACE_POKEDATA, command, address, word)) fail("PTRACE_POKEDATA");
}

// Kinds of a stop at a system call (PTRACE_GET_SYSCALL_INFO, ptrace(2)); the C library may lack the names.
enum { ON_ENTRY = 1, ON_EXIT = 2 };
struct call {
  uint8_t op;
  uint8_t padding[3];
  uint32_t arch;
  uint64_t instruction_pointer;
  uint64_t stack_pointer;
  union {
    struct {
      uint64_t number;
      uint64_t arguments[6];
    } entry;
    struct {
      int64_t result;
      uint8_t is_error;
    } exit;
  };
};

static struct call present_call(void) {
  struct call call = {0};
  if (ptrace((enum __ptrace_request)0x420e, command, sizeof call, &call) < 0) fail("PTRACE_GET_SYSCALL_INFO");
  return call;
}

// At the first instruction the stack holds the count of arguments, these, the environment and the auxiliary vector.
static void hide_clock_page(void) {
  uintptr_t at = present_call().stack_pointer;
  at += (uintptr_t)(peek(at) + 2) * sizeof(long);
  while (peek(at) != 0) at += sizeof(long);
  for (at += sizeof(long); peek(at) != AT_NULL; at += 2 * sizeof(long))
    if (peek(at) == AT_SYSINFO_EHDR) poke(at, AT_IGNORE);
}

static int reads_wall_clock(const struct call *call) {
  if (call->entry.number == SYS_gettimeofday) return 1;
  if (call->entry.number != SYS_clock_gettime) return 0;
  return call->entry.arguments[0] == CLOCK_REALTIME || call->entry.arguments[0] == CLOCK_REALTIME_COARSE;
}

// Both answers begin with their seconds, at the first argument of the one call and the second of the other.
static void watch_call(void) {
  static uintptr_t answer;
  struct call call = present_call();
  if (call.op == ON_ENTRY) {
    answer = reads_wall_clock(&call) ? call.entry.arguments[call.entry.number == SYS_clock_gettime] : 0;
    if (call.entry.number == SYS_kill || call.entry.number == SYS_pidfd_send_signal) has_jumped = 1;
  } else if (call.op == ON_EXIT && answer != 0 && has_jumped && !call.exit.is_error) {
    poke(answer, peek(answer) + skew_s);
  }
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: %s SECONDS COMMAND [WORD...]\n", argv[0]);
    return 64;
  }
  skew_s = atol(argv[1]);
  command = fork();
  if (command < 0) fail("fork");
  if (command == 0) {
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL)) fail("PTRACE_TRACEME");
    execv(argv[2], &argv[2]);
    fail(argv[2]);
  }
  int status;
  if (waitpid(command, &status, 0) != command || !WIFSTOPPED(status)) fail("the command did not begin");
  if (ptrace(PTRACE_SETOPTIONS, command, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)) fail("PTRACE_SETOPTIONS");
  hide_clock_page();
  for (int pass_on = 0;;) {
    if (ptrace(PTRACE_SYSCALL, command, NULL, pass_on)) fail("PTRACE_SYSCALL");
    if (waitpid(command, &status, 0) != command) fail("waitpid");
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    if (WIFSIGNALED(status)) return 128 + WTERMSIG(status);
    pass_on = WSTOPSIG(status);
    if (pass_on != (SIGTRAP | 0x80)) continue;
    watch_call();
    pass_on = 0;
  }
}
