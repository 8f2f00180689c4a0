// SPDX-License-Identifier: Apache-2.0
// The fence stands in this process's own groups, wherever the machine has mounted its hierarchies.

import { expect, test } from "vitest";
import { v1Group } from "./fence.ts";

const mountinfo = `31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
36 31 0:33 /docker/4711 /sys/fs/cgroup/devices rw,relatime - cgroup cgroup rw,devices
39 31 0:36 / /mnt/pids rw,relatime - cgroup none rw,pids
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
`;
const cgroup = `9:name=systemd:/
8:pids:/
6:freezer:/
5:devices:/docker/4711
4:memory:/a:b/worker
2:cpu,cpuacct:/batch
0::/user.slice
`;

test.each([
  ["pids", "/mnt/pids"],
  ["memory", "/sys/fs/cgroup/memory/a:b/worker"],
  ["cpu", "/sys/fs/cgroup/cpu,cpuacct/batch"],
])("the group of %s is found", (controller, group) => {
  expect(v1Group(controller, cgroup, mountinfo)).toBe(group);
});

test.each([
  ["freezer", "its hierarchy is not mounted"],
  ["devices", "only a part of its hierarchy is mounted"],
  ["hugetlb", "the kernel has no such v1 hierarchy"],
])("no group of %s where %s", (controller) => {
  expect(v1Group(controller, cgroup, mountinfo)).toBeUndefined();
});

test("no group on a machine with cgroup v2 alone", () => {
  const unified = "41 31 0:38 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw\n";
  expect(v1Group("pids", "0::/user.slice/session.scope\n", unified)).toBeUndefined();
});
