// SPDX-License-Identifier: Apache-2.0
// Who is written into the trail: sudo's word only where root's own facts bear it out.

import { describe, expect, test } from "vitest";
import { findCaller } from "./caller.ts";
import { HandMadeHost } from "./hand-made-host.fixture.ts";
import { EIO } from "./kernel.ts";

const passwd =
  "root:x:0:0::/root:/bin/sh\nolga:x:1000:1000::/home/olga:/bin/sh\ntoor:x:1000:1000::/:/bin/sh\nursula:x:1001:1001::/:/bin/sh\n";
const unset = "4294967295";

interface Facts {
  name?: string;
  uid?: string;
  loginuid?: string | number;
}

function callerOf({ name, uid, loginuid = "1000" }: Facts) {
  const host = new HandMadeHost();
  host.files.set("/etc/passwd", passwd);
  host.files.set("/proc/self/loginuid", loginuid);
  if (name !== undefined) host.variables.set("SUDO_USER", name);
  if (uid !== undefined) host.variables.set("SUDO_UID", uid);
  return findCaller(host);
}

describe("believed", () => {
  test("both variables, where they agree with each other and with the login uid", () => {
    expect(callerOf({ name: "olga", uid: "1000" })).toEqual({ name: "olga", uid: 1000, rejected: undefined });
  });

  test("both variables, where no login uid is set (a detector, a cron job)", () => {
    expect(callerOf({ name: "olga", uid: "1000", loginuid: unset })).toMatchObject({ name: "olga", uid: 1000 });
    expect(callerOf({ name: "olga", uid: "1000", loginuid: EIO })).toMatchObject({ name: "olga", uid: 1000 });
  });

  test("the other name of the same uid", () => {
    expect(callerOf({ name: "toor", uid: "1000" })).toMatchObject({ name: "toor", uid: 1000 });
  });

  test("a caller that only the directory service knows, where the login uid says the same", () => {
    expect(callerOf({ name: "petra", uid: "70001", loginuid: "70001" })).toMatchObject({ name: "petra", uid: 70_001 });
  });

  test("root without sudo, with nothing to reject", () => {
    expect(callerOf({})).toEqual({ name: "root", uid: 0, rejected: undefined });
  });
});

describe("recorded as root, with what was claimed", () => {
  test.each<[string, Facts]>([
    ["the name belongs to another uid", { name: "ursula", uid: "1000" }],
    ["the uid is not the login's: a stale variable in a root shell", { name: "ursula", uid: "1001", loginuid: "1000" }],
    ["root's login with a leftover of an operator", { name: "olga", uid: "1000", loginuid: "0" }],
    ["only the name is set", { name: "olga" }],
    ["only the uid is set", { uid: "1000" }],
    ["the uid is no number", { name: "olga", uid: "1000 " }],
    ["the uid is negative", { name: "olga", uid: "-1" }],
    ["the uid is empty", { name: "olga", uid: "" }],
    ["nobody knows the uid and no login confirms it", { name: "petra", uid: "70001", loginuid: unset }],
    ["nobody knows the uid and another login is set", { name: "petra", uid: "70001" }],
  ])("%s", (_name, facts) => {
    const caller = callerOf(facts);
    expect(caller).toMatchObject({ name: "root", uid: 0 });
    expect(caller.rejected).toContain(`SUDO_USER=${facts.name ?? "(unset)"}`);
  });

  test("what was claimed comes printable and short", () => {
    const caller = callerOf({ name: `\x1b[2J\n${"x".repeat(5_000)}`, uid: "1000" });
    expect(caller.rejected).toMatch(/^[\x20-\x7e]{1,200}$/);
    const believed = callerOf({ name: "petra\n\x1b[1m", uid: "70001", loginuid: "70001" });
    expect(believed.name).toMatch(/^[\x20-\x7e]+$/);
  });
});
