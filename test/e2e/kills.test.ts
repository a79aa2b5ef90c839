import { expect, it } from 'vitest';
import { killAtRandom } from './kills.js';

/** COTERIE_SEED repeats a run. */
const seed = Number(process.env.COTERIE_SEED ?? Date.now() % 1_000_000);

it('answers every message in order after ten ends of the process at random moments', async () => {
  const report = await killAtRandom({ kills: 10, seed });
  expect(Object.values(report.kills).reduce((sum, count) => sum + count, 0)).toBeGreaterThanOrEqual(8);
}, 120_000);
