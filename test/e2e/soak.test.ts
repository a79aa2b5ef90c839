import { expect, it } from 'vitest';
import { AIMS, soak } from './soak.js';

/** COTERIE_SEED repeats a run. */
const seed = Number(process.env.COTERIE_SEED ?? Date.now() % 1_000_000);

it('loses no message through compactions that are killed, refused and hang', async () => {
  const report = await soak({
    seed,
    messages: 100,
    kills: 1,
    compactAfter: 10,
    keepRecent: 4,
    patient: false,
  });
  expect(report.moves).toBeGreaterThanOrEqual(6);
  expect(report.owed, 'something was owed in between').toBeGreaterThan(0);
  for (const aim of AIMS) expect(report.kills[aim], `kills aimed at ${aim}`).toBeGreaterThan(0);
}, 120_000);
