// SPDX-License-Identifier: Apache-2.0
// Makes the image of a lab host: a Debian with systemd, sudo, rpm and dnf, from this machine's own apt configuration,
// kept in the cache under a hash of its recipe.

import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { cacheDirectory, isRoot } from "../machine.ts";
import { logged, step } from "../progress.ts";
import { ensurePackages } from "../setup/apt.ts";
import { debootstrapOnce, mmdebstrapOptions, PACKAGES, RECIPE_FOLDER } from "./debootstrap.ts";
import type { Engine } from "./engine.ts";

/** Debian 12 has systemd 252, the generation of EL9; Debian 13 has 257, that of EL10; sid is ahead of Fedora. */
export const suites = ["bookworm", "trixie", "sid"] as const;
export type Suite = (typeof suites)[number];

/** Without the tag, which is the suite and the hash of the recipe. */
export const IMAGE_NAME = "ai-tools-lab";

const IMPORT_LIMIT_MS = 300_000;

/**
 * Makes sure that the engine has the image of a suite.
 * @returns the image's name
 */
export async function ensureImage(engine: Engine, suite: Suite): Promise<string> {
  const hash = recipeHash(suite);
  const image = `${IMAGE_NAME}:${suite}-${hash}`;
  if ((await engine.docker(["image", "inspect", image])).code === 0) return image;
  if (engine.kind === "ordinary" && !canDebootstrap()) {
    await step(`building the ${suite} image (a minute or two)`, () => buildImage(engine, suite, image));
    return image;
  }
  const tarball = await ensureTarball(suite, hash);
  await step(`importing the ${suite} image`, async () => {
    const { code, stderr } = await engine.docker(["import", tarball, image], { timeoutMs: IMPORT_LIMIT_MS });
    if (code !== 0) throw new Error(`docker import ${tarball} ended with ${code}: ${stderr}`);
  });
  if (engine.kind === "private") await removeOldImages(engine, suite, image);
  return image;
}

/** Those that an earlier recipe made, so that the data root does not grow with each change of it. */
async function removeOldImages(engine: Engine, suite: Suite, current: string): Promise<void> {
  const format = "{{.Repository}}:{{.Tag}}";
  const list = ["image", "ls", "--filter", `reference=${IMAGE_NAME}:${suite}-*`, "--format", format];
  const old = (await engine.docker(list)).stdout.split("\n").filter((line) => line !== "" && line !== current);
  if (old.length > 0) await engine.docker(["image", "rm", ...old]);
}

function recipeHash(suite: Suite): string {
  const hash = createHash("sha256").update(JSON.stringify([suite, PACKAGES, mmdebstrapOptions("aptopt")]));
  for (const name of readdirSync(RECIPE_FOLDER).sort()) hash.update(readFileSync(join(RECIPE_FOLDER, name)));
  return hash.digest("hex").slice(0, 12);
}

function canDebootstrap(): boolean {
  return isRoot() && existsSync("/usr/bin/apt-get");
}

/** From the engine's own Debian image, where this machine cannot make one from nothing. */
async function buildImage(engine: Engine, suite: Suite, image: string): Promise<void> {
  const build = [
    "build",
    "--tag",
    image,
    "--build-arg",
    `SUITE=${suite}`,
    "--build-arg",
    `PACKAGES=${PACKAGES.join(" ")}`,
  ];
  await logged(`image-${suite}`, engine.argv([...build, RECIPE_FOLDER]));
}

async function ensureTarball(suite: Suite, hash: string): Promise<string> {
  const tarball = join(cacheDirectory("lab"), `image-${suite}-${hash}.tar`);
  if (existsSync(tarball)) return tarball;
  await ensurePackages(["mmdebstrap"]);
  await step(`making the ${suite} image (a minute or two)`, () =>
    debootstrapOnce({
      suite,
      kept: tarball,
      ending: ".tar",
      options: mmdebstrapOptions,
      environment: { RECIPE: RECIPE_FOLDER },
      log: `image-${suite}`,
    }),
  );
  const old = readdirSync(cacheDirectory("lab")).filter((name) => name.startsWith(`image-${suite}-`));
  for (const name of old.filter((other) => !other.includes(hash)))
    rmSync(join(cacheDirectory("lab"), name), { force: true });
  return tarball;
}
