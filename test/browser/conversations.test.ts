/** The place Conversations in a real browser: a real gateway, whose words are as hostile as people can make them. */
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import type { Browser, BrowserContextOptions, ConsoleMessage, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import type { RowPage } from '../../src/board/protocol.js';
import { type ChatBody, type FakeModel, lastUserText, startFakeModel } from '../fakes/model.js';
import { eventually, type Home, makeHome, type Running, run } from '../harness/gateway.js';
import { pause } from '../harness/random.js';
import { describeInChromium, launchChromium } from './board.js';

const SCRIPT = `<script>document.title = 'taken'</script><img src=x onerror="document.title = 'taken'">`;
const LONG = `# Mine\n${'long words '.repeat(25_000)}`;

let model: FakeModel;
let home: Home;
let gateway: Running;
let url: string;
let browser: Browser;
const opened: { page: Page; faults: string[] }[] = [];

/** Calls a tool 200 times when it is asked to, and answers with what it was told. */
function reply(body: ChatBody) {
  const asked = lastUserText(body);
  const done = body.messages.filter(({ role }) => role === 'tool').length;
  if (asked.includes('many calls') && done < 200) {
    const calls = Array.from({ length: 20 }, (_, n) => ({
      ...{ id: `c${done + n}`, name: 'find_nothing' },
      arguments: { n: done + n, text: SCRIPT },
    }));
    return { calls };
  }
  return { text: `I heard **it**. ${SCRIPT} ${done > 0 ? `after ${done} calls` : ''}` };
}

beforeAll(async () => {
  model = await startFakeModel({ reply });
  home = await makeHome({
    ...{ board: { port: 0 }, personas: { max_tool_rounds: 30 }, timezone: 'UTC' },
    model: { base_url: model.url, name: 'fake', context_tokens: 400_000, input_price: 1, output_price: 2 },
  });
  gateway = run(home);
  url = await gateway.url();
  browser = await launchChromium();
}, 60_000);
afterAll(async () => {
  await browser?.close();
  await gateway?.stop();
  await model?.close();
  await home?.remove();
});
afterEach(async () => {
  for (const { page, faults } of opened.splice(0)) {
    expect(await page.title()).toMatch(/coterie$/);
    await page.context().close();
    expect(faults).toEqual([]);
  }
});

let said = 0;

async function say(text: string, chat = 'board_main'): Promise<void> {
  const before = model.count();
  const response = await fetch(`${url}/api/board/chats/${chat}/messages`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ id: `m${++said}`, text, files: [] }),
  });
  expect(response.status).toBeLessThan(300);
  await eventually(() => model.count() > before || text.startsWith('/'), `an answer to ${text.slice(0, 50)}`);
  await eventually(
    async () => {
      const last = (await rowsOf(chat)).at(-1);
      return last !== undefined && last.author.kind !== 'person' && last.state === undefined;
    },
    `the end of the answer to ${text.slice(0, 50)}`,
  );
}

async function rowsOf(room: string): Promise<RowPage['rows']> {
  const response = await fetch(`${url}/api/board/rows?room=${room}`);
  return ((await response.json()) as RowPage).rows;
}

/** Rooms of other channels, straight into the store: nobody writes in them. */
function seed(rooms: { chat: string; title: string; thread?: string; texts: string[] }[]): void {
  const db = new Sqlite(join(home.folder, 'data/coterie.db'));
  const add = db.prepare(`
    insert into message (room_id, chat_id, account, moves, author_kind, author_id, author_name, administrator, text,
      sent_at, received_at, mentions_bot, edited, state)
    values (?, ?, 'bot', 0, 'person', 'telegram_1', ?, 0, ?, ?, ?, 0, 0, 'done')`);
  db.transaction(() => {
    for (const { chat, title, thread, texts } of rooms) {
      db.prepare(
        `insert or ignore into chat (id, channel, account, address, title, kind) values (?, 'telegram', 'bot', '', ?, 'group')`,
      ).run(chat, title);
      const room = thread === undefined ? chat : `${chat}/${thread}`;
      let last: number | bigint = 0;
      for (const [n, text] of texts.entries()) {
        const at = Date.now() - (texts.length - n) * 60_000;
        last = add.run(room, chat, `Ann ${SCRIPT}`, text, at, at).lastInsertRowid;
      }
      db.prepare('insert or replace into room (id, chat_id, newest_message) values (?, ?, ?)').run(
        room,
        chat,
        last,
      );
    }
  })();
  db.close();
}

async function open(hash: string, options: BrowserContextOptions = {}): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  const faults: string[] = [];
  page.on('pageerror', (error) => faults.push(String(error)));
  page.on('console', (message) => isFault(message) && faults.push(message.text()));
  opened.push({ page, faults });
  await page.goto(`${url}/${hash}`);
  return page;
}

/** A request that is refused is told by the page. */
function isFault(message: ConsoleMessage): boolean {
  return message.type() === 'error' && !message.text().startsWith('Failed to load resource');
}

const list = (page: Page) => page.getByRole('list', { name: 'Conversations' });
const linkTo = (page: Page, room: string) => list(page).locator(`a[href^='#/conversations/${room}']`);
const results = (page: Page) => page.getByRole('list', { name: 'Results' });
const log = (page: Page) => page.getByRole('log', { name: 'Conversation' });

describeInChromium('the place Conversations', () => {
  it('lists all channels, follows them live, and leads to each', async () => {
    seed([
      {
        chat: 'telegram_-100',
        title: `Garden ${SCRIPT}`,
        texts: [`hello ${SCRIPT}`, 'the tomatoes are ripe'],
      },
      { chat: 'telegram_-100', title: '', thread: '45', texts: ['in a thread'] },
      ...Array.from({ length: 60 }, (_, n) => ({ chat: `telegram_${n}`, title: '', texts: [`number ${n}`] })),
    ]);
    await say(`good morning ${SCRIPT}`);
    const page = await open('#/conversations');
    await list(page).getByRole('listitem').nth(49).waitFor();
    expect(await list(page).getByRole('listitem').count()).toBe(50);
    await page.getByRole('button', { name: 'More' }).click();
    await list(page)
      .getByRole('link', { name: `Garden ${SCRIPT} › 45`, exact: true })
      .waitFor();
    expect(await list(page).getByRole('listitem').count()).toBe(63);
    expect(await page.getByRole('heading', { level: 1 }).allInnerTexts()).toEqual(['Conversations']);
    const first = list(page).getByRole('listitem').first();
    await say('what is new?');
    await eventually(
      async () => (await first.textContent())?.includes('I heard'),
      'the newest line in the list',
    );
    expect(await list(page).getByRole('listitem').count()).toBe(63);
    await list(page).getByRole('link', { name: 'telegram_7', exact: true }).click();
    await log(page).getByText('number 7').waitFor();
    expect(await log(page).getByRole('button').count()).toBe(0);
  }, 60_000);

  it('goes to the first, to a day, and to the newest of a long conversation', async () => {
    seed([
      { chat: 'telegram_long', title: 'Long', texts: Array.from({ length: 3_000 }, (_, n) => `line ${n}.`) },
    ]);
    const page = await open('#/conversations/telegram_long');
    await log(page).getByText('line 2999.').waitFor();
    await page.getByRole('button', { name: 'First' }).click();
    await log(page).getByText('line 0.', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Newest' }).click();
    await log(page).getByText('line 2999.').waitFor();
    const day = await log(page).getByRole('article').first().locator('time').first().getAttribute('datetime');
    await page.getByLabel('Go to date').fill(day?.slice(0, 10) ?? '');
    await page.waitForURL(/around=/);
    await page.locator('.log-row.found').waitFor();
  }, 60_000);

  it('keeps every letter of a search, whenever the address takes up what is typed', async () => {
    const page = await open('#/conversations');
    const search = page.getByRole('searchbox', { name: 'Search' });
    const isInAddress = (words: string) => page.waitForURL((at) => at.hash.endsWith(`?q=${words}`));
    await search.pressSequentially('creme ');
    await isInAddress('creme');
    // A moment in which the address, which has no space at its end, could take that of the field away.
    await pause(300);
    // More is typed at the moment in which the address changes.
    await page.evaluate(`addEventListener('hashchange', () => {
      const field = document.querySelector('input[type=search]');
      field.setRangeText('lee', field.value.length, field.value.length, 'end');
      field.dispatchEvent(new Event('input', { bubbles: true }));
    }, { once: true })`);
    await search.pressSequentially('bru');
    await isInAddress('creme+brulee');
    expect(await search.inputValue()).toBe('creme brulee');
    await page.goto(`${url}/#/conversations?q=tarte`);
    await expect.poll(() => search.inputValue()).toBe('tarte');
    await page.goBack();
    await expect.poll(() => search.inputValue()).toBe('creme brulee');
  });

  it('searches in all conversations and leads to the message, marked', async () => {
    const texts = Array.from({ length: 900 }, (_, n) =>
      n === 300 ? `Crème brûlée ${SCRIPT}` : `filler ${n}`,
    );
    seed([{ chat: 'telegram_food', title: 'Food', texts }]);
    const page = await open('#/conversations');
    await list(page).getByRole('link', { name: 'Food' }).waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('creme BRULEE');
    await results(page)
      .getByRole('link', { name: /Food.*Crème brûlée/ })
      .click();
    const found = log(page).getByRole('article').filter({ hasText: 'Crème brûlée' });
    await found.waitFor();
    await page.locator('.log-row.found').filter({ hasText: 'Crème brûlée' }).waitFor();
    expect(await found.evaluate((row) => row.getBoundingClientRect().top)).toBeGreaterThan(50);
    expect(await found.evaluate((row) => row.getBoundingClientRect().bottom)).toBeLessThan(800);
    await page.reload();
    await page.locator('.log-row.found').filter({ hasText: 'Crème brûlée' }).waitFor();
    expect(await page.getByRole('searchbox', { name: 'Search' }).inputValue()).toBe('creme BRULEE');
    await page.getByRole('searchbox', { name: 'Search' }).fill('no such words anywhere');
    await page.getByText('Nothing found.').waitFor();
    await say('I like elderflower');
    await page.getByRole('searchbox', { name: 'Search' }).fill('I like elderflower');
    await results(page)
      .getByRole('link', { name: /You I like elderflower/ })
      .waitFor();
    await page.getByRole('searchbox', { name: 'Search' }).fill('');
    await list(page).getByRole('link', { name: 'Food' }).waitFor();
  }, 60_000);

  it('opens an answer into what it saw and did, also with 200 calls and a prompt of 500 kB', async () => {
    await say(LONG, 'board_long');
    await say(`many calls ${LONG}`, 'board_long');
    const page = await open('#/conversations/board_long');
    await log(page).getByText('after 200 calls').waitFor();
    const details = page.getByRole('button', { name: 'Details' }).last();
    await details.click();
    const turn = page.getByRole('region', { name: 'Turn' });
    for (const name of ['Recalled', 'Prompt', 'Calls', 'Tokens']) {
      await turn.getByRole('heading', { name, exact: true }).waitFor();
    }
    const isOpen = () =>
      turn.locator('details.part').evaluateAll((all) => all.map((each) => each.hasAttribute('open')));
    expect(await isOpen()).toEqual([true, false, false, false, false]);
    await turn.getByRole('heading', { name: 'Calls' }).click();
    await turn.locator('.part .fold').nth(199).waitFor();
    expect(await turn.locator('.part .fold').count()).toBe(200);
    await turn.locator('.part .fold > summary').nth(7).click();
    await turn.locator('pre').filter({ hasText: '<script>document' }).first().waitFor();
    await turn.getByRole('heading', { name: 'Prompt' }).click();
    await turn.locator('.fold > summary').filter({ hasText: 'Conversation so far' }).click();
    await turn.getByRole('heading', { name: 'Tokens' }).click();
    await turn.getByRole('table').waitFor();
    const shared = page.url();
    await page.keyboard.press('Escape');
    await turn.waitFor({ state: 'detached' });
    expect(await details.evaluate((button) => button.matches(':focus'))).toBe(true);
    const again = await open(`#${shared.split('#')[1]}`);
    await again.getByRole('region', { name: 'Turn' }).getByRole('heading', { name: 'Tokens' }).waitFor();
  }, 120_000);

  it('shows nothing of what was forgotten', async () => {
    await say('the heliotrope is a secret', 'board_forgets');
    const turn = (await rowsOf('board_forgets')).at(-1)?.turn;
    await say('/reset', 'board_forgets');
    const page = await open('#/conversations?q=heliotrope');
    await page.getByText('Nothing found.').waitFor();
    const there = await open(`#/conversations/board_forgets?turn=${turn}`);
    await there.getByText('This turn was forgotten').waitFor();
    expect(await there.locator('body').textContent()).not.toContain('heliotrope');
    const unknown = await open('#/conversations/telegram_nobody?turn=nothing');
    await unknown.getByText('There is no such conversation.').waitFor();
  }, 60_000);

  it('has list and log on two screens of a phone of 320 px, and the turn over both', async () => {
    const page = await open('#/conversations', { viewport: { width: 320, height: 640 }, hasTouch: true });
    const isWithin = () => page.locator('html').evaluate((html) => html.scrollWidth <= 320);
    await linkTo(page, 'board_main').click();
    await log(page).getByText('I heard').first().waitFor();
    expect(await list(page).isVisible()).toBe(false);
    expect(
      await page
        .getByRole('heading', { level: 2 })
        .first()
        .evaluate((it) => it.matches(':focus')),
    ).toBe(true);
    expect(await isWithin()).toBe(true);
    await page.getByRole('button', { name: 'Details' }).last().click();
    const turn = page.getByRole('region', { name: 'Turn' });
    await turn.getByRole('heading', { name: 'Prompt' }).click();
    expect(await turn.boundingBox()).toEqual({ x: 0, y: 0, width: 320, height: 640 });
    expect(await isWithin()).toBe(true);
    await turn.getByRole('button', { name: 'Close' }).click();
    await page.getByRole('link', { name: 'All conversations' }).click();
    await linkTo(page, 'board_main').waitFor();
    expect(await page.getByRole('heading', { level: 1 }).isVisible()).toBe(true);
    expect(await linkTo(page, 'board_main').evaluate((it) => it.matches(':focus'))).toBe(true);
  }, 60_000);
});
