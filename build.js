/**
 * The second half of `npm run build`: the compiled modules become a few files. A gateway loads some five hundred
 * modules otherwise, and its start takes twice as long. What is imported lazily stays a file of its own.
 */
import { chmodSync, readdirSync, rmSync } from 'node:fs';
import { build } from 'esbuild';

rmSync('dist/compile-cache', { recursive: true, force: true });
for (const name of readdirSync('dist')) if (/\.js(\.map)?$/.test(name)) rmSync(`dist/${name}`);

const options = {
  outdir: 'dist',
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  // Beside main.js, so that paths relative to a module hold in all of them.
  chunkNames: '[name]-[hash]',
  // The first two are native and loaded by their own paths. The platforms' libraries stay what they are: an error of
  // theirs is known by where it was thrown, and libsignal, which comes with Baileys, is under another licence.
  external: [
    ...['better-sqlite3', 'sharp', '@discordjs/rest', '@discordjs/ws', '@whiskeysockets/baileys'],
    // One for the libraries and for us.
    'undici',
  ],
  // CommonJS packages inside an ES module ask for these.
  banner: {
    js: "import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);",
  },
  // Less source text to hold in memory. Names stay, so that stack traces can be read.
  minifyWhitespace: true,
  minifySyntax: true,
  lineLimit: 200,
  sourcemap: true,
  logLevel: 'warning',
};

await build({ ...options, entryPoints: { main: 'dist/modules/main.js' } });
// Threads and a process of the first, which looks for them beside itself. By themselves: what they shared with it would be
// files more that every start opens.
await build({
  ...options,
  splitting: false,
  entryPoints: {
    'recall-worker': 'dist/modules/recall/recall-worker.js',
    'search-worker': 'dist/modules/tools/files/search-worker.js',
    'image-process': 'dist/modules/media/image-process.js',
    'page-worker': 'dist/modules/tools/web/page-worker.js',
    'pattern-worker': 'dist/modules/conversation/lore/pattern-worker.js',
  },
});
chmodSync('dist/main.js', 0o755);
