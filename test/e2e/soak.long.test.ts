import { expect, it } from 'vitest';
import { AIMS, soak } from './soak.js';

const seed = Number(process.env.COTERIE_SEED ?? Date.now() % 1_000_000);

it('loses none of 2,000 messages through more than forty compactions and sixty kills', async () => {
  const report = await soak({
    ...{ seed, messages: 2_000, kills: 10, compactAfter: 24, keepRecent: 8, patient: true },
  });
  expect(report.messages).toBeGreaterThanOrEqual(2_000);
  expect(report.moves).toBeGreaterThanOrEqual(40);
  for (const aim of AIMS) expect(report.kills[aim], `kills aimed at ${aim}`).toBeGreaterThanOrEqual(7);
}, 1_200_000);
