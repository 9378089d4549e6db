import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { defineConfig, type Plugin } from "vite";

/** Compressed copies beside each file: the gateway compresses nothing while it serves. */
function compressed(): Plugin {
  let folder = "";
  return {
    name: "compressed",
    apply: "build",
    configResolved(config) {
      folder = config.build.outDir;
    },
    closeBundle() {
      for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
        if (!entry.isFile() || !/\.(js|css|svg)$/.test(entry.name)) continue;
        const path = join(entry.parentPath, entry.name);
        const content = readFileSync(path);
        const options = { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } };
        for (const [end, smaller] of [
          [".br", brotliCompressSync(content, options)],
          [".gz", gzipSync(content, { level: 9 })],
        ] as const) {
          if (smaller.length < content.length) writeFileSync(path + end, smaller);
        }
      }
    },
  };
}

export default defineConfig({
  base: "./",
  plugins: [compressed()],
  build: {
    target: "es2022",
    assetsInlineLimit: 0, // a data: address would break the content security policy
    modulePreload: { polyfill: false },
    emptyOutDir: true,
  },
  test: { environment: "node", include: ["src/**/*.test.ts"] },
} as Parameters<typeof defineConfig>[0]);
