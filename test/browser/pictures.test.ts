/**
 * Pictures of every place, large and small, light and dark. `npm run screenshots` puts those that README and docs show into
 * docs/images; with COTERIE_PICTURES=DIR all are kept there, for people to look at.
 */
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import sharp from 'sharp';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type FakeTelegram, startFakeTelegram } from '../fakes/telegram.js';
import {
  type Board,
  DESKTOP,
  describeInChromium,
  isUp,
  launchChromium,
  PHONE,
  startBoard,
  TOO_WIDE,
} from './board.js';
import { furnish } from './furnish.js';

const ROOT = new URL('../../', import.meta.url).pathname;
const SIZES = { desktop: DESKTOP, phone: PHONE };
/** Two dots of the picture for each of the page, as on most screens. */
const DENSITY = 2;

/** Each begins where it says, and goes on by itself. */
const VIEWS: Record<string, { at: string; act?: (page: Page) => Promise<unknown> }> = {
  chat: { at: 'chat' },
  conversations: { at: 'conversations' },
  room: { at: 'conversations/telegram_-1001' },
  answer: {
    at: 'conversations/board_main',
    act: async (page) => {
      const answer = page.getByRole('article').filter({ hasText: 'I shall remember' });
      await answer.getByRole('button', { name: 'Details' }).click();
      const turn = page.getByRole('region', { name: 'Turn' });
      await turn.getByRole('heading', { name: 'Prompt' }).click();
      await turn.getByText('Instructions').waitFor();
    },
  },
  memory: {
    at: 'memory/board_main/luna',
    act: (page) => page.getByRole('textbox', { name: 'MEMORY.md' }).waitFor(),
  },
  history: {
    at: 'memory/board_main/luna/history',
    act: (page) => page.getByRole('button', { name: 'Undo' }).first().waitFor(),
  },
  plan: { at: 'work', act: (page) => page.getByRole('checkbox').first().waitFor() },
  task: {
    at: 'work/tasks',
    act: (page) => page.getByRole('list', { name: 'Tasks' }).getByRole('link').first().click(),
  },
  artifact: {
    at: 'work/artifacts',
    act: (page) => page.getByRole('list', { name: 'Artifacts' }).getByRole('link').first().click(),
  },
  operations: {
    at: 'operations',
    act: (page) => page.getByRole('region', { name: 'Usage' }).getByRole('img').waitFor(),
  },
  setup: { at: 'setup' },
};

describeInChromium('the pictures', () => {
  let browser: Browser;
  let telegram: FakeTelegram;
  let board: Board;
  let folder: string;
  beforeAll(async () => {
    browser = await launchChromium();
    telegram = await startFakeTelegram();
    board = await startBoard(browser, {
      config: { channels: { telegram: { token: telegram.token, api_root: telegram.url } } },
    });
    telegram.say({ text: 'hello', from: { id: 4711, first_name: 'Mia', last_name: 'Brandt' } });
    await furnish(board);
    folder = process.env.COTERIE_PICTURES ?? (await mkdtemp(join(tmpdir(), 'coterie-pictures-')));
    await mkdir(folder, { recursive: true });
  }, 60_000);
  afterAll(async () => {
    if (process.env.COTERIE_PICTURES === undefined) await rm(folder, { recursive: true, force: true });
    await board?.close();
    await telegram?.close();
    await browser?.close();
  });

  async function take(page: Page, name: string): Promise<void> {
    expect(Number(await page.evaluate(TOO_WIDE)), `${name} is too wide`).toBeLessThanOrEqual(0);
    const taken = sharp(await page.screenshot()).png({ palette: true, quality: 95, effort: 7 });
    await writeFile(join(folder, `${name}.png`), await taken.toBuffer());
  }

  async function open(options: BrowserContextOptions): Promise<Page> {
    return board.open('', { deviceScaleFactor: DENSITY, reducedMotion: 'reduce', ...options });
  }

  for (const [size, viewport] of Object.entries(SIZES)) {
    it(`are taken of every place, on a ${size}`, async () => {
      const page = await open({ viewport, ...(size === 'phone' && { hasTouch: true, isMobile: true }) });
      for (const [view, { at, act }] of Object.entries(VIEWS)) {
        await page.goto(`${board.url}/#/${at}`);
        await isUp(page);
        await act?.(page);
        await page.waitForTimeout(300);
        for (const colorScheme of ['light', 'dark'] as const) {
          await page.emulateMedia({ colorScheme });
          await take(page, `${view}-${size}-${colorScheme}`);
        }
      }
      const german = await open({ viewport, locale: 'de-DE' });
      await german.getByRole('status', { name: 'Verbindung' }).filter({ hasText: 'Verbunden' }).waitFor();
      await german.getByRole('article').last().waitFor();
      await take(german, `chat-german-${size}-light`);
      await board.closePages();
      for (const name of (await readdir(folder)).filter((each) => each.includes(size))) {
        const { width, height } = await sharp(join(folder, name)).metadata();
        expect([width, height], name).toEqual([viewport.width * DENSITY, viewport.height * DENSITY]);
      }
    }, 60_000);
  }

  it('that README and docs show are among them', async () => {
    const pages = ['README.md', 'docs/board.md'];
    const texts = await Promise.all(pages.map((page) => readFile(join(ROOT, page), 'utf8')));
    const shown = new Set(
      texts.flatMap((text) => [...text.matchAll(/images\/([\w-]+\.png)/g)].map(([, name]) => name)),
    );
    const taken = await readdir(folder);
    for (const name of shown) expect(taken).toContain(name);
    if (process.env.COTERIE_SCREENSHOTS === undefined) {
      expect(new Set(await readdir(join(ROOT, 'docs/images')))).toEqual(shown);
      return;
    }
    await rm(join(ROOT, 'docs/images'), { recursive: true, force: true });
    await mkdir(join(ROOT, 'docs/images'));
    for (const name of shown)
      await writeFile(join(ROOT, 'docs/images', `${name}`), await readFile(join(folder, `${name}`)));
  });
});
