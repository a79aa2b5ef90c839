/** axe-core on a page: what is serious, in light and in dark. */
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';

const SOURCE = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** The browser's own viewer in a frame is no part of the page. Of the dark, only colours differ. */
const found = (only: string) => `axe.run({ exclude: ['iframe'] }, { resultTypes: ['violations'] ${only} })
  .then(({ violations }) => violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => id + ': ' + html + ' ' + failureSummary)))`;
const COLOURS = `, runOnly: ['color-contrast', 'link-in-text-block']`;

/** The policy of the page lets no tool in: its context needs `bypassCSP`. Resolves to what is wrong, each with its scheme. */
export async function seriousFaults(page: Page): Promise<string[]> {
  await page.evaluate(`typeof axe === 'undefined' && (() => { ${SOURCE} })()`);
  const faults: string[] = [];
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    const seen = (await page.evaluate(found(colorScheme === 'dark' ? COLOURS : ''))) as string[];
    faults.push(...seen.map((fault) => `${colorScheme}: ${fault}`));
  }
  return faults;
}
