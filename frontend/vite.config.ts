import { readdirSync } from "node:fs";
import { basename, resolve } from "node:path";
import { defineConfig } from "vitest/config";
import { keepEarlierBuilds } from "./build_keeping.ts";
import { poModules } from "./po_modules.ts";

const pages = resolve(import.meta.dirname, "src/pages");
const OUT = resolve(import.meta.dirname, "../static/build");
const entries = readdirSync(pages).filter((file) => file.endsWith(".ts"));

/** One entry a page; the manifest names what each needs, and the `vite` template tag reads it. */
export default defineConfig({
  base: "/static/build/",
  plugins: [keepEarlierBuilds(OUT), poModules()],
  build: {
    outDir: OUT,
    emptyOutDir: false,
    manifest: true,
    target: "es2022",
    // Inlined assets would be data: URLs, which the content security
    // policy allows for images alone.
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 900,
    rollupOptions: {
      input: {
        ...Object.fromEntries(entries.map((file) => [`pages/${basename(file, ".ts")}`, resolve(pages, file)])),
        push_worker: resolve(import.meta.dirname, "src/push_worker.ts"),
      },
      // A browser looks for a newer worker under the name that it was registered by; all other
      // names carry a hash of their content.
      output: { entryFileNames: (chunk) => (chunk.name === "push_worker" ? "push_worker.js" : "assets/[name]-[hash].js") },
    },
  },
  // Properties run hundreds of times, on a busy machine, too.
  test: { include: ["tests/**/*.test.ts"], environment: "node", testTimeout: 60_000 },
});
