// SPDX-License-Identifier: Apache-2.0
// The command line that starts a session: nothing in it is taken for anything but itself, by systemd-run or by PID 1.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { endedUnit, pathInside, type SessionUnit, servicesAmong, systemdRunCommand } from "./session-unit.ts";

const plain: SessionUnit = {
  unit: "ai-tools-shell-400.service",
  uid: 990,
  entryPoint: {
    name: "shell",
    program: "/bin/bash",
    arguments: ["-x"],
    environment: {},
    description: "",
    network: false,
  },
  arguments: ["-c", "true"],
  project: "/srv/site",
  device: 8,
  inode: 72,
  directory: "/srv/site/sub",
  stops: 3,
  streams: "pty",
  confinement: { context: undefined, held: "off" },
  services: [],
  terminal: {},
};

const command = (changes: Partial<SessionUnit> = {}) => systemdRunCommand({ ...plain, ...changes });
const properties = (changes: Partial<SessionUnit> = {}) =>
  command(changes).flatMap((word, at, all) => (all[at - 1] === "-p" ? [word] : []));
const behind = (argv: string[]) => argv.slice(argv.indexOf("--") + 1);
const binds = (project: string) => properties({ project }).filter((property) => property.startsWith("BindPaths="));

describe("the unit", () => {
  test("is PID 1's, in the account's slice, as the account, and is waited for", () => {
    const argv = command();
    expect(argv[0]).toBe("/usr/bin/systemd-run");
    for (const word of [
      "--wait",
      "--unit=ai-tools-shell-400.service",
      "--slice=user-990.slice",
      "--uid=ai-tools",
      "--gid=ai-tools",
    ])
      expect(argv).toContain(word);
    expect(argv).not.toContain("--collect");
  });

  test("gets a pty of its own or named pipes, and never a descriptor", () => {
    expect(command()).toContain("--pty");
    expect(properties().filter((property) => property.startsWith("Standard"))).toEqual([]);
    const streams = { 0: "/run/x/0", 1: "/run/x/1", 2: "/run/x/1" };
    expect(properties({ streams }).filter((property) => property.startsWith("Standard"))).toEqual([
      "StandardInput=file:/run/x/0",
      "StandardOutput=file:/run/x/1",
      "StandardError=file:/run/x/1",
    ]);
    for (const option of ["--pty", "--pipe"]) expect(command({ streams })).not.toContain(option);
  });

  test("can gain no rights, see no homes and reach no bus", () => {
    expect(properties()).toEqual(
      expect.arrayContaining([
        "NoNewPrivileges=yes",
        "CapabilityBoundingSet=",
        "UMask=0007",
        "ProtectHome=tmpfs",
        "PrivateTmp=yes",
        "ProtectProc=invisible",
        "PrivateNetwork=yes",
      ]),
    );
    expect(properties()).toContain("InaccessiblePaths=-/run/dbus -/run/systemd/private");
  });

  test("reaches none of systemd's services, whichever a release has", () => {
    const names = ["resolve", "io.systemd.Hostname", "private", "io.system.ManagedOOM", "io.systemd.x y"];
    expect(servicesAmong(names)).toEqual(["io.system.ManagedOOM", "io.systemd.Hostname"]);
    expect(properties({ services: servicesAmong(names) })).toContain(
      "InaccessiblePaths=-/run/dbus -/run/systemd/private -/run/systemd/io.system.ManagedOOM -/run/systemd/io.systemd.Hostname",
    );
  });

  test("has the network only where the entry point says so", () => {
    expect(properties({ entryPoint: { ...plain.entryPoint, network: true } })).toContain("PrivateNetwork=no");
  });

  test("is followed by two different units, as with one for both neither is told how it ended", () => {
    expect(properties()).toContain("OnSuccess=ai-tools-ended@ai-tools-shell-400.service");
    expect(properties()).toContain("OnFailure=ai-tools-failed@ai-tools-shell-400.service");
    expect(endedUnit("ended", plain.unit)).toBe("ai-tools-ended@ai-tools-shell-400.service");
  });

  test("has a description of ours: systemd's own is the command line, which PID 1 would write as it is", () => {
    const evil = "x\n[Service]\nExecStopPost=+/bin/sh";
    for (const argv of [command({ arguments: [evil] }), command({ project: `/srv/${evil}` })])
      expect(argv).toContain("--description=ai-tools session (shell)");
  });

  test("starts with a clean environment and a home of its own; what root wrote comes last", () => {
    const set = command({
      terminal: { TERM: "xterm" },
      entryPoint: { ...plain.entryPoint, environment: { PATH: "/opt/bin", A: "b c" } },
    }).filter((word) => word.startsWith("--setenv="));
    expect(set).toContain("--setenv=HOME=/var/lib/ai-tools/home");
    expect(set).toContain("--setenv=TERM=xterm");
    expect(set).toContain("--setenv=PATH=/opt/bin");
    expect(set).toContain("--setenv=A=b c");
    expect(set.filter((word) => word.includes("PATH="))).toHaveLength(1);
  });
});

describe("under SELinux, the unit", () => {
  test("asks for its context by name, so that PID 1 starts nothing where it cannot have it", () => {
    const context = "system_u:system_r:ai_tools_t:s0";
    expect(properties({ confinement: { context, held: "ai_tools_t" } })).toContain(`SELinuxContext=${context}`);
    expect(properties().filter((property) => property.startsWith("SELinux"))).toEqual([]);
  });
});

describe("the launcher", () => {
  test("is told what must hold: domain, project, id, number of stops and directory, then the agent's command line", () => {
    expect(behind(command({ confinement: { context: "a:b:c", held: "ai_tools_t" } }))).toEqual([
      "/usr/lib/ai-tools/ai-tools-session",
      "ai_tools_t",
      "/srv/site",
      "8:72",
      "3",
      "/srv/site/sub",
      "/bin/bash",
      "-x",
      "-c",
      "true",
    ]);
  });
});

describe("whatever a caller types", () => {
  test("reaches the program as it is: each sign that systemd would expand is doubled", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: "grapheme" })), (words) => {
        const given = behind(command({ arguments: words })).slice(-words.length);
        if (words.length === 0) return;
        // systemd.service(5): `$$` is one sign, and a single one would be the beginning of a variable.
        expect(given.map((word) => word.replace(/\$\$/g, "\0").includes("$"))).not.toContain(true);
        expect(given.map((word) => word.replaceAll("$$", "$"))).toEqual(words);
      }),
    );
  });

  test("is in no option of systemd-run's", () => {
    const secret = "s3cr3t";
    const argv = command({ arguments: [secret] });
    expect(argv.slice(0, argv.indexOf("--")).some((word) => word.includes(secret))).toBe(false);
  });
});

describe("a project", () => {
  const place = "/run/ai-tools/projects/ai-tools-shell-400.service";

  test.each(["/home/olga/site", "/root/x", "/run/user/1001/x", "/tmp/x", "/var/tmp/x"])(
    "in %s is brought in, as sessions see nothing there",
    (project) => {
      expect(binds(project)).toEqual([`BindPaths=${place}:${project}`]);
    },
  );

  test.each(["/srv/site", "/homes/x", "/tmpfs/x", "/var/www/x", "/opt/a b"])("in %s is where it is", (project) => {
    expect(binds(project)).toEqual([]);
  });

  test("whose path holds signs of systemd's is brought in by that path", () => {
    expect(binds("/tmp/a b:c%d\"e'f\\g$h")).toEqual([`BindPaths=${place}:/tmp/a\\ b\\:c\\%d\\"e\\'f\\\\g\\$h`]);
    expect(binds("/tmp/ü漢")).toEqual([`BindPaths=${place}:/tmp/ü漢`]);
  });

  test("is in no property with a control character, which PID 1 would write as it is", () => {
    const anywhere = fc.tuple(fc.constantFrom("/srv", "/home/olga", "/tmp"), fc.string({ unit: "binary-ascii" }));
    fc.assert(
      fc.property(anywhere, ([base, name]) => {
        const project = `${base}/${name}`;
        const argv = command({ project, directory: project });
        const options = argv.slice(0, argv.indexOf("--"));
        expect(options.some((word) => /[\x00-\x1f\x7f]/.test(word))).toBe(false);
      }),
    );
  });

  test("is named to PID 1 nowhere but as a place in an empty file system, nor is its directory", () => {
    for (const base of ["/srv", "/home/olga", "/tmp"]) {
      const project = `${base}/secretly`;
      const options = command({ project, directory: `${project}/sub` });
      const named = options.slice(0, options.indexOf("--")).filter((word) => word.includes("secretly"));
      expect(named).toEqual(base === "/srv" ? [] : [`BindPaths=${place}:${project}`]);
    }
  });

  test("with such a path is seen at another one, where it must be brought in", () => {
    const project = "/home/olga/a\nb";
    expect(binds(project)).toEqual([
      "BindPaths=/run/ai-tools/projects/ai-tools-shell-400.service:/home/ai-tools-project",
    ]);
    expect(behind(command({ project, directory: `${project}/sub` })).slice(2, 6)).toEqual([
      "/home/ai-tools-project",
      "8:72",
      "3",
      "/home/ai-tools-project/sub",
    ]);
    expect(pathInside("/srv/a\nb", "/srv/a\nb/c")).toBe("/srv/a\nb/c");
  });
});
