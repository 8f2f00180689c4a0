// SPDX-License-Identifier: Apache-2.0
// Promise: nobody of the account reaches an operator: not their processes, not the sockets of their agents, not their
// terminals, not their homes. A session does not even see them.

import { afterAll, beforeAll, expect, test } from "vitest";

import { quoted } from "../../../src/tooling/lab/terminal.ts";
import { eventually } from "../kit/facts.ts";
import {
  type Act,
  type Acts,
  attempt,
  expectAllDone,
  expectAllRefused,
  expectOutOfReach,
  isEnforcing,
  standingSession,
} from "../kit/from-inside.ts";
import { gatedHost } from "../kit/journal-gate.ts";
import { atHome, claimedProject, entryPoint, inDirectory } from "../kit/sessions.ts";

const { host, gate } = await gatedHost("a session tries to reach an operator's processes, agents and home");
const olga = (await host.sh("id -u olga")).trim();

/** Where agents of ssh and gpg listen: below a folder of the operator's alone, in /tmp, in the runtime directory, at home. */
const folders = [`/tmp/ssh-lab`, `/run/user/${olga}`, "/home/olga/.ssh"];
const sockets = folders.map((folder) => `${folder}/agent.lab`);
const abstract = "@lab-agent-of-olga";

/** Answers to the protocol of ssh-agent, on all these sockets, that there is no key. */
const agentSource = `
import select, socket, struct, sys
servers = []
for path in sys.argv[1:]:
    server = socket.socket(socket.AF_UNIX); server.bind("\\0" + path[1:] if path[0] == "@" else path); server.listen(16); servers.append(server)
while True:
    for server in select.select(servers, [], [])[0]:
        client = server.accept()[0]
        client.settimeout(2)
        try:
            if client.recv(5): client.sendall(struct.pack(">IBI", 5, 12, 0))
        except OSError: pass
        client.close()
`;

beforeAll(async () => {
  await host.sh(`for folder in ${folders.join(" ")}; do install -d -o olga -g olga -m 700 $folder; done; rm -f ${sockets.join(" ")}
    printf 'lab: not a key' >/home/olga/.ssh/id_lab; chown olga: /home/olga/.ssh/id_lab; chmod 600 /home/olga/.ssh/id_lab`);
  await host.sh(
    `systemd-run --quiet --collect --unit=lab-agent --uid=olga --gid=olga /usr/bin/python3 -c ${quoted(agentSource)} ${sockets.join(" ")} ${quoted(abstract)}`,
  );
  await eventually("the agent listens", async () => (await host.run(["test", "-S", sockets.at(-1) ?? ""])).code === 0);
});
afterAll(() =>
  host.sh(`systemctl stop lab-agent; rm -rf /tmp/ssh-lab ${sockets.join(" ")} /home/olga/.ssh/id_lab; true`),
);

const agentPid = async () => (await host.sh("systemctl show -P MainPID lab-agent.service")).trim();

function onProcess(what: string, pid: string): Acts {
  return {
    [`trace ${what}`]: ["trace", pid],
    [`open the memory of ${what}`]: ["memory", pid],
    [`signal ${what}`]: ["sent", pid, "18"],
    [`take a descriptor of ${what}`]: ["descriptor", pid, "0"],
    [`change the priority of ${what}`]: ["nice", pid],
    [`read the environment of ${what}`]: ["read", `/proc/${pid}/environ`],
    [`list the descriptors of ${what}`]: ["names", `/proc/${pid}/fd`],
    [`see the files of ${what}`]: ["names", `/proc/${pid}/root`],
    [`see where ${what} is`]: ["names", `/proc/${pid}/cwd`],
  };
}

test("an operator's process cannot be traced, read, signalled or changed", async () => {
  const pid = await agentPid();
  await expectOutOfReach(host, onProcess("her agent", pid));
  // Root of a container may not do that to others.
  await expectOutOfReach(host, { "change its limits": ["limits", pid] }, { possibleFor: "olga" });
});

test("nor can the command of hers that waits for the session, and its terminal cannot be opened", async () => {
  const session = await standingSession(host);
  const pids = (await host.sh("pgrep -u olga -x ai-tools")).split("\n").filter((pid) => pid !== "");
  expect(pids.length).toBeGreaterThan(0);
  const terminal = host.terminal(["sh", "-c", "tty; cat"], { user: "olga" });
  await terminal.waitFor(/\/dev\/pts\/\d+/, 30_000);
  const device = /\/dev\/pts\/\d+/.exec(terminal.text())?.[0] ?? "";
  const acts: Acts = {
    ...Object.assign({}, ...pids.map((pid) => onProcess(`command ${pid}`, pid))),
    "open her terminal": ["opened", device],
    "read her terminal's owner": ["chmod", device],
  };
  await expectOutOfReach(host, acts, { outOfReachFor: ["account", "unit"] });
  expectAllRefused(await session.ask(acts), "session");
  await terminal.hangUp();
  await session.end();
});

test("a session sees no process but the account's own", async () => {
  const acts: Acts = { "processes of olga": ["processes_of", olga], "processes of root": ["processes_of", "0"] };
  expectAllDone(await attempt(host, "root", acts), "control: possible for root");
  expectAllRefused(await attempt(host, "session", acts), "session");
});

test("the sockets of her agents, wherever they are, answer her and nobody of the account", async () => {
  const acts: Acts = Object.fromEntries(sockets.map((path) => [`ask ${path}`, ["agent", path] as Act]));
  const answers = await attempt(host, "olga", acts);
  expect(Object.values(answers)).toEqual(sockets.map(() => "done: answer 12"));
  await expectOutOfReach(host, acts, { possibleFor: "olga" });
});

test("a socket with an abstract name is in nobody's folder: a session without a network does not reach it", async () => {
  const acts: Acts = { "connect by its name": ["connect", abstract] };
  expectAllDone(await attempt(host, "unit", acts), "control: possible for a process of the account");
  const project = await claimedProject(host);
  const alone = await entryPoint(
    host,
    "alone",
    "Exec=/usr/bin/python3",
    "Arguments=/opt/lab/from-inside.py",
    "NetworkAccess=no",
  );
  const { stdout } = await inDirectory(host, project, ["--run", alone], { input: JSON.stringify(acts) });
  expect(["ECONNREFUSED", "EACCES"]).toContain(JSON.parse(stdout)["connect by its name"]);
  // With a network file permissions have no say (SECURITY.md, residual risks); a session's domain has.
  const withNetwork = (await attempt(host, "session", acts))["connect by its name"];
  expect(withNetwork).toBe((await isEnforcing(host)) ? "EACCES" : "done");
});

test("her home: not to be listed, read or written, though a project of hers in it is", async () => {
  await host.sh("echo secret >/home/olga/lab-secret; chmod 644 /home/olga/lab-secret", { user: "olga" });
  const acts: Acts = {
    "list her home": ["names", "/home/olga/.ssh"],
    "read a file that everybody may read": ["read", "/home/olga/lab-secret"],
    "read a key": ["read", "/home/olga/.ssh/id_lab"],
    "open her shell's start": ["opened", "/home/olga/.bashrc"],
    "make a file in her keys": ["create", "/home/olga/.ssh"],
  };
  await expectOutOfReach(host, acts);
  // Closed by nothing but its mode: a home that is open to all is open to the account's processes, and not to a session.
  await host.sh("chmod 755 /home/olga");
  const open: Acts = { "read a file that everybody may read": ["read", "/home/olga/lab-secret"] };
  expectAllDone(await attempt(host, "unit", open), "control: possible for a process of the account");
  expectAllRefused(await attempt(host, "session", open), "session");
  const project = await claimedProject(host, `${atHome}/inside`);
  const entry = await entryPoint(host, "at-home", "Exec=/usr/bin/python3", "Arguments=/opt/lab/from-inside.py");
  const { stdout } = await inDirectory(host, project, ["--run", entry], {
    input: JSON.stringify({ ...open, ...acts, "read the project": ["read", `${project}/README`] }),
  });
  const { "read the project": own, ...others } = JSON.parse(stdout) as Record<string, string>;
  expect(own).toMatch(/^done/);
  expectAllRefused(others, "session", ["EBUSY"]);
  await host.sh("chmod 700 /home/olga; rm /home/olga/lab-secret");
});

test("a project of hers that is not claimed, and one that is closed, beside the claimed one", async () => {
  const secret = "/srv/lab/secret";
  await host.sh(`install -d -m 700 ${secret}; echo x >${secret}/x`, { user: "olga" });
  await expectOutOfReach(host, {
    "list it": ["names", secret],
    "read a file of it": ["read", `${secret}/x`],
    "make a file in it": ["create", secret],
    "move it away": ["rename", secret],
  });
});

test("nothing was logged as an error, and nothing was denied, that is not told above", () => gate.expectQuiet());
