// SPDX-License-Identifier: Apache-2.0
// Whose processes a stop ends: nobody but the account, and no stop at all where that cannot be told.

import { describe, expect, test } from "vitest";
import { HandMadeHost } from "./hand-made-host.fixture.ts";
import { findIdentity, type Identity, isOfAccount } from "./identity.ts";
import { EACCES, EIO } from "./kernel.ts";

const others = "root:x:0:0:root:/root:/bin/bash\nolga:x:1000:1000::/home/olga:/bin/bash\n";
const account = "ai-tools:x:990:990::/var/lib/ai-tools:/usr/sbin/nologin\n";

function hostWith(files: { passwd?: string; subuid?: string; uids?: string }): HandMadeHost {
  const host = new HandMadeHost();
  host.files.set("/etc/passwd", files.passwd ?? others + account);
  if (files.subuid !== undefined) host.files.set("/etc/subuid", files.subuid);
  if (files.uids !== undefined) host.files.set("/var/lib/ai-tools/uids", files.uids);
  return host;
}

function identityOf(files: { passwd?: string; subuid?: string; uids?: string }): Identity {
  const identity = findIdentity(hostWith(files));
  if (typeof identity === "string") throw new Error(identity);
  return identity;
}

describe("where it is ambiguous whom a stop would end, there is no identity but a reason", () => {
  test.each([
    ["no such account", others, "there is no account ai-tools"],
    ["an empty passwd", "", "there is no account ai-tools"],
    ["a name that only begins the same", `${others}ai-tools2:x:990:990::/:/bin/sh\n`, "there is no account ai-tools"],
    ["an account without a number", `${others}ai-tools:x::990::/:/bin/sh\n`, "there is no account ai-tools"],
    ["uid 0", "ai-tools:x:0:0::/:/bin/sh\n", "has uid 0"],
    ["a uid that another name has as well", `${others}web:x:990:990::/:/bin/sh\n${account}`, "another name as well"],
    ["the same the other way round", `${others}${account}web:x:990:990::/:/bin/sh\n`, "another name as well"],
  ])("%s", (_name, passwd, reason) => {
    expect(findIdentity(hostWith({ passwd }))).toContain(reason);
  });

  test("a passwd that cannot be read", () => {
    const host = hostWith({});
    host.files.set("/etc/passwd", EIO);
    expect(findIdentity(host)).toBe("/etc/passwd cannot be read (errno 5)");
  });
});

describe("the account's own numbers", () => {
  test("are its uid, and nobody else's", () => {
    const identity = identityOf({});
    expect(identity).toMatchObject({ uid: 990, home: "/var/lib/ai-tools", notes: [] });
    expect([990, 0, 1000, 991, 9900].map((uid) => isOfAccount(identity, uid))).toEqual([
      true,
      false,
      false,
      false,
      false,
    ]);
  });

  test("and those that root recorded earlier, where nobody has them now", () => {
    const identity = identityOf({ uids: "980\n 985 \n1000\n0\n\nnonsense\n-1\n990\n" });
    expect([...identity.numbers].sort()).toEqual([980, 985, 990]);
  });

  test("a record that cannot be read takes nothing away", () => {
    const host = hostWith({});
    host.files.set("/var/lib/ai-tools/uids", EACCES);
    host.files.set("/etc/subuid", EACCES);
    expect(findIdentity(host)).toMatchObject({ uid: 990, numbers: new Set([990]), subordinate: [] });
  });
});

describe("subordinate numbers", () => {
  test("count from the first to the last, by name and by number", () => {
    const identity = identityOf({ subuid: "ai-tools:100000:65536\nolga:165536:65536\n990:300000:10\n" });
    const edges = [99_999, 100_000, 165_535, 165_536, 299_999, 300_000, 300_009, 300_010];
    expect(edges.map((uid) => isOfAccount(identity, uid))).toEqual([
      false,
      true,
      true,
      false,
      false,
      true,
      true,
      false,
    ]);
    expect(identity.notes).toEqual([]);
  });

  test.each([
    ["overlap another owner's range at its end", "ai-tools:100000:65536\nolga:165535:10\n"],
    ["overlap another owner's range at its beginning", "olga:90000:10001\nai-tools:100000:65536\n"],
    ["lie inside another owner's range", "olga:1:9000000\nai-tools:100000:65536\n"],
    ["hold another owner's range", "ai-tools:100000:65536\nolga:120000:1\n"],
    ["hold a uid of passwd", "ai-tools:1000:65536\n"],
    ["hold uid 0", "ai-tools:0:100\n"],
  ])("do not count outside the slice where they %s, and the report says so", (_name, subuid) => {
    const identity = identityOf({ subuid });
    expect(identity.subordinate).toEqual([]);
    expect(identity.notes).toHaveLength(1);
    expect(identity.notes[0]).toContain("inside the slice only");
    expect(isOfAccount(identity, 100_000)).toBe(false);
    expect(isOfAccount(identity, 1_000)).toBe(false);
  });

  test("one shared range does not take away another that is the account's alone", () => {
    const identity = identityOf({ subuid: "ai-tools:100000:10\nolga:100005:10\nai-tools:200000:10\n" });
    expect(isOfAccount(identity, 100_001)).toBe(false);
    expect(isOfAccount(identity, 200_001)).toBe(true);
  });
});
