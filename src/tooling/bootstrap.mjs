// SPDX-License-Identifier: Apache-2.0
// The first step of every command, for a machine that has nothing but Node 20 or newer and npm: makes node_modules what
// the lock file says, then runs the command line (cli.ts) with the Node 24 that came with it.
// Plain JavaScript without any dependency, because nothing is installed yet when it runs.

import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const OLDEST_NODE = 20;
const root = fileURLToPath(new URL("../..", import.meta.url));
const modules = join(root, "node_modules");
const node = join(modules, ".bin", "node");

refuseOldNode();
installDependencies();
runCommandLine();

function refuseOldNode() {
  if (Number(process.versions.node.split(".")[0]) >= OLDEST_NODE) return;
  stop(`Node ${OLDEST_NODE} or newer is needed, this is ${process.version}. Install one and run the command again.`);
}

/** Runs `npm ci` unless node_modules was made from exactly this package.json and lock file. */
function installDependencies() {
  const stamp = join(modules, ".made-from");
  const wanted = createHash("sha256")
    .update(readFileSync(join(root, "package.json")))
    .update(readFileSync(join(root, "package-lock.json")))
    .digest("hex");
  if (existsSync(node) && existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) return;
  console.log("[setup] npm dependencies ...");
  const startedMs = Date.now();
  runNpm();
  writeFileSync(stamp, wanted);
  console.log(`[setup] npm dependencies: done in ${((Date.now() - startedMs) / 1000).toFixed(1)} s`);
}

function runNpm() {
  const logPath = join(root, "build", "logs", "npm-ci.log");
  mkdirSync(join(root, "build", "logs"), { recursive: true });
  const log = openSync(logPath, "w");
  // No install script of a dependency is needed, so none may run.
  const npm = spawnSync("npm", ["ci", "--ignore-scripts"], { cwd: root, stdio: ["ignore", log, log] });
  closeSync(log);
  if (npm.error) stop(`npm cannot be started (${npm.error.message}). Install npm and run the command again.`);
  if (npm.status === 0 && existsSync(node)) return;
  const last = readFileSync(logPath, "utf8").trimEnd().split("\n").slice(-30).join("\n");
  stop(
    `${last}\nnpm ci failed (log: build/logs/npm-ci.log). The npm registry that this machine is set up for must answer.`,
  );
}

/** Hands over to Node 24. Ctrl-C reaches the command line by itself; this process only waits for it to clean up. */
function runCommandLine() {
  const commandLine = join(root, "src", "tooling", "cli.ts");
  const child = spawn(node, [commandLine, ...process.argv.slice(2)], { stdio: "inherit" });
  process.on("SIGINT", () => undefined);
  for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  child.on("error", (error) => stop(`${node} cannot be started: ${error.message}`));
  child.on("exit", (code, signal) => {
    process.exitCode = code ?? 128 + constants.signals[signal];
  });
}

function stop(text) {
  console.error(text);
  process.exit(1);
}
