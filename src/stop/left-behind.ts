// SPDX-License-Identifier: Apache-2.0
// What a stop does not undo and a person should know: the account's crontab and `at` jobs start things again later.

import type { Identity } from "./identity.ts";
import { isErrno, type KernelView } from "./kernel.ts";

const crontabs = ["/var/spool/cron/crontabs/ai-tools", "/var/spool/cron/ai-tools"];
const atSpools = ["/var/spool/cron/atjobs", "/var/spool/at"];

/** Hints for the report, none where nothing was found. */
export function leftBehind(view: KernelView, identity: Identity): string[] {
  const hints: string[] = [];
  const crontab = crontabs.find((path) => !isErrno(view.lstat(path)));
  if (crontab !== undefined) {
    hints.push(
      `The account has a crontab (${crontab}): it starts things again. To remove it, as root: crontab -r -u ai-tools`,
    );
  }
  const jobs = atSpools.flatMap((spool) => {
    const names = view.list(spool);
    return isErrno(names) ? [] : names.map((name) => view.lstat(`${spool}/${name}`));
  });
  if (jobs.some((stat) => !isErrno(stat) && stat.kind === "file" && stat.uid === identity.uid)) {
    hints.push(
      "The account has at jobs: they start things again. To see them, as root: atq; to remove one: atrm NUMBER",
    );
  }
  return hints;
}
