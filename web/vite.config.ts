/** Builds the page into `dist/board`: relative files with a hash in their names, nothing inline, nothing from elsewhere. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { defineConfig, type Plugin } from 'vite';

const OUT = join(import.meta.dirname, '../dist/board');

/** Beside each text file, the same packed with brotli and gzip: the gateway only chooses one. */
function pack(): Plugin {
  return {
    name: 'pack',
    apply: 'build',
    closeBundle() {
      for (const name of readdirSync(OUT, { recursive: true, encoding: 'utf8' })) {
        if (!/\.(html|js|css|svg)$/.test(name)) continue;
        const file = join(OUT, name);
        const bytes = readFileSync(file);
        const params = { [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
        writeFileSync(`${file}.br`, brotliCompressSync(bytes, { params }));
        writeFileSync(`${file}.gz`, gzipSync(bytes, { level: 9 }));
      }
    },
  };
}

export default defineConfig({
  root: import.meta.dirname,
  base: './',
  plugins: [pack()],
  build: {
    outDir: OUT,
    emptyOutDir: true,
    target: 'es2023',
    // An inline script or picture would need a weaker policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    sourcemap: false,
  },
});
