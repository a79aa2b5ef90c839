/**
 * Pictures of every place, large and small, light and dark. `npm run screenshots` keeps all in data/screenshots, for people
 * to look at, and those that README and docs show in docs/images.
 */
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser, Page } from 'playwright-core';
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

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const IS_ASKED = process.env.COTERIE_SCREENSHOTS === '1';
const SIZES = {
  desktop: { viewport: DESKTOP },
  phone: { viewport: PHONE, hasTouch: true, isMobile: true },
};
/** Dots of the picture for one of the page; most screens have two. */
const DENSITY = IS_ASKED ? 2 : 1;
const SETTLED_MS = IS_ASKED ? 500 : 50;

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
    telegram.say({ text: 'hello', from: { id: 4711, first_name: 'Guest' } });
    await furnish(board);
    folder = IS_ASKED ? join(ROOT, 'data/screenshots') : await mkdtemp(join(tmpdir(), 'coterie-pictures-'));
    await mkdir(folder, { recursive: true });
  }, 60_000);
  afterAll(async () => {
    if (!IS_ASKED) await rm(folder, { recursive: true, force: true });
    await board?.close();
    await telegram?.close();
    await browser?.close();
  });

  async function take(page: Page, name: string): Promise<void> {
    expect(Number(await page.evaluate(TOO_WIDE)), `${name} is too wide`).toBeLessThanOrEqual(0);
    const file = join(folder, `${name}.png`);
    const taken = await page.screenshot();
    await (IS_ASKED
      ? sharp(taken).png({ palette: true, quality: 95, effort: 7 }).toFile(file)
      : writeFile(file, taken));
  }

  for (const [size, { viewport, ...touch }] of Object.entries(SIZES)) {
    it(`are taken of every place, on a ${size}`, async () => {
      const options = { viewport, ...touch, deviceScaleFactor: DENSITY, reducedMotion: 'reduce' } as const;
      const page = await board.open('', options);
      for (const [view, { at, act }] of Object.entries(VIEWS)) {
        await page.goto(`${board.url}/#/${at}`);
        await isUp(page);
        await act?.(page);
        await page.waitForTimeout(SETTLED_MS);
        for (const colorScheme of ['light', 'dark'] as const) {
          await page.emulateMedia({ colorScheme });
          await take(page, `${view}-${size}-${colorScheme}`);
        }
      }
      const german = await board.open('', { ...options, locale: 'de-DE' });
      await german.getByRole('status', { name: 'Verbindung' }).filter({ hasText: 'Verbunden' }).waitFor();
      await german.getByRole('article').last().waitFor();
      await take(german, `chat-german-${size}-light`);
      await board.closePages();
      const taken = (await readdir(folder)).filter((name) => name.includes(size));
      expect(taken).toHaveLength(2 * Object.keys(VIEWS).length + 1);
      for (const name of taken) {
        const { width, height } = await sharp(join(folder, name)).metadata();
        expect([width, height], name).toEqual([viewport.width * DENSITY, viewport.height * DENSITY]);
      }
    }, 60_000);
  }

  it('that README and docs show are among them, and small', async () => {
    const kept = join(ROOT, 'docs/images');
    const texts = await Promise.all(
      ['README.md', 'docs/board.md'].map((page) => readFile(join(ROOT, page), 'utf8')),
    );
    const shown = new Set(texts.flatMap((text) => text.match(/(?<=images\/)[\w-]+\.png/g) ?? []));
    if (IS_ASKED) {
      await rm(kept, { recursive: true, force: true });
      await mkdir(kept);
      for (const name of shown) await copyFile(join(folder, name), join(kept, name));
    }
    expect(new Set(await readdir(kept))).toEqual(shown);
    const taken = await readdir(folder);
    for (const name of shown) {
      expect(taken).toContain(name);
      expect((await stat(join(kept, name))).size, name).toBeLessThan(150_000);
    }
  });
});
