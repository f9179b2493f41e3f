/**
 * Files of earlier builds stay for a while: pages that were loaded before a build go on asking for
 * the chunks that they know.
 *
 * Names carry a hash of their content, so builds never stand in each other's way.
 */

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import type { Plugin } from "vite";

/** The newest build and those before it. */
const BUILDS_KEPT = 4;

/** What belongs to none of `builds`, newest first. */
export function superseded(files: readonly string[], builds: readonly (readonly string[])[]): string[] {
  const kept = new Set(builds.flat());
  return files.filter((file) => !kept.has(file));
}

/**
 * Writes down in `.vite/builds.json` what each build is made of, and removes from `assets/`
 * what belongs to no kept one.
 */
export function keepEarlierBuilds(folder: string): Plugin {
  const assets = join(folder, "assets");
  const list = join(folder, ".vite", "builds.json");
  return {
    name: "keep-earlier-builds",
    apply: "build",
    writeBundle(_, bundle) {
      const made = Object.keys(bundle).flatMap((name) => (name.startsWith("assets/") ? [name.slice("assets/".length)] : []));
      const there = filesBelow(assets);
      // Before the first list: whatever lies there is the build before.
      const earlier = existsSync(list) ? (JSON.parse(readFileSync(list, "utf8")) as string[][]) : [there];
      const builds = [made, ...earlier].slice(0, BUILDS_KEPT);
      mkdirSync(join(folder, ".vite"), { recursive: true });
      writeFileSync(list, JSON.stringify(builds));
      for (const file of superseded(there, builds)) rmSync(join(assets, file));
    },
  };
}

/** Paths relative to the folder. */
function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true }).flatMap((entry) =>
    entry.isFile() ? [relative(folder, join(entry.parentPath, entry.name))] : [],
  );
}
