// SPDX-License-Identifier: Apache-2.0
// Which connections are cut off, from the text of mountinfo.

import { expect, test } from "vitest";
import { fuseConnections } from "./hung-files.ts";

test("the minor numbers of FUSE mounts, and of nothing else", () => {
  const mountinfo = `22 1 0:20 / /proc rw,nosuid - proc proc rw
90 22 0:56 / /run/lab/hung rw,nosuid,nodev shared:1 - fuse.hung-files hung rw,user_id=647
91 22 0:57 / /mnt rw - fuse x rw
92 22 0:58 / /sys/fs/fuse/connections rw - fusectl fusectl rw
`;
  expect(fuseConnections(mountinfo)).toEqual(["56", "57"]);
  expect(fuseConnections("")).toEqual([]);
});
