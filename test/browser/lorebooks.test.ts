/** Lorebooks and greetings on the page, in a real browser: read, checked, saved, and in the next answer. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { lastUserText } from '../fakes/model.js';
import { eventually } from '../harness/gateway.js';
import {
  type Board,
  describeInChromium,
  HOSTILE,
  isUp,
  launchChromium,
  PHONE,
  startBoard,
  TOO_WIDE,
} from './board.js';

const BOOK = `# by hand
entries:
  - keys: [moon]
    content: The moon is round.
  - keys: ["${HOSTILE[1]?.replaceAll('"', '\\"')}"]
    content: ${JSON.stringify(HOSTILE.join(' '))}
`;

let browser: Browser;
let board: Board;
let lastAsked = '';

const place = (file: string) => join(board.home.folder, 'groups', file);
const onDisk = (file: string) => readFile(place(file), 'utf8');

async function put(file: string, content: string): Promise<void> {
  await mkdir(dirname(place(file)), { recursive: true });
  await writeFile(place(file), content);
}

const field = (page: Page, name: string) => page.getByRole('textbox', { name, exact: true });

async function save(page: Page, name: string, text: string): Promise<void> {
  await field(page, name).fill(text);
  await page.getByRole('button', { name: 'Save', exact: true }).click();
}

const isSaved = (page: Page) => page.getByRole('status').filter({ hasText: 'Saved' }).waitFor();

describeInChromium('a lorebook on the page', () => {
  beforeAll(async () => {
    browser = await launchChromium();
    board = await startBoard(browser, {
      reply(body) {
        lastAsked = JSON.stringify(body.messages);
        return `I heard ${lastUserText(body).length} characters.`;
      },
    });
    await put('board_main/luna/PERSONA.md', '---\nname: Luna\ngreeting: Hello.\n---\n\nKeeps the moon.\n');
    await put('board_main/luna/lorebook.yaml', BOOK);
    await put('board_main/lorebooks/harbour.yaml', 'entries: []\n');
    await put('lorebooks/world.json', '{"entries": []}');
    await board.say('/persona switch luna');
  }, 60_000);
  afterAll(async () => {
    await board?.close();
    await browser?.close();
  });
  afterEach(() => board.closePages());

  it('is edited, refused with its line while it is none, and in the next answer', async () => {
    const page = await board.open('#/memory/board_main/luna');
    await isUp(page);
    await page.getByRole('tab', { name: 'Lore', exact: true }).click();
    await eventually(async () => (await field(page, 'lorebook.yaml').inputValue()) === BOOK, 'the book');
    expect(await page.getByRole('region', { name: 'Preview' }).count()).toBe(0);

    await save(page, 'lorebook.yaml', `${BOOK}  - keys: [sea\n    content: "salt`);
    await page
      .getByRole('alert')
      .filter({ hasText: /was not saved: .* at line 8/ })
      .waitFor();
    expect(await onDisk('board_main/luna/lorebook.yaml')).toBe(BOOK);
    await save(page, 'lorebook.yaml', 'keys: [sea]\n');
    await page.getByRole('alert').filter({ hasText: 'it has no list of “entries”' }).waitFor();
    expect(await onDisk('board_main/luna/lorebook.yaml')).toBe(BOOK);

    const more = `${BOOK}  - keys: [sea]\n    content: The sea is salt.\n`;
    await save(page, 'lorebook.yaml', more);
    await isSaved(page);
    expect(await onDisk('board_main/luna/lorebook.yaml')).toBe(more);
    await board.say('look at the sea');
    expect(lastAsked).toContain('The sea is salt.');
    expect(await (await board.ask('GET', 'operations/audit')).text()).toContain(
      'edited luna/lorebook.yaml on the page',
    );
    await page.getByRole('tab', { name: 'History' }).click();
    await page.getByRole('listitem').filter({ hasText: 'lorebook.yaml' }).first().waitFor();
  });

  it('that somebody else changed meanwhile is not written over', async () => {
    const page = await board.open('#/memory/board_main/luna/lore?file=lorebooks%2Fharbour.yaml');
    await isUp(page);
    await field(page, 'harbour.yaml').fill('entries: [{keys: [a], content: mine}]');
    await put('board_main/lorebooks/harbour.yaml', 'entries: [{keys: [b], content: theirs}]\n');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    const dialog = page.getByRole('dialog', { name: 'Changed meanwhile' });
    expect(await dialog.getByRole('textbox', { name: 'On disk' }).inputValue()).toContain('theirs');
    await dialog.getByRole('button', { name: 'Keep mine' }).click();
    await isSaved(page);
    expect(await onDisk('board_main/lorebooks/harbour.yaml')).toContain('mine');
  });

  it('of all chats is there, also on a phone; JSON is checked as JSON', async () => {
    const page = await board.open('#/memory/board_main/luna/lore', { viewport: PHONE, hasTouch: true });
    await isUp(page);
    await page.getByRole('combobox', { name: 'File' }).selectOption('groups/lorebooks/world.json');
    await save(page, 'world.json', '{"entries": [\n  {"keys": ["x"], "content": "y"},\n]}');
    await page.getByRole('alert').filter({ hasText: 'is not valid JSON' }).waitFor();
    await save(page, 'world.json', '{"entries": [{"keys": ["x"], "content": "y"}]}');
    await isSaved(page);
    expect(await onDisk('lorebooks/world.json')).toContain('"x"');
    expect(await page.evaluate(TOO_WIDE)).toBeLessThanOrEqual(0);
  });

  it('of 5,000 entries does not hold the page up: it is too large to edit here', async () => {
    const entries = Array.from({ length: 5_000 }, (_, n) => ({
      keys: [`key ${n}`],
      content: 'words '.repeat(20),
    }));
    await put('board_main/lorebooks/wide.json', JSON.stringify({ entries }));
    const page = await board.open('#/memory/board_main/luna/lore?file=lorebooks%2Fwide.json');
    await isUp(page);
    const alert = page.getByRole('alert').filter({ hasText: 'too large to edit here' });
    await alert.waitFor();
    expect(await alert.textContent()).toContain('lorebooks/wide.json');
    expect(await field(page, 'wide.json').count()).toBe(0);
  });

  it('stands beside the greeting, which is checked as well', async () => {
    const page = await board.open('#/memory/board_main/luna/persona');
    await isUp(page);
    await save(page, 'PERSONA.md', '---\nname: Luna\ngreeting: "Hello\n---\n\nKeeps the moon.\n');
    await page
      .getByRole('alert')
      .filter({ hasText: /PERSONA\.md was not saved: .* at line \d/ })
      .waitFor();
    await save(page, 'PERSONA.md', '---\nname: Luna\ngreeting: Good night.\n---\n\nKeeps the moon.\n');
    await isSaved(page);
    await board.say('/greeting');
    const rows = await (await board.ask('GET', 'rows?room=board_main')).text();
    expect(rows).toContain('Good night.');
  });
});
