// SPDX-License-Identifier: Apache-2.0
// The helper competes for the processor with what it has to end: a few hundred processes of the account that fork
// without pause leave a process of ordinary priority some thirty looks a second, and are faster. QuickJS has no call for a
// priority, so the executable asks for one before its main function.
//
// Best effort, silent: a container may not let it. Both priorities belong to this process, not to the operator's session,
// and end with it; programs that it starts have neither (sched(7), "Reset scheduling policy on fork"), and its own
// children of this executable do not ask. Round robin of the lowest rank, since a nice value counts for nothing against
// other sessions where autogroups are on (sched(7)).

#include <sched.h>
#include <string.h>
#include <sys/resource.h>

#include "unfiltered.h"

__attribute__((constructor)) static void ask_for_priority(int count, char **words) {
  // The recorder and its like, see src/stop/main.ts.
  if (count < 1 || strncmp(words[0], "ai-tools-stop: ", 15) == 0 || !is_unfiltered()) return;
  struct sched_param ordinary = {.sched_priority = 0}, lowest_rank = {.sched_priority = 1};
  struct rlimit endless = {RLIM_INFINITY, RLIM_INFINITY};
  sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &ordinary);
  setpriority(PRIO_PROCESS, 0, -20);
  // A caller's limit on realtime would end the helper in the middle of a look (setrlimit(2), RLIMIT_RTTIME).
  if (setrlimit(RLIMIT_RTTIME, &endless) == 0) sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &lowest_rank);
}
