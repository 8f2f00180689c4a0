// SPDX-License-Identifier: Apache-2.0
// Promise: whatever state the log is in, a stop takes no longer for it than the trail's limit and leaves nobody waiting;
// what could be written is whole, and what could not is said.

import { dirname } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { tempersOnHost } from "../../../src/tooling/tempers/build-tempers.ts";
import { startPayload, startPayloads } from "../../../src/tooling/tempers/payloads.ts";
import { calmHost, closeWith, expectCalm } from "../kit/calm.ts";
import { inOwnMounts, whereHelperSees } from "../kit/faults.ts";
import { labHost } from "../kit/host.ts";
import { helper, journalOf, lastStop, type Report, results, stopBy, stopByScript, trailLog } from "../kit/stop.ts";

const host = await labHost();
closeWith(host);
const folder = "/var/log/ai-tools";
const hung = "/run/lab/hung-log";

beforeEach(async () => {
  await calmHost(host);
  await startPayload(host, "3501", "deaf", "session");
});

afterEach(() => host.sh(`systemctl kill -s KILL lab-hung-log.service; umount -l ${hung}; true`));

/** A file system of root's that answers nobody. */
async function hangDisk(): Promise<void> {
  await host.sh(`systemd-run --quiet --collect --unit=lab-hung-log ${tempersOnHost}/hung-files ${hung} 0 100
    until grep -q " ${hung} fuse" /proc/mounts; do sleep 0.1; done`);
}

describe("the stop is done, standard error tells of the log, and nothing else is touched, where the log is", () => {
  test.each([
    ["a link to somebody's file", `ln -s /run/lab/victim ${trailLog}`],
    ["a link to nowhere", `ln -s /run/lab/nowhere ${trailLog}`],
    [
      "a second name of somebody's file",
      `mount -t tmpfs tmpfs ${folder}; echo untouched >${folder}/victim; ln ${folder}/victim ${trailLog}`,
    ],
    ["a FIFO that nobody reads", `mkfifo ${trailLog}`],
    ["a FIFO that somebody reads slowly", `mkfifo ${trailLog}; sleep 3 <>${trailLog} &`],
    ["somebody else's", `touch ${trailLog}; chown olga ${trailLog}`],
    ["a device", `mknod ${trailLog} c 1 3`],
    [
      "immutable by a read-only mount",
      `touch ${trailLog}; mount --bind -o ro ${trailLog} ${trailLog}; mount -o remount,bind,ro ${trailLog}`,
    ],
    ["in no folder at all", `mount --bind /proc/self/fdinfo ${folder}`],
  ])("%s", async (_, damage) => {
    await host.sh("echo untouched >/run/lab/victim; rm -f /run/lab/nowhere");
    const script = whereHelperSees(`mount -t tmpfs tmpfs ${folder}; ${damage}`, "--force", "--yes");
    const { code, stderr } = await stopByScript(host, script);
    expect(code).toBe(0);
    expect(stderr).toMatch(/stop\.log could not be written/);
    expect(await host.sh("cat /run/lab/victim; ls /run/lab/nowhere 2>&1 || true")).toMatch(/^untouched\nls: /);
    await expectCalm(host);
  });
});

test("a disk that fills up midway keeps each line whole, and the next stop's begin on a line of their own", async () => {
  // What is left takes the first event and a half. Memory comes in pages, and so the log itself fills all but that.
  const script = `mount -t tmpfs -o size=16k tmpfs ${folder}
    ${helper} --dry-run >/dev/null; event=$(head -n 1 ${trailLog} | wc -c)
    head -c $((16383 - event * 3 / 2)) /dev/zero | tr '\\0' x >${trailLog}; echo >>${trailLog}
    ${helper} --force --yes >/dev/null 2>/run/lab/said; code=$?
    stat -c 'full %s' ${trailLog}
    mount -o remount,size=1m ${folder}
    ${helper} --force --yes >/dev/null 2>&1 || code=$?
    tail -n +2 ${trailLog}; exit $code`;
  const { code, stdout } = await stopByScript(host, inOwnMounts(`set +e; ${script}`));
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/^full 16384\n/) });
  expect(await host.sh("cat /run/lab/said")).toMatch(/stop\.log could not be written \(errno (5|28)\)/);
  const whole = stdout.split("\n").filter((line) => line.endsWith("}"));
  for (const line of whole) expect(() => JSON.parse(line)).not.toThrow();
  const told = whole.map((line) => (JSON.parse(line) as { AI_TOOLS_RESULT: string }).AI_TOOLS_RESULT);
  expect(told).toEqual(["requested", "requested", "stopped"]);
  await expectCalm(host);
});

// journald tells nobody whose entries it drops: the log is the record then (ARCHITECTURE.md).
describe("a journal that takes only one entry an hour", () => {
  const limit = "/run/systemd/journald.conf.d/lab-limit.conf";
  const restart = "systemctl reset-failed systemd-journald.service; systemctl restart systemd-journald.service";
  beforeEach(() =>
    host.sh(`mkdir -p ${dirname(limit)} && printf '[Journal]\\nRateLimitIntervalSec=1h\\nRateLimitBurst=1\\n' >${limit}
      ${restart}`),
  );
  afterEach(() => host.sh(`rm -f ${limit}; ${restart}`));

  test("loses nothing of the log, and is noticed by whoever compares the two", async () => {
    // More events than any factor that journald puts on its limit for the room that its disk has.
    await startPayloads(
      host,
      Array.from(
        { length: 20 },
        (_, index) => ({ name: `35${20 + index}`, temper: "deaf", place: "session" }) as const,
      ),
    );
    // In a unit, as every login is: journald limits nobody whom it cannot name.
    const inUnit = ["systemd-run", "--quiet", "--wait", "--pipe", "--collect", "--unit=lab-limited"];
    const { code, stdout, entries } = await stopBy(host, [...inUnit, helper, "--json", "--force", "--yes"]);
    const report = JSON.parse(stdout) as Report;
    expect(code).toBe(0);
    expect(results(entries).filter((result) => result === "killed")).toHaveLength(report.rows.length);
    expect(results(entries)).toEqual(expect.arrayContaining(["requested", "stopped"]));
    expect((await journalOf(host, report.run)).length).toBeLessThan(entries.length);
    await expectCalm(host);
  });
});

describe("a log on a disk that hangs", () => {
  beforeEach(hangDisk);

  test("holds up nothing: the stop is done, its verdict is there to read, and standard error tells of it", async () => {
    const { code, stdout, stderr } = await stopByScript(
      host,
      whereHelperSees(`mount --bind ${hung} ${folder}`, "--force", "--yes", "--json"),
    );
    expect(code).toBe(0);
    expect((JSON.parse(stdout) as { durationMs: number }).durationMs).toBeLessThan(45_000);
    expect(stderr).toMatch(/trail may be incomplete/);
    expect(JSON.parse(await host.sh(`cat ${lastStop}`))).toMatchObject({ verdict: "stopped", exitCode: 0 });
    await expectCalm(host);
  });

  // A detector that reads what the helper says to its end: no child that still hangs may hold its pipes.
  test("keeps no caller waiting that reads the helper's output to its end", async () => {
    const script = `mount --bind ${hung} ${folder}
      exec 7>&1; said=$(${helper} --force --yes 2>&1 7>&-); code=$?; exec 7>&-; echo "$said"; exit $code`;
    const { code, stdout } = await stopByScript(host, inOwnMounts(script));
    expect(code).toBe(0);
    expect(stdout).toMatch(/STOPPED/);
    expect(await host.sh("pgrep -f 'ai-tools-stop: recorder' || true")).not.toBe("");
    await expectCalm(host);
  });

  test("keeps no caller waiting that gave the helper more descriptors", async () => {
    const script = `mount --bind ${hung} ${folder}
      said=$(${helper} --force --yes 2>&1 8>&1 9>&1); echo "$said"`;
    const { stdout } = await stopByScript(host, inOwnMounts(script));
    expect(stdout).toMatch(/STOPPED/);
    await expectCalm(host);
  });
});

test("a log that is rotated midway gets the rest of the events in the new file", async () => {
  const script = `mount -t tmpfs tmpfs ${folder}
    ${helper} --yes >/dev/null & stop=$!
    until grep -q requested ${trailLog} 2>/dev/null; do sleep 0.05; done
    mv ${trailLog} ${trailLog}.1; wait $stop; code=$?
    cat ${trailLog}.1; echo ===; cat ${trailLog}; exit $code`;
  const { code, stdout } = await stopByScript(host, inOwnMounts(script));
  expect(code).toBe(0);
  const [before, after] = stdout.split("===\n");
  expect(before).toMatch(/"requested"/);
  expect(after).toMatch(/"killed"[\s\S]*"stopped"/);
  await expectCalm(host);
});

test("the events of a stop whose recorder is killed go on being written, or it is said that they are not", async () => {
  const script = `${helper} --yes >/run/lab/out 2>&1 & stop=$!
    until pgrep -P $stop -f recorder; do sleep 0.05; done >/dev/null; sleep 1
    pkill -KILL -P $stop -f recorder; wait $stop; code=$?; cat /run/lab/out; exit $code`;
  const { code, stdout, entries } = await stopByScript(host, script);
  expect(code).toBe(0);
  if (!results(entries).includes("stopped")) expect(stdout).toMatch(/trail (may be|is|was)/);
  await expectCalm(host);
});
