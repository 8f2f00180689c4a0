// SPDX-License-Identifier: Apache-2.0
// The closing check of a fault in few calls, for files that try many faults on one host: the account's processes are
// gone by their counters and by the kernel, bystanders go on, PID 1 answers, the slice is neither frozen nor limited.
// That a new session starts is shown by the next case, which begins with one, and after the last one by `closeWith`.

import { afterAll, expect } from "vitest";

import type { LabHost } from "../../../src/tooling/lab/host.ts";
import { countersOnHost, tempersOnHost } from "../../../src/tooling/tempers/build-tempers.ts";
import { movedSince, parseCounters } from "../../../src/tooling/tempers/counters.ts";
import { accountUid, startBystanders, startPayload } from "../../../src/tooling/tempers/payloads.ts";
import { bystanders, expectAftermath, expectStopped, stopWatched, toldBystanders } from "./aftermath.ts";
import { clearHost, payloadsOf, restoredManager } from "./facts.ts";

/** Bystanders end by themselves after 600 s: they are renewed in time. */
const youngS = 300;

/** What one look at the host shows. */
export interface Calm {
  /** Payloads whose counters move. */
  running: string[];
  /** Bystanders that were told to end. */
  told: string[];
  /** Living processes of the account apart from its restored manager's own, bystanders left out, as `ps` lists them. */
  processes: string[];
  /** `cgroup.freeze` and `cgroup.max.descendants` of the slice, empty where there is no slice. */
  hampered: string;
  /** What PID 1 says of itself. */
  system: string;
  /** `systemctl is-active` of the account's manager. */
  manager: string;
}

/** Removes what an earlier case left of the account; starts the bystanders where they do not run. */
export async function calmHost(host: LabHost): Promise<void> {
  const young = `[ "$(ps -o etimes= -p "$(systemctl show -p MainPID --value $unit)" || echo 999)" -lt ${youngS} ]`;
  const units = bystanders.map((kind) => `lab-bystander-${kind}.service`).join(" ");
  const { code } = await host.run(["sh", "-c", `for unit in ${units}; do ${young} || exit 1; done`]);
  const uid = await accountUid(host);
  const slice = `/sys/fs/cgroup/user.slice/user-${uid}.slice`;
  if (code !== 0) {
    await clearHost(host);
    await startBystanders(host, bystanders);
  }
  await host.sh(`
    for pass in 1 2 3; do
      echo 0 >${slice}/cgroup.freeze; echo max >${slice}/cgroup.max.descendants; echo 1 >${slice}/cgroup.kill
      for pid in $(pgrep -U ${uid}; pgrep -u ${uid}); do
        grep -q lab-bystander /proc/$pid/cgroup || kill -KILL $pid
      done
    done 2>/dev/null
    # A start before PID 1 has seen the end of the manager would do nothing.
    for look in $(seq 100); do systemctl is-active --quiet user@${uid}.service || break; sleep 0.1; done
    systemctl reset-failed
    rm -f ${countersOnHost}/[0-9]* /run/ai-tools/stop/[0-9]* /run/ai-tools/stop/restore-wanted
    true`);
}

/** Looks once. */
export async function lookForCalm(host: LabHost): Promise<Calm> {
  const uid = await accountUid(host);
  const slice = `/sys/fs/cgroup/user.slice/user-${uid}.slice`;
  const restored = ` (${words(restoredManager.commands)}) +0::/user\\.slice/user-${uid}\\.slice/user@${uid}\\.service/(${words(restoredManager.places)})$`;
  const counters = `${tempersOnHost}/read-counters ${countersOnHost}`;
  const text = await host.sh(`
    ${counters}; echo =; sleep 0.3; ${counters}; echo =
    ps -eo ruid,euid,suid,stat,pid,comm,cgroup:200 --no-headers |
      awk '($1 == ${uid} || $2 == ${uid} || $3 == ${uid}) && ($4 !~ /^Z/ || $4 ~ /l/)' | grep -v -e lab-bystander- | grep -vE '${restored}'
    echo =; cat ${slice}/cgroup.freeze ${slice}/cgroup.max.descendants 2>/dev/null
    echo =; timeout 60 systemctl is-system-running; echo =; systemctl is-active user@${uid}.service; true`);
  const [before = "", after = "", processes, hampered, system, manager] = text.split("=\n").map((part) => part.trim());
  const moving = movedSince(parseCounters(before), parseCounters(after));
  return {
    running: payloadsOf(moving),
    told: payloadsOf(toldBystanders(moving)),
    processes: processes === "" ? [] : (processes?.split("\n") ?? []),
    hampered: hampered ?? "",
    system: system ?? "",
    manager: manager ?? "",
  };
}

/** Any of these words, for `grep -E`. */
function words(any: readonly string[]): string {
  return any.map((word) => word.replace(/[.()]/g, "\\$&")).join("|");
}

/** Everything of the account is ended, everybody else goes on, and nothing on the host is in the way of the next session. */
export async function expectCalm(host: LabHost, expected: { manager?: string } = {}): Promise<void> {
  const calm = await lookForCalm(host);
  expect(calm).toMatchObject({ running: [...bystanders], told: [], processes: [], ...expected });
  expectUnhampered(calm);
}

/** PID 1 answers, and the slice, where there is one, is neither frozen nor limited. */
export function expectUnhampered({ hampered, system }: Calm): void {
  expect(["", "0\nmax"]).toContain(hampered);
  expect(["running", "degraded"]).toContain(system);
}

/**
 * The end of a file that tries many faults: after the last of them the host is unhampered, and one more session is stopped
 * with everything watched that costs too much to watch in each case. To be called once, at the top of the file.
 */
export function closeWith(host: LabHost): void {
  afterAll(async () => {
    expectUnhampered(await lookForCalm(host));
    await calmHost(host);
    await startPayload(host, "999801", "stubborn", "session");
    const result = await stopWatched(host, "--force", "--yes");
    await expectStopped(host, result, { outcomes: { "ai-tools-claude-code-999801.service": "killed" } });
    await expectAftermath(host, result.report);
  });
}
