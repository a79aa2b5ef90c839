/** Characters on the page, in a real browser: their faces, and what their lorebooks brought into an answer. */
import { mkdir, readFile, truncate, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { lastUserText } from '../fakes/model.js';
import { madeCard, picture, pngCard } from '../harness/cards.js';
import { eventually } from '../harness/gateway.js';
import {
  articles,
  type Board,
  describeInChromium,
  HOSTILE,
  isUp,
  launchChromium,
  log,
  message,
  PHONE,
  startBoard,
  TOO_WIDE,
} from './board.js';

let browser: Browser;
let board: Board;

const place = (file: string) => join(board.home.folder, 'groups', file);

async function put(file: string, content: string | Buffer): Promise<void> {
  await mkdir(dirname(place(file)), { recursive: true });
  await writeFile(place(file), content);
}

/** Its picture was loaded and is shown, as wide as it is. */
const widthOf = (face: Locator) =>
  face.evaluate((image) => (image as unknown as { naturalWidth: number }).naturalWidth);

const radio = (page: Page, name: string) => page.getByRole('radio', { name, exact: true });

describeInChromium('a character on the page', () => {
  beforeAll(async () => {
    browser = await launchChromium();
  }, 60_000);
  afterAll(() => browser?.close());
  beforeAll(async () => {
    board = await startBoard(browser, {
      reply: (body) => (lastUserText(body).includes('tell me') ? 'Round, and wet.' : 'Good evening.'),
    });
    await put('board_main/luna/PERSONA.md', '---\nname: Luna\n---\nKeeps the moon.\n');
    await put('board_main/luna/portrait.png', await picture('teal', 40));
    await put('board_main/mara/PERSONA.md', '---\nname: Mara\navatar: https://evil.invalid/a.png\n---\n');
    const [script = '', image = ''] = HOSTILE;
    const entries = [
      { name: 'Moon', keys: ['moon'], content: 'The moon is round, with a sea.' },
      { name: 'Sea', keys: ['sea'], content: 'The sea is salt.' },
      { name: 'Sky', keys: [], constant: true, content: 'The sky is above.' },
      { name: script, keys: [image, 'tide'], content: script },
      { name: 'Long', keys: ['moon'], content: 'words '.repeat(60_000) },
    ];
    await put(
      'board_main/luna/lorebook.yaml',
      JSON.stringify({ name: 'Heaven', recursive_scanning: true, entries }),
    );
    await board.say('/persona switch luna');
  }, 60_000);
  afterAll(() => board?.close());
  afterEach(() => board.closePages());

  it('has its portrait beside its words and where its name is chosen, in Chat and in Conversations', async () => {
    await board.say('hello');
    const page = await board.open('#/chat');
    await isUp(page);
    const said = articles(page).filter({ hasText: 'Good evening.' });
    await eventually(
      async () => (await widthOf(said.locator('header img'))) === 40,
      'the portrait beside the words',
    );
    expect(await widthOf(radio(page, 'Luna').locator('img'))).toBe(40);
    expect(await radio(page, 'Mara').locator('img').count()).toBe(0);
    expect(await radio(page, 'Mara').textContent()).toContain('M');
    await page.getByRole('button', { name: 'Who is here' }).click();
    expect(await widthOf(page.getByRole('listitem').filter({ hasText: 'Luna' }).locator('img'))).toBe(40);

    const other = await board.open('#/conversations/board_main');
    await isUp(other);
    const read = articles(other).filter({ hasText: 'Good evening.' });
    await eventually(
      async () => (await widthOf(read.locator('header img'))) === 40,
      'the portrait in Conversations',
    );
  });

  it('is shown by its first letter where the picture is broken, and by 16 MB of it', async () => {
    await put('board_main/stone/PERSONA.md', '---\nname: Stone\n---\n');
    await put('board_main/stone/portrait.png', 'no picture');
    await put('board_main/wall/PERSONA.md', '---\nname: Wall\n---\n');
    await put('board_main/wall/portrait.png', await picture('grey', 60));
    await truncate(place('board_main/wall/portrait.png'), 16 * 1024 * 1024);
    const page = await board.open('#/chat');
    await isUp(page);
    await radio(page, 'Stone').locator('span.face').getByText('S').waitFor();
    await eventually(
      async () => (await widthOf(radio(page, 'Wall').locator('img'))) === 60,
      'a large portrait',
    );
  });

  it('says in the details of an answer which lore stood in it, by which key, and what did not fit', async () => {
    await board.say('tell me of the moon and the tide');
    for (const options of [{}, { viewport: PHONE, colorScheme: 'dark' as const }]) {
      const page = await board.open('#/conversations/board_main', options);
      await isUp(page);
      await articles(page)
        .filter({ hasText: 'Round, and wet.' })
        .getByRole('button', { name: 'Details' })
        .click();
      const turn = page.getByRole('region', { name: 'Turn' });
      await turn.getByRole('heading', { name: 'Lore', exact: true }).click();
      const joined = turn.getByRole('list', { name: 'Entries that stood in it' });
      const lines = (await joined.getByRole('listitem').allInnerTexts()).map((line) =>
        line.replace(/\s+/g, ' ').trim(),
      );
      expect(lines).toEqual(
        expect.arrayContaining([
          'Sky of Heaven, always there',
          'Moon of Heaven, by the key “moon”',
          'Sea of Heaven, by the key “sea” in the text of Moon',
          `${HOSTILE[0]} of Heaven, by the key “tide”`,
        ]),
      );
      const left = turn.getByRole('list', { name: 'Matched, and did not fit into the budget:' });
      expect(await left.getByRole('listitem').allInnerTexts()).toEqual([
        expect.stringMatching(/^Long\s+of Heaven, by the key “moon”$/),
      ]);
      expect(await page.evaluate(TOO_WIDE)).toBeLessThanOrEqual(0);
    }
  });

  it('comes from a card that is dropped anywhere on the page, or chosen, as a file', async () => {
    const page = await board.open('#/chat/board_cards');
    await isUp(page);
    const card = await pngCard(madeCard({ name: 'Marla' }));
    // The page makes the drop: a browser without a screen has nothing to drag from.
    const transfer = await page.evaluateHandle(`(() => {
      const bytes = Uint8Array.from(atob('${card.toString('base64')}'), (c) => c.charCodeAt(0));
      const transfer = new DataTransfer();
      transfer.items.add(new File([bytes], 'marla.png', { type: 'image/png' }));
      return transfer;
    })()`);
    await log(page).dispatchEvent('dragover', { dataTransfer: transfer });
    await page.getByText('Drop files here, or a character card').waitFor();
    await log(page).dispatchEvent('drop', { dataTransfer: transfer });
    await page.getByRole('button', { name: 'Remove marla.png' }).waitFor();
    await message(page).press('Enter');
    await articles(page).filter({ hasText: 'Imported Marla.' }).waitFor();
    await articles(page).filter({ hasText: 'Mind the third step.' }).waitFor();
    await eventually(
      async () => (await radio(page, 'Marla').getAttribute('aria-checked')) === 'true',
      'the new persona',
    );
    await eventually(async () => (await widthOf(radio(page, 'Marla').locator('img'))) === 24, 'its portrait');
    // The file is the very one that was dropped.
    expect((await readFile(place('board_cards/marla/card.png'))).equals(card)).toBe(true);

    const other = await pngCard(madeCard({ name: 'Nell' }));
    await page
      .locator('input[type=file]')
      .setInputFiles({ name: 'nell.png', mimeType: 'image/png', buffer: other });
    await page.getByRole('button', { name: 'Remove nell.png' }).waitFor();
    await page.getByRole('button', { name: 'Send' }).click();
    await articles(page).filter({ hasText: 'Imported Nell.' }).waitFor();
    await eventually(async () => (await widthOf(radio(page, 'Nell').locator('img'))) === 24, 'its portrait');
  });
});
