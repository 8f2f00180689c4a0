// SPDX-License-Identifier: Apache-2.0
// The helper competes for the processor with what it has to end: a few hundred processes of the account that fork
// without pause leave a process of ordinary priority some thirty looks a second, and are faster. QuickJS has no call for a
// priority, so the executable asks for one before its main function.
//
// Best effort, silent: a container may not let it. Both priorities belong to this process alone, not to the operator's
// session, and end with it; what it starts has neither (sched(7), "Reset scheduling policy on fork"). Round robin of the
// lowest rank, since a nice value counts for nothing against other sessions where autogroups are on (sched(7)); the kernel
// keeps a twentieth of each processor for everybody else (sched_rt_runtime_us).

#include <sched.h>
#include <sys/resource.h>

__attribute__((constructor)) static void ask_for_priority(void) {
  struct sched_param ordinary = {.sched_priority = 0}, lowest_rank = {.sched_priority = 1};
  sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &ordinary);
  setpriority(PRIO_PROCESS, 0, -20);
  sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &lowest_rank);
}
