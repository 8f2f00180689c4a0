// SPDX-License-Identifier: Apache-2.0
// What every temper has in common: a counter of its own in a shared file, which shows that it runs, and an end of its
// own that the kernel keeps. A temper is called as `temper COUNTER-FILE [SECONDS]`; SECONDS is its longest life, 120
// when absent.

#ifndef TEMPER_H
#define TEMPER_H

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SLOTS 128
#define LONGEST_LIFE_S 120
// A temper that needs more than its neighbours defines this before it includes this file; at most 2,000.
#ifndef MOST_PROCESSES
#define MOST_PROCESSES 1000
#endif
#define TICK_US 2000

// One process of the payload. `ticks` grows while the process runs, whatever /proc says about it.
struct slot {
  uint64_t pid;
  uint64_t ticks;
  uint64_t terms; // how many SIGTERM it was told of
  uint64_t signs; // what the temper wants to be known besides (say, that it saved its work)
};

// Slot 0 is the file's head: its `pid` is the number of slots in use.
static struct slot *slots;
static struct slot *mine;
static int longest_life_s = LONGEST_LIFE_S;
static struct timespec begun;

static void fail(const char *what) {
  perror(what);
  exit(70);
}

// The kernel ends this process at its deadline, however deaf, stopped or headless it is. Not inherited by a fork.
static void keep_an_end(void) {
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
  struct itimerspec deadline = {.it_value = {.tv_sec = longest_life_s}};
  timer_t timer;
  if (timer_create(CLOCK_MONOTONIC, &event, &timer)) fail("timer_create");
  if (timer_settime(timer, 0, &deadline, NULL)) fail("timer_settime");
}

// To be called once by each process of the payload, also after a fork.
static void take_a_counter(void) {
  uint64_t number = __atomic_add_fetch(&slots[0].pid, 1, __ATOMIC_SEQ_CST);
  mine = &slots[1 + (number - 1) % (SLOTS - 1)];
  mine->pid = (uint64_t)getpid();
  keep_an_end();
}

static void open_counters(const char *path) {
  int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) fail(path);
  if (ftruncate(file, SLOTS * sizeof(struct slot))) fail("ftruncate");
  slots = mmap(NULL, SLOTS * sizeof(struct slot), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (slots == MAP_FAILED) fail("mmap");
  close(file);
}

static void begin(int argc, char **argv) {
  if (argc < 2 || argc > 3) {
    fprintf(stderr, "usage: %s COUNTER-FILE [SECONDS]\n", argv[0]);
    exit(64);
  }
  if (argc == 3) longest_life_s = atoi(argv[2]);
  struct rlimit limit = {MOST_PROCESSES, MOST_PROCESSES};
  if (setrlimit(RLIMIT_NPROC, &limit)) fail("setrlimit");
  if (clock_gettime(CLOCK_MONOTONIC, &begun)) fail("clock_gettime");
  open_counters(argv[1]);
  take_a_counter();
}

// For a temper with words of its own: `temper COUNTER-FILE SECONDS WORD...`.
static void begin_with_words(int argc, char **argv, int words) {
  if (argc != 3 + words) {
    fprintf(stderr, "usage: %s COUNTER-FILE SECONDS and %d words more\n", argv[0], words);
    exit(64);
  }
  begin(3, argv);
}

// The end of its own of a lineage, whose members keep no counter of theirs.
static int is_past_end(void) {
  struct timespec now;
  if (clock_gettime(CLOCK_MONOTONIC, &now)) fail("clock_gettime");
  return now.tv_sec - begun.tv_sec >= longest_life_s;
}

static void tick(void) {
  __atomic_add_fetch(&mine->ticks, 1, __ATOMIC_RELAXED);
  usleep(TICK_US);
}

static void tick_for_ever(void) {
  for (;;) tick();
}

static void on_signal(int number, void (*handler)(int)) {
  struct sigaction action = {.sa_handler = handler};
  if (sigaction(number, &action, NULL)) fail("sigaction");
}

// Signals that cannot be ignored (KILL and STOP) answer EINVAL, as do the two that the C library keeps.
static void ignore_all_signals(void) {
  for (int number = 1; number < NSIG; number++) signal(number, SIG_IGN);
}

static pid_t fork_or_fail(void) {
  pid_t child = fork();
  if (child < 0) fail("fork");
  return child;
}

#endif
