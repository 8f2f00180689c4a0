// SPDX-License-Identifier: Apache-2.0
// Promise: a session stays in the cgroup of its unit: it cannot leave it by writing nor by asking a manager, freeze or
// thread the slice, or raise what limits it.

import { expect, test } from "vitest";
import { linesOf } from "../kit/facts.ts";
import {
  type Act,
  type Acts,
  attempt,
  expectAllDone,
  expectAllRefused,
  expectOutOfReach,
  insiders,
  standingSession,
} from "../kit/from-inside.ts";
import { gatedHost } from "../kit/journal-gate.ts";

const { host, gate } = await gatedHost("a session tries to leave its cgroup");
const uid = (await host.sh("id -u ai-tools")).trim();
const root = "/sys/fs/cgroup";
const CAP_SYS_RESOURCE = 24n;
const slice = `${root}/user.slice/user-${uid}.slice`;

/** Every file of this cgroup that its owner may write, and the making of new ones below it. */
async function onCgroup(directory: string): Promise<Acts> {
  const files = await linesOf(host, `find ${directory} -maxdepth 1 -type f -perm -u+w`);
  expect(files).toContain(`${directory}/cgroup.procs`);
  return {
    ...Object.fromEntries(files.map((path) => [`open ${path}`, ["opened", path] as const])),
    [`make a cgroup in ${directory}`]: ["mkdir", `${directory}/lab-made`],
    [`change the mode of ${directory}`]: ["chmod", directory],
  };
}

test("no file of the slice, of the session's own cgroup, of another unit or of the root can be opened for writing", async () => {
  const session = await standingSession(host);
  const [other] = await linesOf(
    host,
    `systemctl show -P ControlGroup dbus.service systemd-journald.service | grep service`,
  );
  const places = [slice, `${slice}/${session.unit}`, `${root}${other}`, `${root}/user.slice`, root];
  const acts: Record<string, Act> = Object.assign({}, ...(await Promise.all(places.map(onCgroup))));
  // systemd from 254 on gives it to the unit's user: what is written there only asks to be told of pressure.
  delete acts[`open ${slice}/${session.unit}/memory.pressure`];
  for (const file of ["cgroup.freeze", "cgroup.kill", "cgroup.type", "cgroup.max.descendants", "cgroup.threads"])
    expect(Object.keys(acts).filter((name) => name.endsWith(`/${file}`)).length).toBeGreaterThan(0);
  await expectOutOfReach(host, acts, { outOfReachFor: ["account", "unit"] });
  expectAllRefused(await session.ask(acts), "session");
  await session.end();
});

test("no process of the account can move, or be born, into another cgroup", async () => {
  const session = await standingSession(host);
  const [target] = await linesOf(host, "systemctl show -P ControlGroup cron.service");
  const places = {
    "the root": root,
    "the slice": slice,
    "a service": `${root}${target}`,
    "PID 1's scope": `${root}/init.scope`,
  };
  const acts: Acts = Object.assign(
    {},
    ...Object.entries(places).map(([what, directory]) => ({
      [`move to ${what}`]: ["moved", directory],
      [`be born in ${what}`]: ["cloned_into", directory],
    })),
    { "move to a session": ["moved", `${slice}/${session.unit}`] },
    { "move below a session": ["below", `${slice}/${session.unit}`] },
  );
  // A process in the slice itself, and one below the session's unit, are gone at once: their cgroups can be taken down.
  const before = await session.ask({ where: ["cgroup"] });
  const done = await attempt(host, "root", acts);
  // Where the slice hands controllers on, nobody can be in it beside its units: the kernel says so to root, after the rights.
  const isFull = (name: string) => name.endsWith(" the slice") && done[name] === "EBUSY";
  const others = Object.fromEntries(Object.entries(done).filter(([name]) => !isFull(name)));
  expectAllDone(others, "control: possible for root");
  expect(done["move to the root"]).toBe("done: 0::/");
  await host.sh(`rmdir ${slice}/${session.unit}/lab-below-*`);
  for (const who of ["account", "unit"] as const) expectAllRefused(await attempt(host, who, acts), who);
  expectAllRefused(await session.ask(acts), "session");
  expect(await session.ask({ where: ["cgroup"] })).toEqual(before);
  expect(before.where).toBe(`done: 0::/user.slice/user-${uid}.slice/${session.unit}`);
  await session.end();
});

test("a namespace of its own, with its own mount of the hierarchy, is no way out", async () => {
  const acts: Acts = { "make a cgroup in its own mount of the hierarchy": ["below_in_own_namespaces"] };
  await expectOutOfReach(host, acts, { refusedBy: ["ENOSPC", "EUSERS"] });
});

test("no manager moves it, freezes it, kills for it, or raises its limits", async () => {
  const session = await standingSession(host);
  const unit = `user-${uid}.slice`;
  const bus = [
    "ran",
    "busctl",
    "call",
    "org.freedesktop.systemd1",
    "/org/freedesktop/systemd1",
    "org.freedesktop.systemd1.Manager",
  ] as const;
  const acts: Acts = {
    "be put into a scope": ["ran", "systemd-run", "--scope", "--quiet", "true"],
    "be put into a scope of another slice": [
      "ran",
      "systemd-run",
      "--scope",
      "--quiet",
      "--slice=system.slice",
      "true",
    ],
    "raise the number of tasks": ["ran", "systemctl", "set-property", "--runtime", unit, "TasksMax=8192"],
    "raise a session's number of tasks": [
      "ran",
      "systemctl",
      "set-property",
      "--runtime",
      session.unit,
      "TasksMax=4096",
    ],
    "signal the slice": ["ran", "systemctl", "kill", "-s", "CONT", unit],
    "thaw the session": [...bus, "ThawUnit", "s", session.unit],
    "ask for the processes of a unit": [...bus, "GetUnitProcesses", "s", session.unit],
  };
  const { "ask for the processes of a unit": _told, ...refusedAll } = acts;
  expectAllDone(await attempt(host, "root", acts), "control: possible for root");
  await host.sh(`systemctl revert ${unit}`);
  for (const who of ["account", "unit"] as const)
    expectAllRefused(await attempt(host, who, refusedAll), who, [/^exit 1: .*([Aa]ccess denied|authentication)/]);
  // A session sees neither the bus nor PID 1's socket, and is told nothing at all.
  expectAllRefused(await session.ask(acts), "session", [
    /^exit 1: .*(connect to|No such file|Permission denied|not been booted)/,
  ]);
  expect(await host.sh(`cat ${slice}/cgroup.freeze; systemctl show -P TasksMax ${unit}`)).toBe("0\n8192\n");
  await session.end();
});

test("it cannot raise its own limits", async () => {
  const acts: Acts = { "open more files than it may": ["more_files"] };
  const notAllowed = "not allowed to raise maximum limit";
  // Root of a container has not the capability that this takes; there the refusals stand alone, on machines it is shown.
  const effective = (await host.sh("sed -n 's/^CapEff:\\t//p' /proc/self/status")).trim();
  const isPrivileged = (BigInt(`0x${effective}`) & (1n << CAP_SYS_RESOURCE)) !== 0n;
  if (isPrivileged) expectAllDone(await attempt(host, "root", acts), "control: possible for root");
  for (const who of insiders) expectAllRefused(await attempt(host, who, acts), who, [notAllowed]);
});

test("nothing was logged as an error, and nothing was denied, that is not told above", () => gate.expectQuiet());
