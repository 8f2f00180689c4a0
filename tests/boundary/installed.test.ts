// SPDX-License-Identifier: Apache-2.0
// Promise: what the package put on the host is what the design says: who owns it, who may touch it, and that the helper
// needs nothing but itself.

import { expect, test } from "vitest";

import { labHost } from "./kit/host.ts";
import { frontDoor, helper } from "./kit/stop.ts";

const host = await labHost();

test.each([
  ["/usr/libexec/ai-tools", "750 root root"],
  [helper, "700 root root"],
  [frontDoor, "755 root root"],
  ["/etc/sudoers.d/ai-tools", "440 root root"],
  ["/var/log/ai-tools", "700 root root"],
  ["/var/lib/ai-tools", "755 root root"],
])("%s has mode and owner %s", async (path, expected) => {
  expect((await host.sh(`stat -c '%a %U %G' ${path}`)).trim()).toBe(expected);
});

test("the helper and the front door are static", async () => {
  for (const program of [helper, frontDoor]) {
    expect(await host.sh(`ldd ${program} 2>&1 || true`)).toMatch(/not a dynamic executable|statically linked/);
  }
});

test("the sandbox account has no password, no shell, no sudo rule, and is no operator", async () => {
  expect(await host.sh("getent passwd ai-tools")).toMatch(/:\/var\/lib\/ai-tools:\/usr\/s?bin\/nologin\n$/);
  expect(await host.sh("passwd --status ai-tools")).toMatch(/^ai-tools (L|LK) /);
  expect(await host.sh("id -nG ai-tools")).toBe("ai-tools\n");
  expect((await host.run(["sudo", "-l", "-U", "ai-tools"])).stdout).toMatch(/not allowed to run sudo/);
});

test("the sudoers files are valid together", async () => {
  expect(await host.sh("visudo -c")).toMatch(/sudoers\.d\/ai-tools: parsed OK/);
});

test("the account cannot write its passwd home, the configuration, the records or the trail", async () => {
  const places = ["/var/lib/ai-tools", "/etc/ai-tools", "/run/ai-tools", "/var/log/ai-tools", "/usr/libexec/ai-tools"];
  for (const place of places) {
    const { code } = await host.run(["sh", "-c", `: >${place}/probe`], { user: "ai-tools" });
    expect({ place, code }).not.toEqual({ place, code: 0 });
  }
  await host.sh("d=/var/lib/ai-tools/home; : >$d/probe && rm $d/probe", { user: "ai-tools" });
});
