// SPDX-License-Identifier: Apache-2.0
// Promise: what is alive again when the user manager is back is told with 1 and by name, and the manager itself is excused.

import { afterEach, beforeEach, expect, test } from "vitest";

import { countersOnHost, tempersOnHost } from "../../../src/tooling/tempers/build-tempers.ts";
import { startAccountManager, startPayload } from "../../../src/tooling/tempers/payloads.ts";
import { bystanders, expectAftermath, expectStopped, freshHost } from "../kit/aftermath.ts";
import { running } from "../kit/facts.ts";
import { labHost } from "../kit/host.ts";
import { entryOf, results, rowOf, stop, stopWithReport } from "../kit/stop.ts";

const host = await labHost();
const uid = (await host.sh("id -u ai-tools")).trim();
const dropIn = `/etc/systemd/system/user@${uid}.service.d/lab.conf`;
const stray = "lab-stray-3961.service";

beforeEach(async () => {
  await freshHost(host);
  await startAccountManager(host);
  await startPayload(host, "3962", "polite", "session");
});

afterEach(() => host.sh(`rm -f ${dropIn}; systemctl daemon-reload; systemctl kill -s KILL ${stray}; true`));

// systemd 9461 and every host with a unit of root's that wants the account's manager
test("a process of the account that root starts with its manager is named, and the next stop ends it", async () => {
  await host.sh(`cat >/root/start-stray <<'EOF'
#!/bin/sh
systemctl is-active --quiet ${stray} ||
  systemd-run --quiet --collect --uid=ai-tools --unit=${stray} ${tempersOnHost}/deaf ${countersOnHost}/3961 120
EOF
    chmod 755 /root/start-stray && mkdir -p ${dropIn.slice(0, dropIn.lastIndexOf("/"))}
    printf '[Service]\\nExecStartPre=+/root/start-stray\\n' >${dropIn} && systemctl daemon-reload`);

  const { code, report, entries } = await stopWithReport(host, "--force", "--yes");

  expect({ code, verdict: report.verdict, manager: report.manager.outcome }).toEqual({
    code: 1,
    verdict: "reappeared",
    manager: "restored",
  });
  expect(rowOf(report, stray)).toMatchObject({ kind: "stray", outcome: "reappeared" });
  expect(report.survivors).toMatchObject([{ command: "deaf" }]);
  expect(results(entries)).toEqual(expect.arrayContaining(["stopped", "manager-restored"]));
  expect(entries.filter((entry) => entry.AI_TOOLS_VERDICT === "reappeared")).toHaveLength(1);
  expect(entryOf(entries, "manager-restored")).toBeDefined();
  expect(await running(host)).toEqual(["3961", ...bystanders].sort());

  // A person is told what keeps it away.
  const told = await stop(host, "--force", "--yes");
  expect(told.code).toBe(1);
  expect(told.stdout).toMatch(/^Next: ai-tools --hold REASON, .* ai-tools --stop again\.$/m);

  await host.sh(`rm ${dropIn} && systemctl daemon-reload`);
  const again = await stopWithReport(host, "--force", "--yes");
  await expectStopped(host, again);
  await expectAftermath(host, again.report);
});
