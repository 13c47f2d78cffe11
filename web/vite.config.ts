import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, gzipSync } from "node:zlib";
import react from "@vitejs/plugin-react";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const out = here("../src/holdfast/_ui");
const SMALLEST = 1024;

/** Each asset also as .br and .gz, so that the server compresses nothing while it answers. */
function precompressed(): Plugin {
  return {
    name: "precompressed",
    apply: "build",
    closeBundle() {
      const folder = join(out, "assets");
      for (const name of readdirSync(folder)) {
        const data = readFileSync(join(folder, name));
        if (data.length < SMALLEST || /\.(br|gz)$/.test(name)) continue;
        writeFileSync(join(folder, `${name}.br`), brotliCompressSync(data));
        writeFileSync(join(folder, `${name}.gz`), gzipSync(data, { level: 9 }));
      }
    },
  };
}

export default defineConfig({
  // Relative: the server writes the path prefix, if it has one, into index.html.
  base: "./",
  plugins: [react(), precompressed()],
  resolve: {
    alias: {
      "@client": here("../src/holdfast/api/javascript/holdfast.js"),
      "@": here("./src"),
    },
  },
  build: { outDir: out, emptyOutDir: true, manifest: true, target: "es2023", modulePreload: { polyfill: false } },
  server: {
    // `npm run dev` beside a running `holdfast serve`.
    proxy: Object.fromEntries(
      ["/v1", "/sign-in", "/static", "/plain"].map((path) => [path, { target: "http://127.0.0.1:8420", ws: true }]),
    ),
  },
  // The files share their modules: to load them for each file takes half of the time.
  test: { environment: "node", include: ["tests/**/*.test.ts", "tests/**/*.test.tsx"], globals: false, isolate: false, pool: "threads" },
});
