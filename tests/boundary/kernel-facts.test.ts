// SPDX-License-Identifier: Apache-2.0
// The facts that the simulated kernel rests on, each under its name on a real kernel: the laws of a stop are proved in the
// simulation, and are worth what these are worth.

import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { kernelFacts } from "../../src/stop/simulation/facts.ts";
import type { LabHost } from "../../src/tooling/lab/host.ts";
import { type OpenLab, openLab } from "../../src/tooling/lab/lab.ts";
import { whichHost } from "./kit/host.ts";

const folder = "/root/kernel-facts";
const program = `${folder}/show.py`;
/** /dev/fuse, for the daemon that hangs. */
const fuse = "c 10:229";

let lab: OpenLab;
let host: LabHost;

beforeAll(async () => {
  lab = await openLab();
  host = await lab.boot(whichHost(), { devices: [fuse] });
  const source = join(import.meta.dirname, "kernel-facts");
  for (const name of readdirSync(source).filter((file) => file.endsWith(".py")))
    await host.copyIn(join(source, name), `${folder}/${name}`);
});

afterAll(async () => {
  await lab.end();
});

test("every fact of the simulator has a counterpart on a real kernel, and the other way round", async () => {
  const real = (await host.sh(`python3 ${program} --list`)).trim().split("\n").sort();
  expect(real).toEqual(kernelFacts.map((fact) => fact.name).sort());
});

test.each(kernelFacts.map((fact) => [fact.name, fact] as const))("%s", async (name, fact) => {
  const { code, stdout, stderr } = await host.run(["python3", program, name]);
  expect({ code, said: stdout + stderr }, fact.statement).toEqual({ code: 0, said: "so it is\n" });
});
