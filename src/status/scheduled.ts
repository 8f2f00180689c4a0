// SPDX-License-Identifier: Apache-2.0
// Whether the account can leave something that starts later, when the stop is over: cron and at, by their files of who may
// use them (crontab(1), at.allow(5)), and what it left there already.

import { accountName } from "../stop/identity.ts";
import { EACCES, ENOENT, isErrno, type KernelView } from "../stop/kernel.ts";
import { broken, type Check, ok, unknown } from "./facts.ts";

/** Debian's place, then that of EL and Fedora. */
const crontabs = [`/var/spool/cron/crontabs/${accountName}`, `/var/spool/cron/${accountName}`];
const atSpools = ["/var/spool/cron/atjobs", "/var/spool/at"];

/** Closed to the account: `allow` alone decides where it is there; else whoever is not in `deny`. */
type Access = "closed" | "in allow" | "not in deny" | "neither file" | { unreadable: string };

function accessOf(view: KernelView, service: "cron" | "at"): Access {
  const allow = view.readText(`/etc/${service}.allow`);
  // Blanks around a name: one program takes it for the name, another does not. The worse of both counts.
  if (!isErrno(allow)) return linesOf(allow).some((line) => line.trim() === accountName) ? "in allow" : "closed";
  if (allow !== ENOENT) return { unreadable: `/etc/${service}.allow` };
  const deny = view.readText(`/etc/${service}.deny`);
  if (!isErrno(deny)) return linesOf(deny).includes(accountName) ? "closed" : "not in deny";
  return deny === ENOENT ? "neither file" : { unreadable: `/etc/${service}.deny` };
}

function linesOf(text: string): string[] {
  return text.split("\n");
}

/** Where neither file is there, Debian's cron lets everybody in, and cronie as it was built: taken for open. */
export function checkCron(view: KernelView): Check {
  const name = "cron";
  if (view.lstat("/usr/bin/crontab") === ENOENT) return ok(name, "not installed");
  const seen = crontabs.map((path) => ({ path, stat: view.lstat(path) }));
  const there = seen.find(({ stat }) => !isErrno(stat));
  if (there !== undefined) {
    return broken(
      name,
      `the account has a crontab (${there.path}): it starts things again after a stop`,
      `crontab -r -u ${accountName}`,
    );
  }
  const check = closed(name, accessOf(view, "cron"), "open");
  if (check.verdict === "ok" && seen.some(({ stat }) => stat === EACCES)) {
    return unknown(name, "closed to the account; whether it has a crontab already only root sees");
  }
  return check;
}

/** Where neither file is there, only root may use at. */
export function checkAt(view: KernelView, uid: number): Check {
  const name = "at";
  if (view.lstat("/usr/bin/at") === ENOENT) return ok(name, "not installed");
  const spools = atSpools.map((spool) => ({ spool, names: view.list(spool) }));
  const jobs = spools.flatMap(({ spool, names }) =>
    isErrno(names) ? [] : names.map((job) => view.lstat(`${spool}/${job}`)),
  );
  if (jobs.some((stat) => !isErrno(stat) && stat.kind === "file" && stat.uid === uid)) {
    return broken(
      name,
      "the account has at jobs: they start things again after a stop; atrm removes one by its number",
      "atq",
    );
  }
  const check = closed(name, accessOf(view, "at"), "closed");
  if (check.verdict === "ok" && spools.some(({ names }) => names === EACCES)) {
    return unknown(name, "closed to the account; whether it has jobs already only root sees");
  }
  return check;
}

function closed(name: "cron" | "at", access: Access, withoutFiles: "open" | "closed"): Check {
  if (typeof access === "object") return unknown(name, `${access.unreadable} is readable for root only`);
  if (access === "closed" || (access === "neither file" && withoutFiles === "closed")) {
    return ok(name, "closed to the account");
  }
  const repair =
    access === "in allow"
      ? `sed -i '/^ *${accountName} *$/d' /etc/${name}.allow`
      : `printf '\\n%s\\n' ${accountName} >> /etc/${name}.deny`;
  return broken(name, "open to the account: a session can leave what starts again after a stop", repair);
}
