/** The thread for patterns of lorebooks, compiled as in the build. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createPatterns, type PatternTry } from '../../../src/conversation/lore/patterns.js';
import { systemClock } from '../../../src/core/clock.js';
import { listeningLog } from '../../groups/support.js';
import { bookOf, scanned } from './books.js';

let folder: string;
let entry: URL;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pattern-worker-'));
  const source = new URL('../../../src/conversation/lore/pattern-worker.ts', import.meta.url);
  await build({
    ...{ entryPoints: [fileURLToPath(source)], outdir: folder, bundle: true },
    ...{ format: 'esm', platform: 'node', target: 'node20' },
  });
  await writeFile(join(folder, 'package.json'), '{"type":"module"}');
  entry = pathToFileURL(join(folder, 'pattern-worker.js'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const EXPLODES = '(a+)+$';
const LONG = `${'a'.repeat(40)}!`;
const tries = (...sources: string[]): PatternTry[] =>
  sources.map((source) => ({ source, flags: '', text: 0 }));

describe('patterns of lorebooks', () => {
  it('are tried in a thread; invalid ones never match', async () => {
    const patterns = createPatterns(systemClock, listeningLog(), entry);
    expect(await patterns.run(['the moon'], tries('mo+n', '^moon', '(', 'm(?=oon)'), 1_000)).toEqual([
      ...['matched', 'not matched', 'not matched', 'matched'],
    ]);
  });

  it('are stopped after their time, with what was found before, and work again afterwards', async () => {
    const log = listeningLog();
    const patterns = createPatterns(systemClock, log, entry);
    await patterns.run(['x'], tries('x'), 1_000);
    const began = performance.now();
    const outcomes = await patterns.run([LONG], tries('a', EXPLODES, 'a'), 100);
    expect(performance.now() - began).toBeLessThan(1_000);
    expect(outcomes).toEqual(['matched', 'given up', 'given up']);
    expect(await patterns.run(['x'], tries('x'), 1_000)).toEqual(['matched']);
    expect(log.warnings).toEqual([]);
  });

  it('take no turn of the event loop while one explodes', async () => {
    const patterns = createPatterns(systemClock, listeningLog(), entry);
    await patterns.run(['x'], tries('x'), 1_000);
    let ticks = 0;
    const timer = setInterval(() => ticks++, 5);
    await patterns.run([LONG], tries(EXPLODES), 100);
    clearInterval(timer);
    expect(ticks).toBeGreaterThan(5);
  });

  it('match nothing where the thread cannot start, which is logged', async () => {
    const log = listeningLog();
    const patterns = createPatterns(systemClock, log, new URL('file:///nowhere/worker.js'));
    expect(await patterns.run(['x'], tries('x'), 1_000)).toEqual(['given up']);
    expect(JSON.stringify(log.warnings)).toContain('match nothing');
  });

  it('that explode leave the plain keys of their book alone, and are told', async () => {
    const book = bookOf([
      { keys: [`/${EXPLODES}/`], content: 'never' },
      { keys: ['!'], content: 'plain' },
      { keys: ['/a!/'], content: 'pattern' },
    ]);
    const patterns = createPatterns(systemClock, listeningLog(), entry);
    await patterns.run(['x'], tries('x'), 1_000);
    const { matches, givenUp } = await scanned([book], [LONG], { patterns });
    expect(matches.map(({ text }) => text)).toContain('plain');
    expect(givenUp).toContain(`/${EXPLODES}/`);
  });
});
