// SPDX-License-Identifier: Apache-2.0
// The kernel's files as a session may shape them: names and paths are hostile, and a text without its form has no value.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { loadavg, statText, statusText } from "./hand-made-processes.fixture.ts";
import {
  decimal,
  parseCgroupPath,
  parseExecutor,
  parseLastPid,
  parseMounts,
  parsePasswd,
  parsePopulated,
  parseStat,
  parseStatus,
  parseSubuid,
  parseUptimeTicks,
} from "./proc-files.ts";

describe("/proc/PID/status", () => {
  test("gives ids, state, four uids, threads, tracer and depth of pid namespaces", () => {
    const text = statusText({
      pid: 700,
      parent: 650,
      state: "t (tracing stop)",
      uids: [990, 991, 992, 993],
      threads: 3,
      tracer: 651,
      namespacePids: "700\t12\t1",
      command: "node",
    });
    expect(parseStatus(text)).toEqual({
      tgid: 700,
      parent: 650,
      state: "t",
      uids: [990, 991, 992, 993],
      threads: 3,
      tracer: 651,
      pidNamespaces: 3,
      command: "node",
    });
  });

  test("says of a thread which process it belongs to", () => {
    expect(parseStatus(statusText({ pid: 702, tgid: 700 }))?.tgid).toBe(700);
  });

  test.each([
    ["Uid:\\t0\\t0\\t0\\t0", "the kernel escapes line breaks"],
    ["\\nUid:\\t0\\t0\\t0\\t0", "an escaped line break and a field"],
    ["Uid:\t0\t0\t0\t0", "a field with real tabs in the name"],
    [") R 1 (", "the brackets of stat"],
    ["", "an empty name"],
    ["  ", "blanks only"],
  ])("a command named %j forges no field (%s)", (command) => {
    const status = parseStatus(statusText({ pid: 700, command }));
    expect(status?.uids).toEqual([990, 990, 990, 990]);
    expect(status?.state).toBe("S");
    expect(status?.command).toBe(command);
  });

  test("no command name without a line break changes what decides", () => {
    const bytes = fc
      .uint8Array({ maxLength: 15 })
      .map((array) => String.fromCharCode(...array.filter((b) => b !== 10)));
    fc.assert(
      fc.property(bytes, (command) => {
        const { uids, state, tgid, threads } = parseStatus(statusText({ pid: 700, command, threads: 2 })) ?? {};
        expect({ uids, state, tgid, threads }).toEqual({
          uids: [990, 990, 990, 990],
          state: "S",
          tgid: 700,
          threads: 2,
        });
      }),
    );
  });

  test("a zombie leader is told from a zombie by its threads", () => {
    expect(parseStatus(statusText({ pid: 7, state: "Z (zombie)", threads: 2 }))).toMatchObject({
      state: "Z",
      threads: 2,
    });
    expect(parseStatus(statusText({ pid: 7, state: "X (dead)", threads: 0 }))).toMatchObject({
      state: "X",
      threads: 0,
    });
  });

  test.each(["State", "Tgid", "Uid", "Threads"])(
    "has no value without %s: the caller decides what unknown means",
    (name) => {
      const without = statusText({ pid: 700 }).replace(new RegExp(`^${name}:.*\n`, "m"), "");
      expect(parseStatus(without)).toBeUndefined();
    },
  );

  test.each(["", "Name:\tagent\n", "Uid:\t990\t990\t990\n", "\0\0\0"])("%j has no value", (text) => {
    expect(parseStatus(text)).toBeUndefined();
  });

  test("three uids, a sign or a letter among them have no value", () => {
    const text = statusText({ pid: 700 });
    for (const uids of ["990\t990\t990", "990\t990\t990\t-1", "990\t990\t990\t0x3de", "990\t990\t990\t "]) {
      expect(parseStatus(text.replace(/^Uid:.*$/m, `Uid:\t${uids}`))).toBeUndefined();
    }
  });

  test("cut off anywhere it gives the right values or none, never wrong uids", () => {
    const text = statusText({ pid: 700, uids: [990, 991, 992, 993], threads: 12 });
    for (let length = 0; length < text.indexOf("Threads:"); length++)
      expect(parseStatus(text.slice(0, length))).toBeUndefined();
  });
});

describe("/proc/PID/stat", () => {
  test.each(["agent", ") R 1 (", "a) R 1 2 3 4 5", "((", "))", " ", "", "x\n) Z 1"])(
    "start time and terminal are found behind the command %j",
    (command) => {
      const text = statText({ pid: 700, command, startTicks: 123_456, terminal: 34_816 });
      expect(parseStat(text)).toEqual({ startTicks: 123_456, terminal: 34_816 });
    },
  );

  test.each(["", "700 (agent", "700 (agent) S 1 2 3", "700 (agent)"])("%j has no value", (text) => {
    expect(parseStat(text)).toBeUndefined();
  });
});

describe("/proc/PID/cgroup", () => {
  const place = "/user.slice/user-990.slice/user@990.service/app.slice/run-1.scope";

  test("gives the path of the one hierarchy", () => {
    expect(parseCgroupPath(`0::${place}\n`)).toBe(place);
    expect(parseCgroupPath("0::/\n")).toBe("/");
  });

  test("gives the path of the cgroup v2 line beside v1 hierarchies, wherever it stands", () => {
    const v1 = "13:pids:/user.slice\n1:name=systemd:/user.slice/user-0.slice\n";
    expect(parseCgroupPath(`${v1}0::${place}\n`)).toBe(place);
    expect(parseCgroupPath(`0::${place}\n${v1}`)).toBe(place);
  });

  test("is not fooled by a v1 path that looks like a v2 line", () => {
    expect(parseCgroupPath(`4:name=x:/0::/system.slice\n0::${place}\n`)).toBe(place);
    expect(parseCgroupPath("10::/system.slice\n")).toBeUndefined();
  });

  test("takes ' (deleted)' off, which the kernel adds to the path of a removed cgroup", () => {
    expect(parseCgroupPath(`0::${place} (deleted)\n`)).toBe(place);
  });

  test("keeps the right beginning of a path that was cut off at a page", () => {
    const deep = `/user.slice/user-990.slice${"/x".repeat(3_000)}`;
    expect(parseCgroupPath(`0::${deep}`.slice(0, 4_095))).toBe(deep.slice(0, 4_092));
  });

  test.each(["/a b ", "/\x1b[2K", "/-x/.y", "/a\tb", "/\xff\xfe", "/ (deleted)x"])("keeps every byte of %j", (path) => {
    expect(parseCgroupPath(`0::${path}\n`)).toBe(path);
  });

  test.each(["", "\n", "1:name=systemd:/init.scope\n", "0:", "0:cpu:/x\n"])("%j has no path", (text) => {
    expect(parseCgroupPath(text)).toBeUndefined();
  });
});

describe("/proc/self/mountinfo", () => {
  const cgroup2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot";

  test("gives root, point, type and options, with no, one or many optional fields", () => {
    const want = { root: "/", point: "/sys/fs/cgroup", type: "cgroup2" };
    for (const optional of [" ", " shared:9 ", " shared:9 master:4 propagate_from:2 unbindable "]) {
      const line = `30 23 0:26 / /sys/fs/cgroup rw,nosuid${optional}- cgroup2 cgroup2 rw,nsdelegate`;
      expect(parseMounts(`${line}\n`)).toMatchObject([{ ...want, superOptions: ["rw", "nsdelegate"] }]);
    }
  });

  test("undoes the octal escapes of blank, tab, line break and backslash", () => {
    const line = "41 23 0:30 /a\\040b /mnt/x\\011y\\012z\\134040 rw - ext4 /dev/vda rw";
    expect(parseMounts(line)).toMatchObject([{ root: "/a b", point: "/mnt/x\ty\nz\\040" }]);
  });

  test("leaves out lines without its form, and keeps the others in their order", () => {
    const proc = "22 28 0:20 / /proc rw - proc proc rw,hidepid=invisible,subset=pid";
    const mounts = parseMounts(`\n30 23\n - \nnonsense - - -\n${cgroup2}\n${proc}\n`);
    expect(mounts.map(({ point }) => point)).toEqual(["/sys/fs/cgroup", "/proc"]);
    expect(mounts[1]?.superOptions).toContain("subset=pid");
  });
});

describe("small files", () => {
  test("loadavg: the last pid is the fifth field", () => {
    expect(parseLastPid(loadavg(4_194_303))).toBe(4_194_303);
    for (const text of ["", "0.52 0.58 0.59 1/598\n", "0.52 0.58 0.59 1/598 x\n"])
      expect(parseLastPid(text)).toBeUndefined();
  });

  test("uptime: in clock ticks, as start times are", () => {
    expect(parseUptimeTicks("350735.47 234388.90\n")).toBe(35_073_547);
    expect(parseUptimeTicks("0.04 0.00\n")).toBe(4);
    for (const text of ["", "12 3\n", "-1.00 2.00\n", "1.5 2\n"]) expect(parseUptimeTicks(text)).toBeUndefined();
  });

  test("cgroup.events: only a plain 0 or 1 says anything", () => {
    expect(parsePopulated("populated 0\nfrozen 0\n")).toBe(false);
    expect(parsePopulated("frozen 1\npopulated 1\n")).toBe(true);
    for (const text of ["", "frozen 0\n", "populated\n", "populated 2\n", "unpopulated 0\n", "populated 0 1\n"]) {
      expect(parsePopulated(text)).toBeUndefined();
    }
  });

  test("numbers: digits only", () => {
    expect(decimal("0")).toBe(0);
    expect(decimal("4194304")).toBe(4_194_304);
    for (const text of [undefined, "", " 1", "1 ", "-1", "+1", "1.0", "1e3", "0x1", "1\n", "9".repeat(16)]) {
      expect(decimal(text)).toBeUndefined();
    }
  });
});

describe("/etc/passwd and /etc/subuid", () => {
  test("passwd: malformed lines give no entry, and hide none", () => {
    const text =
      "root:x:0:0::/root:/bin/sh\n\n#x\n+::::::\n:x:5:5::/:\nbad:x:-1:0::/:\nhex:x:0x10:0::/:\nshort:x:7\nai-tools:x:990:990:a,b:/var/lib/ai-tools:/usr/sbin/nologin";
    expect(parsePasswd(text)).toEqual([
      { name: "root", uid: 0, home: "/root" },
      { name: "short", uid: 7, home: "" },
      { name: "ai-tools", uid: 990, home: "/var/lib/ai-tools" },
    ]);
  });

  test("subuid: malformed and empty ranges give none", () => {
    const text =
      "ai-tools:100000:65536\n990:300000:10\n\n# x\nai-tools:5\n:1:1\nolga:1:0\nolga:-1:5\nolga:a:b\n  olga:20:5  \n";
    expect(parseSubuid(text)).toEqual([
      { owner: "ai-tools", from: 100_000, to: 165_536 },
      { owner: "990", from: 300_000, to: 300_010 },
      { owner: "olga", from: 20, to: 25 },
    ]);
  });
});

describe("who executed a program, from its auxiliary vector", () => {
  const words = (bytes: number, order: "little" | "big", values: readonly number[]) =>
    values
      .map((value) => {
        const digits = Array.from({ length: bytes }, (_, at) => Math.floor(value / 256 ** at) % 256);
        return String.fromCharCode(...(order === "little" ? digits : digits.reverse()));
      })
      .join("");

  test.each([
    [8, "little"],
    [8, "big"],
    [4, "little"],
    [4, "big"],
  ] as const)("is read from words of %i bytes, %s end first", (bytes, order) => {
    expect(parseExecutor(words(bytes, order, [33, 77_824, 6, 4_096, 11, 70_000, 12, 0, 0, 0]))).toBe(70_000);
    expect(parseExecutor(words(bytes, order, [6, 4_096, 11, 0, 12, 0, 0, 0]))).toBe(0);
  });

  test.each([
    ["nothing", ""],
    ["a list without its end", words(8, "little", [11, 0])],
    ["a list without that key", words(8, "little", [6, 4_096, 0, 0])],
    ["something else", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"],
  ])("is unknown from %s", (_name, text) => {
    expect(parseExecutor(text)).toBeUndefined();
  });
});
