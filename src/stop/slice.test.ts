// SPDX-License-Identifier: Apache-2.0
// The account's slice: found only by a helper that sees the whole host, empty only when the kernel says so, and left by
// the helper before it is killed.

import { describe, expect, test } from "vitest";
import { HandMadeHost, inTurn } from "./hand-made-host.fixture.ts";
import { sliceAt, slicePath, stat, statusText } from "./hand-made-processes.fixture.ts";
import { EACCES, EBUSY, EINTR, EIO, ENODEV, ENOENT, EOPNOTSUPP, EPERM, EROFS } from "./kernel.ts";
import {
  findSlice,
  isChildPopulated,
  isInSlice,
  isPopulated,
  killSlice,
  leaveSlice,
  refusalInWords,
  type Slice,
  thawSlice,
} from "./slice.ts";

const directory = `/sys/fs/cgroup${slicePath}`;
const events = `${directory}/cgroup.events`;
const proc = "22 28 0:20 / /proc rw,nosuid - proc proc rw";
const unified = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate";
const hybrid = "31 30 0:27 / /sys/fs/cgroup/unified rw,nosuid - cgroup2 cgroup2 rw,nsdelegate";

/** A host whose helper sees all of it; `changes` replace files. */
function wholeHost(mounts = [proc, unified], changes: Record<string, string | number> = {}): HandMadeHost {
  const host = new HandMadeHost();
  const files = {
    "/proc/1/cgroup": "0::/init.scope\n",
    "/proc/self/status": statusText({ pid: host.pid, uids: [0, 0, 0, 0] }),
    "/proc/self/uid_map": "         0          0 4294967295\n",
    "/proc/self/mountinfo": `${mounts.join("\n")}\n`,
    "/proc/loadavg": "0.00 0.00 0.00 1/1 1\n",
    [events]: "populated 1\nfrozen 0\n",
    ...changes,
  };
  for (const [path, text] of Object.entries(files)) host.files.set(path, text);
  host.links.set("/proc/self", String(host.pid));
  return host;
}

function sliceOn(host: HandMadeHost): Slice {
  const slice = findSlice(host, 990);
  if (typeof slice === "string") throw new Error(slice);
  return slice;
}

describe("finding the slice", () => {
  test("on a unified and on a hybrid host, with the handle that stays with this very cgroup", () => {
    const slice = sliceOn(wholeHost());
    expect(slice).toMatchObject({ path: slicePath, directory, mountPoint: "/sys/fs/cgroup", readOnly: false });
    expect(slice.events).toBeDefined();
    const v1 = "32 30 0:28 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd";
    expect(sliceOn(wholeHost([proc, v1, hybrid])).directory).toBe(`/sys/fs/cgroup/unified${slicePath}`);
  });

  test("a slice that does not exist yet is no refusal", () => {
    expect(sliceOn(wholeHost([proc, unified], { [events]: ENOENT })).events).toBeUndefined();
  });

  test("prefers the host's mount to one that somebody made elsewhere", () => {
    const elsewhere = "90 23 0:26 / /mnt/cg rw - cgroup2 none rw";
    expect(sliceOn(wholeHost([proc, unified, elsewhere])).mountPoint).toBe("/sys/fs/cgroup");
  });

  // The account renames a directory above a mount point of its own: its line then has millions of characters.
  test("mounts without end after those of the boot hide nothing, and those before them hide no hierarchy that is there", () => {
    const endless = `95 23 0:40 / /srv/${"\\040".repeat(500_000)} rw - fuse none rw`;
    expect(sliceOn(wholeHost([proc, unified, endless])).mountPoint).toBe("/sys/fs/cgroup");
    for (const point of ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"]) {
      const host = wholeHost([proc, endless, unified]);
      host.stats.set(`${point}/init.scope/cgroup.procs`, stat());
      expect(sliceOn(host)).toMatchObject({ mountPoint: point, readOnly: false });
    }
    expect(findSlice(wholeHost([proc, endless, unified]), 990)).toContain("no whole cgroup v2");
  });

  test("a hierarchy that is mounted read-only is told, whether the mount or its file system is", () => {
    const readOnly = [
      "rw - cgroup2 cgroup2 ro",
      "ro - cgroup2 cgroup2 ro",
      "ro,nosuid - cgroup2 cgroup2 rw,nsdelegate",
    ];
    for (const options of readOnly) {
      expect(sliceOn(wholeHost([proc, `30 23 0:26 / /sys/fs/cgroup ${options}`])).readOnly, options).toBe(true);
    }
  });

  test.each<[string, string[], Record<string, string | number>, string]>([
    ["process 1 in a cgroup namespace", [proc, unified], { "/proc/1/cgroup": "0::/\n" }, "/init.scope"],
    [
      "process 1 in a container's cgroup",
      [proc, unified],
      { "/proc/1/cgroup": "0::/docker/x/init.scope\n" },
      "/init.scope",
    ],
    [
      "process 1 only in v1 hierarchies",
      [proc, unified],
      { "/proc/1/cgroup": "1:name=systemd:/init.scope\n" },
      "/init.scope",
    ],
    ["process 1 unreadable", [proc, unified], { "/proc/1/cgroup": EACCES }, "errno 13"],
    ["own status unreadable", [proc, unified], { "/proc/self/status": EIO }, "errno 5"],
    ["own status without form", [proc, unified], { "/proc/self/status": "" }, "pid namespace"],
    [
      "a pid namespace",
      [proc, unified],
      { "/proc/self/status": statusText({ pid: 400, namespacePids: "400\t3" }) },
      "pid namespace",
    ],
    ["a user namespace", [proc, unified], { "/proc/self/uid_map": "0 1000 1\n" }, "user namespace"],
    ["an unreadable uid map", [proc, unified], { "/proc/self/uid_map": EIO }, "errno 5"],
    ["/proc with subset=pid", [`${proc},subset=pid`, unified], {}, "subset=pid"],
    ["/proc with subset=pid behind the end of what was read", [unified], { "/proc/loadavg": ENOENT }, "subset=pid"],
    ...["1", "noaccess", "2", "invisible", "4", "ptraceable", "5"].map(
      (value): [string, string[], Record<string, string>, string] => [
        `/proc with hidepid=${value} and without the capability to see all the same`,
        [`${proc},gid=26,hidepid=${value}`, unified],
        { "/proc/self/status": `${statusText({ pid: 400, uids: [0, 0, 0, 0] })}CapEff:\t000001fffff7ffff\n` },
        `hidepid=${value}, and the helper has no CAP_SYS_PTRACE`,
      ],
    ),
    ["no cgroup v2", [proc], {}, "no whole cgroup v2"],
    [
      "only a part of the hierarchy",
      [proc, "30 23 0:26 /docker/x /sys/fs/cgroup rw - cgroup2 none rw"],
      {},
      "no whole cgroup v2",
    ],
    ["unreadable mounts", [], { "/proc/self/mountinfo": EIO }, "errno 5"],
  ])("a helper that sees only part of the host gets no slice but a reason: %s", (_name, mounts, changes, reason) => {
    expect(findSlice(wholeHost(mounts, changes), 990)).toContain(reason);
  });

  test("/proc with hidepid hides nothing from a helper with CAP_SYS_PTRACE, and hidepid=0 from none", () => {
    const able = `${statusText({ pid: 400, uids: [0, 0, 0, 0] })}CapEff:\t000001ffffffffff\n`;
    sliceOn(wholeHost([`${proc},hidepid=ptraceable`, unified], { "/proc/self/status": able }));
    sliceOn(wholeHost([`${proc},hidepid=off`, unified]));
    sliceOn(wholeHost([`${proc},hidepid=0`, unified]));
  });

  test("a /proc of another pid namespace is one of them", () => {
    const host = wholeHost();
    host.links.set("/proc/self", "17");
    expect(findSlice(host, 990)).toContain("another pid namespace");
  });
});

describe("whether anything in the slice is alive", () => {
  test.each([
    ["populated 0\nfrozen 0\n", false],
    ["populated 1\nfrozen 0\n", true],
    ["frozen 0\n", true],
    ["", true],
    [ENOENT, false],
    [ENODEV, false],
    [EACCES, true],
    [EPERM, true],
    [EIO, true],
    [EINTR, true],
    [EBUSY, true],
    [EOPNOTSUPP, true],
  ])("unknown is alive: cgroup.events answers %j", (answer, alive) => {
    const host = new HandMadeHost();
    host.files.set(events, answer);
    expect(isPopulated(host, sliceAt())).toBe(alive);
    host.files.set(`${directory}/user@990.service/cgroup.events`, answer);
    expect(isChildPopulated(host, sliceAt(), "user@990.service")).toBe(alive);
  });

  test("a slice that was removed and came back under the same name is the one that is looked at", () => {
    const host = wholeHost();
    const slice = sliceOn(host);
    host.handles.set(events, ENODEV);
    host.files.set(events, "populated 1\nfrozen 0\n");
    expect(isPopulated(host, slice)).toBe(true);
    host.files.set(events, "populated 0\nfrozen 0\n");
    expect(isPopulated(host, slice)).toBe(false);
  });

  test("the handle of a removed slice is closed and opened again by path", () => {
    const host = wholeHost();
    const slice = sliceOn(host);
    const first = slice.events;
    host.handles.set(events, ENODEV);
    isPopulated(host, slice);
    expect(host.closed).toEqual([first]);
    expect(slice.events).toBeDefined();
    expect(slice.events).not.toBe(first);
  });

  test("the old cgroup alive behind a new, empty one of the same name is alive", () => {
    const host = wholeHost();
    const slice = sliceOn(host);
    host.handles.set(events, "populated 1\nfrozen 0\n");
    host.files.set(events, "populated 0\nfrozen 0\n");
    expect(isPopulated(host, slice)).toBe(true);
  });

  test.each([EIO, EACCES, "", "frozen 0\n"])(
    "an old handle that answers %j is alive, whatever the present one says",
    (answer) => {
      const host = wholeHost();
      const slice = sliceOn(host);
      host.handles.set(events, answer);
      host.files.set(events, "populated 0\nfrozen 0\n");
      expect(isPopulated(host, slice)).toBe(true);
    },
  );
});

describe("the write that ends the slice", () => {
  const path = `${directory}/cgroup.kill`;

  function killOn(errno: number, exists: boolean) {
    const host = new HandMadeHost();
    host.writeAnswers.set(path, errno);
    if (exists) host.stats.set(directory, stat({ kind: "directory" }));
    const write = killSlice(host, sliceAt());
    expect(host.writes).toEqual([{ path, text: "1" }]);
    return write;
  }

  test("is written", () => expect(killOn(0, true)).toBe("written"));
  test("no slice is not a refusal", () => expect(killOn(ENOENT, false)).toBe("absent"));
  test("a slice that goes away during the write is not a refusal", () => expect(killOn(ENODEV, true)).toBe("absent"));

  test("a slice without the file is a kernel before 5.14, and is said to be", () => {
    expect(killOn(ENOENT, true)).toEqual({ refused: ENOENT });
    expect(refusalInWords(ENOENT)).toContain("kernel before 5.14");
  });

  test.each([EROFS, EACCES, EPERM, EOPNOTSUPP, EIO])("errno %i is a refusal with its number", (errno) => {
    expect(killOn(errno, true)).toEqual({ refused: errno });
    expect(refusalInWords(errno)).toMatch(
      new RegExp(`could not be written \\(errno ${errno}\\): each process was killed by itself$`),
    );
  });
});

describe("leaving the slice", () => {
  const inside = `0::${slicePath}/ai-tools-claude-code-7.service\n`;
  const rootProcs = "/sys/fs/cgroup/cgroup.procs";

  test("a helper outside writes nothing", () => {
    const host = new HandMadeHost();
    host.files.set("/proc/self/cgroup", "0::/user.slice/user-1000.slice/session-1.scope\n");
    expect(leaveSlice(host, sliceAt())).toBe(true);
    expect(host.writes).toEqual([]);
  });

  test("a slice whose name only begins the same is outside", () => {
    const host = new HandMadeHost();
    host.files.set("/proc/self/cgroup", "0::/user.slice/user-990.slice-x/a.scope\n");
    expect(isInSlice(sliceAt(), "/user.slice/user-9901.slice/a.scope")).toBe(false);
    expect(leaveSlice(host, sliceAt())).toBe(true);
  });

  test("a helper inside goes to the root cgroup", () => {
    const host = new HandMadeHost();
    host.files.set("/proc/self/cgroup", inTurn(inside, "0::/\n"));
    expect(leaveSlice(host, sliceAt())).toBe(true);
    expect(host.writes).toEqual([{ path: rootProcs, text: "400" }]);
  });

  test("where the root cgroup refuses it takes a shelter outside the slice", () => {
    const host = new HandMadeHost();
    host.writeAnswers.set(rootProcs, EBUSY);
    host.files.set("/proc/self/cgroup", inTurn(inside, inside, "0::/init.scope\n"));
    expect(leaveSlice(host, sliceAt())).toBe(true);
    expect(host.writes.map(({ path }) => path)).toEqual([rootProcs, "/sys/fs/cgroup/init.scope/cgroup.procs"]);
  });

  test("it is outside when the kernel says so, not when a write succeeded", () => {
    const host = new HandMadeHost();
    host.files.set("/proc/self/cgroup", inside);
    expect(leaveSlice(host, sliceAt())).toBe(false);
  });

  test.each([EIO, EACCES, "", "1:name=systemd:/\n"])("unknown is inside: /proc/self/cgroup answers %j", (answer) => {
    const host = new HandMadeHost();
    host.files.set("/proc/self/cgroup", answer);
    expect(leaveSlice(host, sliceAt())).toBe(false);
  });
});

describe("what somebody left on the slice", () => {
  const freeze = `${directory}/cgroup.freeze`;
  const limit = `${directory}/cgroup.max.descendants`;

  test("a freeze is undone and a limit of descendants lifted, never put back to what was read", () => {
    const host = new HandMadeHost();
    host.files.set(freeze, "1\n");
    host.files.set(limit, "0\n");
    expect(thawSlice(host, sliceAt())).toHaveLength(2);
    expect(host.writes).toEqual([
      { path: freeze, text: "0" },
      { path: limit, text: "max" },
    ]);
  });

  test("a slice that nobody touched is not written to", () => {
    const host = new HandMadeHost();
    host.files.set(freeze, "0\n");
    host.files.set(limit, "max\n");
    expect(thawSlice(host, sliceAt())).toEqual([]);
    expect(thawSlice(new HandMadeHost(), sliceAt())).toEqual([]);
    expect(host.writes).toEqual([]);
  });

  test("a thaw that was refused is said to be refused", () => {
    const host = new HandMadeHost();
    host.files.set(freeze, "1\n");
    host.writeAnswers.set(freeze, EROFS);
    expect(thawSlice(host, sliceAt())).toEqual(["the slice was frozen and could not be thawed (errno 30)"]);
  });
});
