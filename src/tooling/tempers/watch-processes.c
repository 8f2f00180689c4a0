// SPDX-License-Identifier: Apache-2.0
// No temper: counts, look after look, the living processes in each cgroup that have one uid among their four or whose
// cgroup begins with a prefix, and how many SIGTERM the payloads were told of. It reads /proc and the counters itself and
// starts no process, so that it changes nothing for whoever looks for processes at the same time. A look is the line
// `@MS TERMS` (wall clock) and a line `COUNT CGROUP` for each cgroup, or `@MS TERMS =` when all counts are as before.

#include <dirent.h>

#include "temper.h"

#define LONGEST_WATCH_S 300
#define MOST_CGROUPS 256
#define MOST_FILES 64
#define LONGEST_PATH 512
#define LONGEST_LOOK (MOST_CGROUPS * (LONGEST_PATH + 16))

struct place {
  char cgroup[LONGEST_PATH];
  int count;
};

static struct place places[MOST_CGROUPS];
static int places_used;
static int counter_files[MOST_FILES];
static int counter_files_used;

// Answers with the length; 0 for a process that went away between the listing and the reading.
static int read_proc(const char *pid, const char *name, char *text, size_t size) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%.20s/%s", pid, name);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  ssize_t length = read(file, text, size - 1);
  close(file);
  text[length < 0 ? 0 : length] = 0;
  return length < 0 ? 0 : (int)length;
}

static const char *field(const char *status, const char *name) {
  const char *at = strstr(status, name);
  return at ? at + strlen(name) : "";
}

static int has_uid(const char *status, int uid) {
  int ids[4] = {-1, -1, -1, -1};
  sscanf(field(status, "\nUid:"), "%d %d %d %d", &ids[0], &ids[1], &ids[2], &ids[3]);
  return ids[0] == uid || ids[1] == uid || ids[2] == uid || ids[3] == uid;
}

// A zombie with other threads works on.
static int is_living(const char *status) {
  char state = '?';
  int threads = 0;
  sscanf(field(status, "\nState:"), " %c", &state);
  sscanf(field(status, "\nThreads:"), "%d", &threads);
  return !((state == 'Z' || state == 'X') && threads <= 1);
}

static void count_in(const char *cgroup) {
  for (int i = 0; i < places_used; i++) {
    if (strcmp(places[i].cgroup, cgroup)) continue;
    places[i].count++;
    return;
  }
  if (places_used == MOST_CGROUPS) {
    errno = EOVERFLOW;
    fail("cgroups");
  }
  snprintf(places[places_used].cgroup, LONGEST_PATH, "%s", cgroup);
  places[places_used++].count = 1;
}

static void count_process(const char *pid, int uid, const char *prefix) {
  char status[4096], cgroups[4096];
  if (!read_proc(pid, "status", status, sizeof status) || !is_living(status)) return;
  if (!read_proc(pid, "cgroup", cgroups, sizeof cgroups)) return;
  char *own = strstr(cgroups, "0::");
  char *cgroup = own ? own + 3 : "unknown";
  cgroup[strcspn(cgroup, "\n")] = 0;
  if (has_uid(status, uid) || !strncmp(cgroup, prefix, strlen(prefix))) count_in(cgroup);
}

static void open_counter_files(const char *directory) {
  DIR *listing = opendir(directory);
  if (!listing || chdir(directory)) fail(directory);
  struct dirent *entry;
  while ((entry = readdir(listing)) && counter_files_used < MOST_FILES) {
    int file = entry->d_name[0] == '.' ? -1 : open(entry->d_name, O_RDONLY | O_CLOEXEC);
    if (file >= 0) counter_files[counter_files_used++] = file;
  }
  closedir(listing);
}

static unsigned long long terms_told(void) {
  unsigned long long terms = 0;
  for (int i = 0; i < counter_files_used; i++) {
    struct slot table[SLOTS] = {0};
    if (pread(counter_files[i], table, sizeof table, 0) < 0) fail("counters");
    for (int number = 1; number < SLOTS; number++) terms += table[number].terms;
  }
  return terms;
}

static long long wall_clock_ms(void) {
  struct timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now)) fail("clock_gettime");
  return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

static void look(int uid, const char *prefix) {
  static char text[LONGEST_LOOK], before[LONGEST_LOOK];
  char head[96];
  long long at_ms = wall_clock_ms();
  for (int i = 0; i < places_used; i++) places[i].count = 0;
  DIR *proc = opendir("/proc");
  if (!proc) fail("/proc");
  struct dirent *entry;
  while ((entry = readdir(proc)))
    if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9') count_process(entry->d_name, uid, prefix);
  closedir(proc);
  size_t length = 0;
  text[0] = 0;
  for (int i = 0; i < places_used; i++)
    length += (size_t)snprintf(text + length, sizeof text - length, "%d %s\n", places[i].count, places[i].cgroup);
  int same = !strcmp(text, before);
  int head_length = snprintf(head, sizeof head, "@%lld %llu%s\n", at_ms, terms_told(), same ? " =" : "");
  if (write(1, head, (size_t)head_length) != head_length) fail("write");
  if (!same && write(1, text, length) != (ssize_t)length) fail("write");
  strcpy(before, text);
}

int main(int argc, char **argv) {
  if (argc != 5) {
    fprintf(stderr, "usage: %s UID PERIOD-MS CGROUP-PREFIX COUNTER-DIRECTORY\n", argv[0]);
    return 64;
  }
  int uid = atoi(argv[1]);
  useconds_t period_us = (useconds_t)atoi(argv[2]) * 1000;
  longest_life_s = LONGEST_WATCH_S;
  keep_an_end();
  open_counter_files(argv[4]);
  for (;;) {
    look(uid, argv[3]);
    usleep(period_us);
  }
}
