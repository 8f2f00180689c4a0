// SPDX-License-Identifier: Apache-2.0
// Promise: the account's runtime directory is gone after a stop, whatever state its unit is in, and so nothing that was
// planted in it runs with the next user manager.

import { beforeEach, expect, test } from "vitest";

import { countersOnHost, tempersOnHost } from "../../../src/tooling/tempers/build-tempers.ts";
import { startAccountManager, startPayload } from "../../../src/tooling/tempers/payloads.ts";
import { bystanders, expectAftermath, freshHost } from "../kit/aftermath.ts";
import { running } from "../kit/facts.ts";
import { labHost } from "../kit/host.ts";
import { stopWithReport } from "../kit/stop.ts";

const host = await labHost();
const uid = (await host.sh("id -u ai-tools")).trim();
const directory = `/run/user/${uid}`;

beforeEach(async () => {
  await freshHost(host);
  await host.sh(`systemctl stop user@${uid}.service user-runtime-dir@${uid}.service`);
});

// systemd 252 leaves the mount where its clearing of the directory was killed with the slice
test("one that stayed mounted although its unit is over is cleared", async () => {
  const unit = `[Service]\\nExecStart=${tempersOnHost}/deaf ${countersOnHost}/planted 60\\n`;
  await host.sh(`mkdir -p ${directory} && mount -t tmpfs -o uid=${uid},gid=${uid},mode=700 tmpfs ${directory}`);
  await host.sh(
    `mkdir -p ${directory}/systemd/user/default.target.wants && printf '${unit}' >${directory}/systemd/user/planted.service &&
     ln -s ../planted.service ${directory}/systemd/user/default.target.wants/`,
    { user: "ai-tools" },
  );
  await startPayload(host, "3981", "deaf", "session");

  const { code, report } = await stopWithReport(host, "--force", "--yes");

  expect({ code, manager: report.manager }).toEqual({
    code: 0,
    manager: { outcome: "not-running", reason: null, mend: null },
  });
  expect(await host.sh(`stat ${directory} 2>&1 || true`)).toMatch(/No such file/);
  await startAccountManager(host);
  expect(await host.sh(`find ${directory} -name 'planted*'`)).toBe("");
  expect(await running(host)).toEqual([...bystanders].sort());
  await expectAftermath(host, report);
});
