// SPDX-License-Identifier: Apache-2.0
// What a stop says, as text and as JSON from the same report: no foreign byte gets through, nothing is hidden without a
// word, and each outcome comes with what to do next.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Found } from "./census.ts";
import { found, slicePath } from "./hand-made-processes.fixture.ts";
import { limits } from "./limits.ts";
import {
  headline,
  manualCommand,
  type Outcome,
  type Report,
  type ReportRow,
  renderJson,
  renderReport,
  renderTable,
  type Verdict,
} from "./report.ts";
import type { Row } from "./rows.ts";

function row(changes: Partial<Row> = {}): Row {
  const unit = changes.unit ?? "ai-tools-claude-code-7.service";
  const key = `${slicePath}/${unit}`;
  const project = { path: "/srv/shop", byAccount: false };
  return { key, unit, kind: "session", owner: "system", processes: [found({ pid: 7 })], project, ...changes };
}

function outcome(changes: Partial<Row> = {}, word: Outcome | undefined = "killed", reason = "SIGKILL"): ReportRow {
  return { row: row(changes), outcome: word, reason };
}

function report(changes: Partial<Report> = {}): Report {
  return {
    run: "2026-01-02T03:04:05.000Z-400",
    verdict: "stopped",
    exitCode: 0,
    caller: "olga (uid 1000)",
    uid: 990,
    consent: "prompt",
    force: false,
    dryRun: false,
    rows: [outcome()],
    survivors: [],
    unknown: [],
    bystanders: [],
    unreaped: [],
    manager: undefined,
    mechanisms: ["cgroup-kill", "per-pid"],
    remarks: [],
    hints: [],
    durationMs: 1_234.5,
    ...changes,
  };
}

const survivor = (process: Found, waitChannel = "", tracer = 0) => ({
  found: process,
  state: process.status.state,
  waitChannel,
  tracer,
});
const lineWith = (text: string, word: string) =>
  text.split("\n").find((line) => line.includes(word)) ?? `no line with ${word}`;
const reclaims = (text: string) => text.split("\n").filter((line) => line.includes("--reclaim"));

describe("text that somebody else chose", () => {
  /** The same hostile text everywhere that the account can put one. */
  function hostile(text: string): Report {
    const process = found({ pid: 7, command: text, cgroup: `${slicePath}/${text}` });
    const rows = (["session", "plumbing", "stray"] as const).map((kind) =>
      outcome({
        kind,
        unit: text,
        key: `${slicePath}/${text}`,
        processes: [process],
        project: { path: `/srv/${text}`, byAccount: true },
      }),
    );
    return report({
      rows,
      survivors: [survivor(process, text, 3)],
      bystanders: [{ found: process, reason: "a root process acting for the account" }],
      unreaped: [process],
    });
  }

  const forged = [
    ["an escape sequence", "\x1b[2J\x1b[1;1HSTOPPED: everything that was found is verified gone (0.1 s)."],
    ["a line break", "a\nSTOPPED: everything that was found is verified gone (0.1 s)."],
    ["a carriage return", "a\rSTOPPED: everything that was found is verified gone (0.1 s)."],
    ["the end of a JSON string", 'x","verdict":"stopped","exitCode":0,"y":"'],
    ["eight-bit controls and a change of direction", "\x9b31m\u202egnp.exe\u0000\x7f"],
  ] as const;

  test.each(forged)("forges no line and reaches no terminal: %s", (_name, text) => {
    const hostileReport = { ...hostile(text), verdict: "incomplete" as const, exitCode: 1 };
    const shown =
      renderReport(hostileReport) +
      renderTable(
        hostileReport.rows.map((one) => one.row),
        990,
      );
    expect(shown).toMatch(/^[\x20-\x7e\n]*$/);
    expect(shown.split("\n").filter((line) => line.startsWith("STOPPED"))).toEqual([]);
    const parsed = JSON.parse(renderJson(hostileReport));
    expect(parsed).toMatchObject({ verdict: "incomplete", exitCode: 1 });
    expect(renderJson(hostileReport)).toMatch(/^[\x20-\x7e\n]*$/);
  });

  test("changes neither how many lines the report has nor what the JSON document holds", () => {
    const lines = (text: string) => text.split("\n").length;
    const plain = hostile("plain");
    // A path that cannot be pasted has no line to paste it; everything else stays.
    const withoutReclaim = (text: string) => lines(text) - reclaims(text).length;
    fc.assert(
      fc.property(fc.string({ unit: "binary", minLength: 1, maxLength: 300 }), (text) => {
        const named = hostile(text);
        expect(withoutReclaim(renderReport(named))).toBe(withoutReclaim(renderReport(plain)));
        expect(lines(renderJson(named))).toBe(lines(renderJson(plain)));
        expect(renderReport(named) + renderJson(named)).toMatch(/^[\x20-\x7e\n]*$/);
      }),
    );
  });

  test("is short: no name fills the screen", () => {
    const long = hostile("x".repeat(4_000));
    for (const line of renderReport({
      ...long,
      rows: long.rows.map((one) => ({ ...one, row: { ...one.row, project: { path: undefined, byAccount: false } } })),
    }).split("\n")) {
      expect(line.length).toBeLessThan(500);
    }
    for (const line of renderTable(
      long.rows.map((one) => one.row),
      990,
    ).split("\n"))
      expect(line.length).toBeLessThan(300);
  });
});

describe("the table", () => {
  test("counts agent sessions, plumbing and strays apart", () => {
    const rows = [
      row(),
      row({ unit: "ai-tools-x-2.service" }),
      row({ kind: "plumbing", unit: "a.service" }),
      row({ kind: "stray", unit: "cron.service" }),
    ];
    expect(headline(rows, 990)).toBe(
      "2 agent sessions, 1 unit of account plumbing, 1 stray: 4 processes of the account ai-tools (uid 990).",
    );
    expect(headline([], 990)).toBe("Nothing of the account ai-tools (uid 990) is running.");
  });

  test("says of each row what it is", () => {
    const table = renderTable(
      [
        row({ project: { path: "/srv/shop", byAccount: false } }),
        row({ unit: "ai-tools-x-2.service", owner: "account", project: { path: "/srv/b", byAccount: true } }),
        row({ unit: "ai-tools-y-3.service", project: { path: undefined, byAccount: false } }),
        row({ unit: "init.scope", kind: "plumbing", owner: "account" }),
        row({ unit: "x.service", kind: "plumbing" }),
        row({ unit: "cron.service", kind: "stray", key: "/system.slice/cron.service" }),
      ],
      990,
    );
    expect(lineWith(table, "claude-code-7")).toMatch(/ 1 {2}\/srv\/shop$/);
    expect(lineWith(table, "ai-tools-x-2")).toContain("/srv/b (the account's word)");
    expect(lineWith(table, "ai-tools-y-3")).toMatch(/unknown$/);
    expect(lineWith(table, "init.scope")).toContain("its user manager");
    expect(lineWith(table, "x.service")).toContain("(account plumbing)");
    expect(lineWith(table, "cron.service")).toContain("stray outside the slice, in /system.slice/cron.service");
  });

  test("PID 1's init.scope is not called the account's user manager", () => {
    expect(renderTable([row({ unit: "init.scope", kind: "plumbing", owner: "system" })], 990)).not.toContain(
      "user manager",
    );
  });

  test("is capped, and says how much more there is", () => {
    const rows = Array.from({ length: limits.rows + 3 }, (_, index) => row({ unit: `u${index}.service` }));
    const table = renderTable(rows, 990);
    expect(table).toContain("  and 3 more\n");
    expect(table).toContain(`${limits.rows + 3} agent sessions`);
    expect(table).not.toContain(`u${limits.rows}.service`);
  });
});

describe("the report names each outcome", () => {
  test("row by row, with the reason", () => {
    const text = renderReport(
      report({
        rows: [
          outcome({ unit: "a.service" }, "terminated", "ended within the grace after SIGTERM"),
          outcome({ unit: "b.service" }, "killed", "SIGKILL; it had not ended within the grace of 10 s"),
          outcome({ unit: "c.service" }, "alive", "survived SIGKILL"),
          outcome({ unit: "d.service" }, "reappeared", "alive again"),
        ],
      }),
    );
    expect(lineWith(text, "a.service")).toMatch(/^ {2}stopped .*: ended within the grace after SIGTERM$/);
    expect(lineWith(text, "b.service")).toMatch(/^ {2}KILLED .*: SIGKILL; it had not ended/);
    expect(lineWith(text, "c.service")).toMatch(/^ {2}ALIVE .*: survived SIGKILL$/);
    expect(lineWith(text, "d.service")).toMatch(/^ {2}reappeared .*: alive again$/);
  });

  test("strays with their processes and their place", () => {
    const processes = [1, 2, 3, 4, 5, 6, 7].map((pid) => found({ pid: 100 + pid, command: `c${pid}` }));
    const text = renderReport(
      report({ rows: [outcome({ kind: "stray", key: "/system.slice/cron.service", processes })] }),
    );
    expect(lineWith(text, "stray")).toContain("pid 101 (c1), pid 102 (c2)");
    expect(lineWith(text, "stray")).toContain("and 2 more in /system.slice/cron.service");
  });

  test("survivors with state, wait channel, tracer and place", () => {
    const process = found({ pid: 77, command: "dd", state: "D", cgroup: `${slicePath}/a.service` });
    const text = renderReport(
      report({ verdict: "incomplete", survivors: [survivor(process, "request_wait_answer", 12)] }),
    );
    expect(lineWith(text, "pid 77")).toBe(
      `  ALIVE       pid 77 (dd): state D, waiting in request_wait_answer, traced by pid 12, in ${slicePath}/a.service`,
    );
    expect(lineWith(renderReport(report({ survivors: [survivor({ ...process, cgroup: undefined })] })), "pid 77")).toBe(
      "  ALIVE       pid 77 (dd): state D",
    );
  });

  test("bystanders, the unreaped, what is unknown, remarks and hints", () => {
    const text = renderReport(
      report({
        bystanders: [{ found: found({ pid: 50, command: "smbd" }), reason: "a root process acting for the account" }],
        unreaped: [found({ pid: 51, parent: 44 }), found({ pid: 52, parent: 44 })],
        unknown: ["the status of 1 process(es) cannot be read"],
        remarks: ["the slice was frozen, thawed"],
        hints: ["The account has a crontab"],
      }),
    );
    expect(text).toContain("untouched pid 50 (smbd): a root process acting for the account");
    expect(text).toContain("2 dead processes not yet reaped by pid 44");
    expect(text).toContain("UNKNOWN   the status of 1 process(es)");
    expect(text).toContain("Note: the slice was frozen, thawed");
    expect(text).toContain("The account has a crontab");
  });

  test("the manager on its own line, with what mends it", () => {
    const manager = {
      outcome: "not-restored" as const,
      reason: "exit code 1: masked",
      mend: "systemctl start user@990.service",
      startedAfterTicks: undefined,
    };
    const text = renderReport(report({ manager }));
    expect(lineWith(text, "User manager")).toBe(
      "User manager: NOT restored: exit code 1: masked. To mend it, as root: systemctl start user@990.service",
    );
    expect(text).toContain("STOPPED:");
  });

  test("rows and survivors are capped, each with how many more there are", () => {
    const rows = Array.from({ length: limits.rows + 4 }, (_, index) =>
      outcome({ unit: `u${index}.service`, project: { path: undefined, byAccount: false } }),
    );
    const survivors = Array.from({ length: limits.named + 5 }, (_, index) => survivor(found({ pid: 1_000 + index })));
    const text = renderReport(report({ rows, survivors }));
    expect(text).toContain("  and 4 more\n");
    expect(text.split("\n").filter((line) => line.startsWith("  KILLED"))).toHaveLength(limits.rows);
    expect(text.split("\n").filter((line) => line.includes("ALIVE "))).toHaveLength(limits.named);
    expect(text).toContain("  and 5 more alive\n");
  });

  test("bystanders are capped, and it says how many more there are", () => {
    const bystanders = Array.from({ length: limits.named + 5 }, (_, index) => ({
      found: found({ pid: 1_000 + index }),
      reason: "root's",
    }));
    const lines = renderReport(report({ bystanders })).split("\n");
    expect(lines.filter((line) => line.includes("untouched pid"))).toHaveLength(limits.named);
    expect(
      lines.some((line) => /and 5 more/.test(line)),
      "a line that says: and 5 more",
    ).toBe(true);
    expect(JSON.parse(renderJson(report({ bystanders })))).toMatchObject({ bystandersNotShown: 5 });
  });
});

describe("the last lines say what happened and what to do next", () => {
  test.each<[Verdict, RegExp, RegExp]>([
    ["stopped", /^STOPPED: everything that was found is verified gone \(1\.2 s\)\.$/m, /./],
    ["nothing-running", /^Nothing was running, and nothing is: verified/m, /./],
    ["incomplete", /^NOT STOPPED: /m, /run ai-tools --stop again/],
    [
      "reappeared",
      /^NOT STOPPED: .*alive again/m,
      /ai-tools --hold REASON, so that no new session is started, and ai-tools --stop again/,
    ],
    ["interrupted", /^Interrupted\.$/m, /run ai-tools --stop again/],
    ["declined", /^Declined: nothing was touched\.$/m, /./],
    ["dry-run", /^Dry run: nothing was touched\.$/m, /To stop it: ai-tools --stop/],
    ["refused", /^Refused: nothing was stopped\.$/m, /./],
  ])("%s", (verdict, says, next) => {
    const text = renderReport(report({ verdict }));
    expect(text).toMatch(says);
    expect(text).toMatch(next);
  });

  test("only a stop that is proved says STOPPED or verified", () => {
    for (const verdict of ["incomplete", "reappeared", "declined", "dry-run", "interrupted", "refused"] as const) {
      expect(renderReport(report({ verdict, rows: [] })), verdict).not.toMatch(/^STOPPED|is verified|: verified/m);
    }
  });

  test("the command by hand needs nothing of this program, and works without knowing the number", () => {
    expect(manualCommand(990)).toContain("user-990.slice; pkill -KILL -U 990");
    expect(manualCommand(undefined)).toContain("user-$(id -u ai-tools).slice; pkill -KILL -U ai-tools");
  });
});

describe("taking the files back", () => {
  const reclaimFor = (path: string | undefined, changes: Partial<Row> = {}) =>
    reclaims(renderReport(report({ rows: [outcome({ project: { path, byAccount: false }, ...changes })] })));

  test("one line for each project of an agent session, in a form that can be pasted", () => {
    expect(reclaimFor("/srv/shop")).toEqual(["To take the files back: ai-tools --reclaim /srv/shop"]);
    expect(reclaimFor("/srv/it's mine; id")).toEqual([
      "To take the files back: ai-tools --reclaim /srv/it\\'s\\ mine\\;\\ id",
    ]);
    const twice = [outcome(), outcome({ unit: "ai-tools-x-8.service" })];
    expect(reclaims(renderReport(report({ rows: twice })))).toHaveLength(1);
  });

  test("the account's word is marked as such", () => {
    expect(reclaimFor("/srv/x", { project: { path: "/srv/x", byAccount: true } })[0]).toMatch(
      /--reclaim \/srv\/x {3}# the account's word$/,
    );
  });

  test.each([
    "/",
    "/etc",
    "/etc/ai-tools",
    "/usr/lib",
    "/boot",
    "/dev/shm",
    "/proc/1/root/srv",
    "/run/user/990",
    "/sys",
    "/var/lib/ai-tools",
    "/var/lib/ai-tools/home/x",
    "/var/log/ai-tools",
  ])("no reclaim line for %s: it is the control plane", (path) => {
    expect(reclaimFor(path)).toEqual([]);
  });

  test.each(["/var", "/var/lib"])("no reclaim line for %s: the control plane lies in it", (path) => {
    expect(reclaimFor(path)).toEqual([]);
  });

  test("a path with a line break, an escape sequence or letters beyond ASCII stays one line of ASCII", () => {
    expect(reclaimFor("/srv/a\nb \x1b[2J\xc3\xa9")).toEqual([
      "To take the files back: ai-tools --reclaim $'/srv/a\\012b\\040\\033\\1332J\\303\\251'",
    ]);
  });

  test.each(["(unreachable)/srv/x", "srv", "", "/srv/gone (deleted)"])(
    "no reclaim line for %j: it is no directory that could be named to a shell",
    (path) => {
      expect(reclaimFor(path)).toEqual([]);
    },
  );

  test("a tree whose name only begins like the control plane's is a project", () => {
    for (const path of ["/etcetera", "/usr2/x", "/var/lib/ai-tools-projects", "/home/olga/etc", "/opt/x"]) {
      expect(reclaimFor(path), path).toHaveLength(1);
    }
  });

  test("no reclaim line for what is no session, has no project, or was not touched", () => {
    expect(reclaimFor("/srv/x", { kind: "plumbing" })).toEqual([]);
    expect(reclaimFor("/srv/x", { kind: "stray" })).toEqual([]);
    expect(reclaimFor(undefined)).toEqual([]);
    const untouched = report({
      verdict: "declined",
      rows: [{ row: row(), outcome: undefined, reason: "1 process(es)" }],
    });
    expect(reclaims(renderReport(untouched))).toEqual([]);
  });
});

describe("the JSON document", () => {
  test("says the same as the text: verdict, rows, survivors, manager, remarks", () => {
    const process = found({ pid: 77, command: "dd", state: "D" });
    const manager = { outcome: "restored" as const, reason: undefined, mend: undefined, startedAfterTicks: 5 };
    const whole = report({
      verdict: "incomplete",
      exitCode: 1,
      rows: [
        outcome({}, "alive", "survived SIGKILL"),
        outcome({ kind: "stray", unit: "cron.service", processes: [process] }),
      ],
      survivors: [survivor(process, "ptrace_stop", 12)],
      unknown: ["u"],
      remarks: ["r"],
      hints: ["h"],
      manager,
    });
    expect(JSON.parse(renderJson(whole))).toMatchObject({
      run: whole.run,
      verdict: "incomplete",
      exitCode: 1,
      caller: "olga (uid 1000)",
      consent: "prompt",
      rows: [
        {
          unit: "ai-tools-claude-code-7.service",
          kind: "session",
          outcome: "alive",
          reason: "survived SIGKILL",
          project: "/srv/shop",
          pids: [7],
        },
        { unit: "cron.service", kind: "stray", outcome: "killed" },
      ],
      strays: [{ pid: 77, command: "dd" }],
      survivors: [{ pid: 77, state: "D", waitChannel: "ptrace_stop", tracer: 12 }],
      unknown: ["u"],
      manager: { outcome: "restored", reason: null, mend: null },
      remarks: ["r"],
      hints: ["h"],
      durationMs: 1235,
    });
  });

  test("is capped, and says how much is not shown", () => {
    const processes = Array.from({ length: limits.named + 7 }, (_, index) => found({ pid: 1_000 + index }));
    const many = report({
      rows: [...Array.from({ length: limits.rows + 1 }, () => outcome()), outcome({ kind: "stray", processes })],
      survivors: processes.map((process) => survivor(process)),
    });
    const parsed = JSON.parse(renderJson(many));
    expect([parsed.rows.length, parsed.rowsNotShown]).toEqual([limits.rows, 2]);
    expect([parsed.strays.length, parsed.straysNotShown]).toEqual([limits.named, 7]);
    expect([parsed.survivors.length, parsed.survivorsNotShown]).toEqual([limits.named, 7]);
  });

  test("has every field whatever happened, with null for what is not known", () => {
    const empty = JSON.parse(renderJson(report({ verdict: "refused", rows: [], manager: undefined })));
    expect(empty.manager).toEqual({ outcome: null, reason: null, mend: null });
    expect(empty).toMatchObject({ rows: [], strays: [], survivors: [], unknown: [], bystanders: [], unreaped: 0 });
  });
});
