/** Recall as the gateway runs it: its thread compiled from the source, on a database in a folder of its own. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build, type Plugin } from 'esbuild';
import { onTestFinished } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { createZone } from '../../src/core/dates.js';
import type { Log } from '../../src/core/log.js';
import type { Embedder, Recall, RecallQuery, Scope } from '../../src/core/recall.js';
import { createRecall } from '../../src/recall/recall.js';
import { type MemoryFeed, type MemoryFiles, memoryFeed, memoryFiles } from './memory-feed.js';

export const NOW = Date.UTC(2026, 5, 1);
export const SCOPE: Scope = { chatId: 'terminal_local', personaId: 'luna' };
export const ROOM = SCOPE.chatId;

/** For scripts that esbuild puts together elsewhere: the native package stays where it is installed. */
export const sqliteOutside: Plugin = {
  name: 'binding',
  setup: ({ onResolve }) => {
    const path = createRequire(import.meta.url).resolve('better-sqlite3');
    onResolve({ filter: /^better-sqlite3$/ }, () => ({ path, external: true }));
  },
};

/** For `beforeAll`: one compiled thread for the tests of a file. */
export async function compileWorker(): Promise<{ entry: URL; remove(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'recall-worker-'));
  await build({
    entryPoints: [fileURLToPath(new URL('../../src/recall/recall-worker.ts', import.meta.url))],
    outdir: folder,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    plugins: [sqliteOutside],
  });
  await writeFile(join(folder, 'package.json'), '{"type":"module"}');
  const entry = pathToFileURL(join(folder, 'recall-worker.js'));
  return { entry, remove: () => rm(folder, { recursive: true, force: true }) };
}

export interface Bench {
  recall: Recall;
  feed: MemoryFeed;
  files: MemoryFiles;
  file: string;
  warnings: { fields: object; message: string }[];
  /** Tells recall of every room, and waits until nothing is left to index. */
  indexed(): Promise<void>;
  /** The texts found. */
  find(text: string, more?: Partial<RecallQuery> & { scope?: Scope }): Promise<string[]>;
}

export async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'recall-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}

export function remembered(): { log: Log; warnings: Bench['warnings'] } {
  const warnings: Bench['warnings'] = [];
  const note = (fields: object, message: string) => void warnings.push({ fields, message });
  return { warnings, log: { debug() {}, info() {}, warn: note, error: note } };
}

export async function until(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const from = Date.now();
  while (!(await condition())) {
    if (Date.now() - from > 120_000) throw new Error(`waited 120 s for: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

export async function begin(
  entry: URL,
  given: {
    feed?: MemoryFeed;
    files?: MemoryFiles;
    file?: string;
    embedder?: Embedder;
    zone?: string;
    /** How long a search waits for what has changed: long enough for any machine where it is not said. */
    refreshMs?: number;
    laterMs?: number;
    threadIdleMs?: number;
  } = {},
): Promise<Bench> {
  const feed = given.feed ?? memoryFeed();
  const files = given.files ?? memoryFiles();
  const file = given.file ?? join(await newFolder(), 'recall.db');
  const { log, warnings } = remembered();
  const zone = createZone(given.zone ?? 'UTC');
  const embedder = given.embedder ?? null;
  const recall = createRecall({
    file,
    feed,
    files,
    embedder,
    clock: systemClock,
    zone,
    log,
    worker: entry,
    searchMs: 100_000,
    refreshMs: given.refreshMs ?? 50_000,
    laterMs: given.laterMs ?? 0,
    gatherMs: 50,
    ...(given.threadIdleMs === undefined ? {} : { threadIdleMs: given.threadIdleMs }),
  });
  onTestFinished(() => recall.stop());
  recall.start();
  const indexed = async () => {
    let after: { room: string; personaId: string } | null = null;
    for (;;) {
      const page: { room: string; personaId: string }[] = await feed.heardViews(after, 100);
      for (const { room } of page) recall.heard(room);
      after = page.at(-1) ?? null;
      if (after === null) break;
    }
    await until(() => recall.status().waiting === 0, 'everything to be indexed');
  };
  if (given.laterMs === undefined) await indexed();
  return {
    recall,
    feed,
    files,
    file,
    warnings,
    indexed,
    async find(text, { scope = SCOPE, ...more } = {}) {
      const { hits } = await recall.search(scope, { text, limit: 10, now: NOW, ...more });
      return hits.map((hit) => hit.text);
    },
  };
}
