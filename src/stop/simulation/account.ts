// SPDX-License-Identifier: Apache-2.0
// The sandbox account on a simulated host: its numbers, its places in the cgroup tree, its files, and the services that
// PID 1 keeps for it.

import { ensureCgroup } from "./cgroups.ts";
import type { Uids } from "./processes.ts";
import type { World } from "./world.ts";

export const accountUid = 990;
export const otherUid = 1001;
export const subordinateUid = 165_536;
export const recordedUid = 985;

export const slicePath = `/user.slice/user-${accountUid}.slice`;
export const managerPath = `${slicePath}/user@${accountUid}.service`;
export const runtimeDirectory = `/run/user/${accountUid}`;

export const accountUids: Uids = [accountUid, accountUid, accountUid, accountUid];

/** Names of cgroups in which a process of the account may be found, and their paths. */
export const places = {
  unit: `${slicePath}/ai-tools-claude-code-41.service`,
  app: `${managerPath}/app.slice/ai-tools-claude-code-42.service`,
  slice: slicePath,
  lookAlike: `${slicePath}/user@0.service/init.scope`,
  /** Cron, `sudo -u`, `User=`: outside the slice. */
  stray: "/system.slice/cron.service",
  unnameable: `${slicePath}/\u001b[2J\u00ff\u00e4 .service`,
  deep: `${slicePath}/${`${"x".repeat(250)}/`.repeat(17)}bottom.scope`,
  threaded: `${slicePath}/ai-tools-codex-43.service/threads`,
} as const;

export type Place = keyof typeof places;

export interface AccountOptions {
  /** A stray subordinate range that overlaps somebody else's is nobody's. */
  subordinateRange: "own" | "overlapping" | "none";
  lingering: boolean;
  /** The account can write what its manager reads when it starts. */
  homeWritable: boolean;
  /** Something is planted where a manager would run it. */
  planted: boolean;
  passwd: "ordinary" | "absent" | "uid-0" | "shared-uid";
}

export const ordinaryAccount: AccountOptions = {
  subordinateRange: "own",
  lingering: true,
  homeWritable: false,
  planted: false,
  passwd: "ordinary",
};

export const plantedInRuntime = `${runtimeDirectory}/systemd/user/planted.service`;
export const plantedInHome = "/var/lib/ai-tools/.config/systemd/user/planted.service";

/** The files and directories that a host with the package has. */
export function furnish(world: World, account: AccountOptions): void {
  const { files } = world;
  files.put("/etc/passwd", passwd(account));
  files.put("/etc/group", "root:x:0:\nai-ops:x:980:olga\n");
  files.put("/etc/subuid", subuid(account));
  files.put("/var/lib/ai-tools/uids", `${accountUid}\n${recordedUid}\n`);
  if (account.lingering) files.put("/var/lib/systemd/linger/ai-tools", "");
  files.directory("/var/lib/ai-tools", 0);
  files.directory("/var/lib/ai-tools/home", accountUid, 0o700);
  files.directory("/var/log/ai-tools", 0, 0o700);
  files.directory("/run/ai-tools/stop", 0);
  files.directory(runtimeDirectory, accountUid, 0o700);
  files.directory("/var/spool/cron/crontabs", 0, 0o1730);
  if (account.homeWritable) {
    files.directory("/var/lib/ai-tools/.config", accountUid, 0o755);
    files.directory("/var/lib/ai-tools/.config/systemd/user", accountUid, 0o755);
    files.put(plantedInHome, "[Service]\n", accountUid);
  }
  if (account.planted) files.put(plantedInRuntime, "[Service]\n", accountUid);
  ensureCgroup(world.root, slicePath);
  ensureCgroup(world.root, "/system.slice");
}

function passwd(account: AccountOptions): string {
  const line = (name: string, uid: number) => `${name}:x:${uid}:${uid}::/var/lib/${name}:/usr/sbin/nologin\n`;
  const uid = account.passwd === "uid-0" ? 0 : accountUid;
  return [
    "root:x:0:0:root:/root:/bin/bash\n",
    "daemon:x:1:1::/:/usr/sbin/nologin\n",
    ...(account.passwd === "absent" ? [] : [line("ai-tools", uid)]),
    ...(account.passwd === "shared-uid" ? [line("other-name", uid)] : []),
    "olga:x:1000:1000::/home/olga:/bin/bash\nursula:x:1001:1001::/home/ursula:/bin/bash\n",
  ].join("");
}

function subuid(account: AccountOptions): string {
  if (account.subordinateRange === "none") return "";
  const own = `ai-tools:${subordinateUid}:65536\n`;
  return account.subordinateRange === "own" ? `ursula:100000:65536\n${own}` : `ursula:100000:100000\n${own}`;
}
