import { expect, it } from 'vitest';
import { killAtRandom, PHASES } from './kills.js';

const seed = Number(process.env.COTERIE_SEED ?? Date.now() % 1_000_000);

it('answers every message in order after sixty ends of the process, at least five in each step', async () => {
  const report = await killAtRandom({ kills: 60, seed });
  for (const phase of PHASES) expect(report.kills[phase], `kills while ${phase}`).toBeGreaterThanOrEqual(5);
}, 600_000);
