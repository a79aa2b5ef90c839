/** Builds the page into `dist/board`: relative files with a hash in their names, nothing inline, nothing from elsewhere. */
import { defineConfig } from 'vite';

export default defineConfig({
  root: import.meta.dirname,
  base: './',
  build: {
    outDir: '../dist/board',
    emptyOutDir: true,
    target: 'es2023',
    // An inline script or picture would need a weaker policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    sourcemap: false,
  },
});
