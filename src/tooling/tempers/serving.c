// SPDX-License-Identifier: Apache-2.0
// Serving: works under one uid and reaches files under another, as servers of files do. Called as `serving COUNTER-FILE
// SECONDS UID FILE-UID` by root.

#include "temper.h"

#include <linux/securebits.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>

int main(int argc, char **argv) {
  begin_with_words(argc, argv, 2);
  uid_t uid = (uid_t)atoi(argv[3]), file_uid = (uid_t)atoi(argv[4]);
  on_signal(SIGTERM, SIG_IGN);
  // The change of uid keeps the capabilities, so that any uid may reach the files afterwards.
  if (prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP)) fail("prctl");
  if (setresuid(uid, uid, uid)) fail("setresuid");
  setfsuid(file_uid);
  if ((uid_t)setfsuid((uid_t)-1) != file_uid) fail("setfsuid");
  tick_for_ever();
}
