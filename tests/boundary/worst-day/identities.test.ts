// SPDX-License-Identifier: Apache-2.0
// Promise: in the account's slice nobody is exempt, whatever number or name they took; outside it whoever has one of the
// account's numbers is ended, and nobody who only resembles them.

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { tempersOnHost } from "../../../src/tooling/tempers/build-tempers.ts";
import { startPayload } from "../../../src/tooling/tempers/payloads.ts";
import { bystanders, expectAftermath, expectStopped, freshHost, stopWatched } from "../kit/aftermath.ts";
import { startCounting, temper, unitOf } from "../kit/commands.ts";
import { countersOf, running } from "../kit/facts.ts";
import { labHost } from "../kit/host.ts";

/** For a busy machine. */
vi.setConfig({ testTimeout: 300_000 });

const host = await labHost();
const account = (await host.sh("id -u ai-tools")).trim();
const olga = (await host.sh("id -u olga")).trim();
const ursula = (await host.sh("id -u ursula")).trim();
const setuid = "/opt/lab/setuid";
/** Numbers that nobody on the host has. */
const [ownRange, sharedRange, laterUid] = [700_000, 800_000, 690];

await host.sh(`mkdir -p ${setuid} && install -m 4755 -o ursula ${tempersOnHost}/changed ${setuid}/`);
await host.enableLinger();

beforeEach(async () => {
  await freshHost(host);
  await host.sh(`systemctl start user@${account}.service; touch /etc/subuid
    cp /etc/subuid /root/subuid; cp /etc/passwd /root/passwd; cp /var/lib/ai-tools/uids /root/uids`);
});
afterEach(() =>
  host.sh("cp /root/subuid /etc/subuid; cp /root/passwd /etc/passwd; cp /root/uids /var/lib/ai-tools/uids"),
);

/** A temper of root's that works under these numbers. */
function acting(name: string, real: string | number, effective = real, saved = real): string {
  return `${tempersOnHost}/acting /run/lab/counters/${name} ${real} ${effective} ${saved} 100`;
}

/** The setuid program of another user. */
function changed(name: string): string {
  return temper("changed", name).replace(tempersOnHost, setuid);
}

/** So many of them run, and not one number of theirs is the account's. */
async function expectWhollyUrsulas(processes: number): Promise<void> {
  const numbers = await host.sh("sed -n 's/^Uid:\\t//p' $(pgrep -x changed | sed 's,.*,/proc/&/status,')");
  expect(numbers.trim().split("\n")).toEqual(Array(processes).fill(Array(4).fill(ursula).join("\t")));
}

async function shareRanges(): Promise<void> {
  await host.sh(
    `printf '%s:65536\\n' ai-tools:${ownRange} ai-tools:${sharedRange} olga:${sharedRange + 9} >/etc/subuid`,
  );
}

describe("in the slice everything is ended", () => {
  // flux-core 6107
  test.each([
    ["with --force", ["--force"]],
    ["with a grace", []],
  ])("a setuid child that has become another user's: %s", async (_, options) => {
    await startCounting(host, "2101", "session", changed("2101"));
    await startCounting(host, "2102", "own-manager", changed("2102"));
    await expectWhollyUrsulas(2);
    await expectEnded(...options);
  });

  test("root's own process, one that acts for the account, one that only reaches files as the account", async () => {
    await startCounting(host, "2103", "root-in-slice", temper("deaf", "2103"));
    await startCounting(host, "2104", "root-in-slice", acting("2104", 0, Number(account), 0));
    await startCounting(host, "2105", "root-in-slice", temper("serving", "2105", "0", account));
    await expectEnded("--force");
  });

  test("a subordinate number, also of a range that somebody else has too", async () => {
    await shareRanges();
    await startCounting(host, "2106", "root-in-slice", acting("2106", ownRange + 5));
    await startCounting(host, "2107", "root-in-slice", acting("2107", sharedRange + 10));
    await expectEnded("--force");
  });
});

describe("outside the slice", () => {
  test("one of the four numbers is enough, the one for files alone too", async () => {
    await startCounting(host, "2111", "root", acting("2111", olga, Number(account), Number(olga)));
    await startCounting(host, "2112", "root", temper("serving", "2112", olga, account));
    await startCounting(host, "2113", "root", temper("serving", "2113", account, olga));
    await startCounting(host, "2114", "root", acting("2114", account, 0, 0));
    await expectEnded("--force");
  });

  test("root's process that reaches files as the account is named and spared", async () => {
    await startCounting(host, "2115", "root", temper("serving", "2115", "0", account));
    const { report } = await expectEnded("--force", "2115");
    expect(report.bystanders.filter(({ command }) => command === "serving")).toHaveLength(1);
  });

  test("a setuid program that has become another user's is that user's", async () => {
    await startCounting(host, "2116", "exec", changed("2116"));
    await expectWhollyUrsulas(1);
    await startPayload(host, "2117", "polite", "session");
    await expectEnded("--force", "2116");
  });

  test("a subordinate number is the account's, unless somebody else may have it: then it is spared, which is said", async () => {
    await shareRanges();
    await startCounting(host, "2118", "root", acting("2118", ownRange + 5));
    await startCounting(host, "2119", "root", acting("2119", sharedRange + 10));
    const { report } = await expectEnded("--force", "2119");
    expect(report.remarks.join("\n")).toMatch(/subordinate uids 800000-865535 are shared with others/);
  });
});

describe("when the account has got another number", () => {
  /** What was started before has the old number, in the slice of the old number and outside. */
  async function changeNumber(): Promise<void> {
    await startPayload(host, "2121", "deaf", "session");
    await startPayload(host, "2122", "polite", "own-manager");
    await startPayload(host, "2123", "deaf", "exec");
    await host.sh(`sed -i 's/^ai-tools:x:${account}:/ai-tools:x:${laterUid}:/' /etc/passwd`);
    await startPayload(host, "2124", "deaf", "session");
    expect(await host.sh("id -u ai-tools")).toBe(`${laterUid}\n`);
  }

  test("what still has the old one is ended too, where root recorded it", async () => {
    await changeNumber();
    const { code, report } = await stopWatched(host, "--yes", "--force");
    expect({ code, survivors: report.survivors }).toEqual({ code: 0, survivors: [] });
    expect(await running(host)).toEqual([...bystanders]);
    await host.sh("cp /root/passwd /etc/passwd");
    await expectAftermath(host);
  });

  test("what has a number that nobody recorded is nobody's, and is left alone", async () => {
    await host.sh(": >/var/lib/ai-tools/uids");
    await changeNumber();
    const { code } = await stopWatched(host, "--yes", "--force");
    expect(code).toBe(0);
    expect(await running(host)).toEqual([...bystanders, "2121", "2122", "2123"].sort());
  });

  test("what has a recorded number that is another user's by now is left alone", async () => {
    await startCounting(host, "2125", "root", acting("2125", laterUid));
    await host.sh(`echo ${laterUid} >>/var/lib/ai-tools/uids; echo 'heir:x:${laterUid}:100::/:/bin/sh' >>/etc/passwd`);
    await startPayload(host, "2126", "deaf", "session");
    await expectEnded("--force", "2125");
  });
});

describe("names", () => {
  const names = ["kworker/0:1", "kthreadd", "[migration/0]", "''"];

  test("of the kernel's own threads protect nobody, and condemn nobody", async () => {
    for (const [number, name] of names.entries()) {
      await startCounting(host, `213${number}`, "session", temper("kernel-like", `213${number}`, `"${name}"`));
      await startCounting(host, `214${number}`, "exec", temper("kernel-like", `214${number}`, `"${name}"`));
    }
    await startCounting(
      host,
      "2151",
      "root",
      `setpriv --reuid=olga --regid=olga --clear-groups ${temper("kernel-like", "2151", "kworker/0:1")}`,
    );
    await startCounting(host, "2152", "root", temper("kernel-like", "2152", "kthreadd"));
    await expectEnded("--force", "2151", "2152");
  });
});

/** Stops, expects that everything but these goes and that the host is as before. */
async function expectEnded(...words: string[]): Promise<Awaited<ReturnType<typeof stopWatched>>> {
  const goOn = words.filter((word) => word !== "--force");
  const result = await stopWatched(host, "--yes", ...(words.includes("--force") ? ["--force"] : []));
  await expectStopped(host, result, goOn.length > 0 ? { running: goOn } : {});
  for (const name of goOn) for (const { terms } of await countersOf(host, name)) expect(terms).toBe(0);
  await host.sh(`${goOn.map((name) => `systemctl kill -s KILL lab-command-${name} ${unitOf(name)}`).join("; ")}
    pkill -KILL -x changed; true`);
  await expectAftermath(host, result.report);
  return result;
}
