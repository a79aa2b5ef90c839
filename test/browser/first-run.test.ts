/**
 * The first run, as somebody has it who has only just started the gateway: a model that the page finds, a chat, a persona
 * that remembers, its memory edited and recalled, Telegram connected. Once by mouse, and once by keyboard alone.
 */
import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { type FakeModel, startFakeModel } from '../fakes/model.js';
import { type FakeTelegram, startFakeTelegram } from '../fakes/telegram.js';
import { ANNA } from '../fakes/telegram-chats.js';
import { eventually } from '../harness/gateway.js';
import {
  articles,
  type Board,
  describeInChromium,
  isUp,
  launchChromium,
  message,
  remembering,
  startBoard,
  type as typed,
} from './board.js';

/** Where Ollama, LM Studio and llama.cpp listen; another program may be there. */
const USUAL_PORTS = [11434, 1234, 8080];
const ANSWERED_WITHIN_MS = 10_000;

async function startNearby(): Promise<FakeModel> {
  for (const port of USUAL_PORTS) {
    const server = {
      name: 'nearby',
      rules: () => null,
      pages: { 'GET /v1/models': () => ({ data: [{ id: 'nearby-model' }] }) },
    };
    const nearby = await startFakeModel({ port, reply: remembering, server }).catch((error) => {
      if (error.code !== 'EADDRINUSE') throw error;
      return null;
    });
    if (nearby !== null) return nearby;
  }
  throw new Error(`the ports ${USUAL_PORTS.join(', ')} are all taken`);
}

describeInChromium('the first run', () => {
  let browser: Browser;
  let board: Board;
  let nearby: FakeModel;
  let telegram: FakeTelegram;
  beforeAll(async () => {
    browser = await launchChromium();
  });
  afterAll(() => browser.close());
  afterEach(async () => {
    await board.closePages();
    await board.close();
    await nearby.close();
    await telegram.close();
  });

  async function begin(): Promise<Page> {
    nearby = await startNearby();
    telegram = await startFakeTelegram();
    board = await startBoard(browser, {
      config: {
        ...{ model: undefined, conversation: undefined, timezone: undefined },
        channels: { telegram: { api_root: telegram.url } },
      },
    });
    return board.open();
  }
  const region = (page: Page, name: string) => page.getByRole('region', { name, exact: true });
  const heading = (page: Page, name: string) => page.getByRole('heading', { level: 1, name, exact: true });
  const place = (page: Page, name: string) =>
    page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name });
  const memory = (page: Page) => page.getByRole('textbox', { name: 'MEMORY.md' });

  it('leads from nothing to a persona that remembers, and to Telegram', async () => {
    const page = await begin();
    await heading(page, 'Setup').waitFor();
    const model = region(page, 'Model');
    await model.getByRole('button', { name: `Use ${nearby.url}` }).click();
    await model.getByRole('button', { name: 'Try' }).click();
    await model.getByRole('status').filter({ hasText: 'works' }).waitFor();
    expect(nearby.count()).toBe(1);
    await model.getByRole('button', { name: 'Save' }).click();
    await model.getByRole('status').filter({ hasText: 'in effect' }).waitFor({ timeout: ANSWERED_WITHIN_MS });
    expect(await board.home.read('config.yaml')).toContain(`base_url: ${nearby.url}`);

    await place(page, 'Chat').click();
    await heading(page, 'Chat').waitFor();
    await typed(page, 'Good morning');
    await articles(page).filter({ hasText: 'echo: Good morning' }).waitFor();

    await page.getByRole('button', { name: 'New persona' }).click();
    const dialog = page.getByRole('dialog', { name: 'New persona' });
    await dialog.getByLabel('Name').fill('Luna');
    await dialog.getByLabel('Character').fill('An astronomer, dry and kind.');
    await dialog.getByRole('button', { name: 'Create' }).click();
    await expectChecked(
      page.getByRole('radiogroup', { name: 'Persona' }).getByRole('radio', { name: 'Luna' }),
    );
    await typed(page, 'remember that I drink tea without sugar');
    const answer = articles(page).filter({ hasText: 'I will remember it.' });
    await answer.getByText('remembered').waitFor();
    expect(await answer.getAttribute('aria-label')).toMatch(/^Luna/);

    await answer.getByRole('link', { name: 'show' }).click();
    await heading(page, 'Memory').waitFor();
    await eventually(
      async () => (await memory(page).inputValue()).includes('without sugar'),
      'the line is there',
    );
    await memory(page).fill((await memory(page).inputValue()).replace('without sugar', 'with honey'));
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByRole('status').filter({ hasText: 'Saved' }).waitFor();
    expect(await board.home.read('groups/board_main/luna/MEMORY.md')).toContain('tea with honey');

    await page.reload();
    await isUp(page);
    await eventually(
      async () => (await memory(page).inputValue()).includes('with honey'),
      'it is still there',
    );
    await place(page, 'Chat').click();
    await typed(page, 'What do you remember?');
    await articles(page).filter({ hasText: 'I remember: I drink tea with honey' }).waitFor();

    await place(page, 'Conversations').click();
    await page.getByRole('list', { name: 'Conversations' }).getByRole('link').first().click();
    await articles(page)
      .filter({ hasText: 'I remember: I drink tea' })
      .getByRole('button', { name: 'Details' })
      .click();
    const turn = region(page, 'Turn');
    for (const name of ['Recalled', 'Prompt', 'Calls', 'Tokens']) {
      await turn.getByRole('heading', { name, exact: true }).waitFor();
    }
    await turn.getByRole('heading', { name: 'Prompt', exact: true }).click();
    await turn.getByText('Changes to memory').click();
    await eventually(
      async () => /tea with honey/.test((await turn.textContent()) ?? ''),
      'its prompt holds the edited line',
    );

    await place(page, 'Setup').click();
    const platform = region(page, 'Platform');
    await platform.getByLabel('Telegram token').fill('1:wrong');
    await platform.getByRole('button', { name: 'Check' }).first().click();
    await platform.getByRole('alert').waitFor();
    await platform.getByLabel('Telegram token').fill(telegram.token);
    await platform.getByRole('button', { name: 'Check' }).first().click();
    await platform
      .getByRole('status')
      .filter({ hasText: `@${telegram.bot.username}` })
      .waitFor();
    await platform.getByRole('button', { name: 'Save' }).first().click();
    telegram.say({ text: 'hi' });
    const sent = () => telegram.sent.filter(({ chatId }) => chatId === ANNA.id).map(({ text }) => text);
    await eventually(() => sent().length > 0, 'Anna is answered', ANSWERED_WITHIN_MS);
    expect(await page.content()).not.toContain(telegram.token);

    await place(page, 'Operations').click();
    const pairings = region(page, 'Pairings');
    await pairings.getByRole('button', { name: 'Approve' }).first().click();
    await eventually(async () => {
      telegram.say({ text: 'and now?' });
      return sent().some((text) => text.includes('echo: and now?'));
    }, 'Anna, who was let in on the page, is answered by the model');
  });

  it('needs no mouse', async () => {
    const page = await begin();
    await heading(page, 'Setup').waitFor();
    await page.keyboard.press('Tab');
    await hasFocus(page.getByRole('link', { name: 'Skip to content' }));
    await page.keyboard.press('Enter');
    const model = region(page, 'Model');
    const use = model.getByRole('button', { name: `Use ${nearby.url}` });
    await use.waitFor();
    await tabTo(page, use);
    await page.keyboard.press('Enter');
    expect(await model.getByLabel('Address').inputValue()).toBe(nearby.url);
    await tabTo(page, model.getByRole('button', { name: 'Try' }));
    await page.keyboard.press('Space');
    await model.getByRole('status').filter({ hasText: 'works' }).waitFor();
    await tabTo(page, model.getByRole('button', { name: 'Save' }));
    await page.keyboard.press('Enter');
    await model.getByRole('status').filter({ hasText: 'in effect' }).waitFor({ timeout: ANSWERED_WITHIN_MS });
    await tabTo(page, place(page, 'Chat'), 'Shift+Tab');
    await page.keyboard.press('Enter');
    await heading(page, 'Chat').waitFor();

    await page.keyboard.press('/');
    await hasFocus(message(page));
    await page.keyboard.type('Good morning');
    await page.keyboard.press('Enter');
    await articles(page).filter({ hasText: 'echo: Good morning' }).waitFor();
    await hasFocus(message(page));

    const create = page.getByRole('button', { name: 'New persona' });
    await tabTo(page, create, 'Shift+Tab');
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog', { name: 'New persona' });
    await dialog.waitFor();
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'hidden' });
    await hasFocus(create);
    await page.keyboard.press('Enter');
    await tabTo(page, dialog.getByLabel('Name'));
    await page.keyboard.type('Luna');
    await tabTo(page, dialog.getByLabel('Character'));
    await page.keyboard.type('An astronomer.');
    await tabTo(page, dialog.getByRole('button', { name: 'Create' }));
    await page.keyboard.press('Enter');
    const radios = page.getByRole('radiogroup', { name: 'Persona' }).getByRole('radio');
    await expectChecked(radios.and(page.getByRole('radio', { name: 'Luna' })));

    await tabTo(page, message(page));
    await page.keyboard.type('/mem');
    const commands = page.getByRole('listbox', { name: 'Commands' });
    await commands.getByRole('option').first().waitFor();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('Escape');
    await commands.waitFor({ state: 'hidden' });
    await message(page).fill('');
    await page.keyboard.type('remember that I drink tea without sugar');
    await page.keyboard.press('Enter');
    const show = articles(page).getByRole('link', { name: 'show' });
    await show.waitFor();
    await tabTo(page, show, 'Shift+Tab');
    await page.keyboard.press('Enter');
    await heading(page, 'Memory').waitFor();
    await tabTo(page, memory(page));
    await page.keyboard.press('Control+End');
    await page.keyboard.type('- and milk, typed by hand\n');
    await tabTo(page, page.getByRole('button', { name: 'Save', exact: true }));
    await page.keyboard.press('Enter');
    await page.getByRole('status').filter({ hasText: 'Saved' }).waitFor();
    expect(await board.home.read('groups/board_main/luna/MEMORY.md')).toContain('typed by hand');
  });
});

const MOST_TABS = 80;

/** By the key alone, as many times as it takes; what has the focus on the way can be seen to have it. */
async function tabTo(page: Page, goal: Locator, key = 'Tab'): Promise<void> {
  for (let n = 0; n < MOST_TABS; n++) {
    if (await goal.evaluate((each) => each.matches(':focus'))) return;
    await page.keyboard.press(key);
    // A field may be marked at the frame around it.
    const marked = await page.evaluate(`(() => {
      const { activeElement, body } = document;
      for (let at = activeElement, n = 0; at !== body && n < 4; at = at.parentElement, n++) {
        const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(at);
        if ((outlineStyle !== 'none' && outlineWidth !== '0px') || boxShadow !== 'none') return true;
      }
      return activeElement === body || activeElement.outerHTML.slice(0, 300);
    })()`);
    expect(marked, `after ${n + 1} × ${key}: the focus can be seen`).toBe(true);
  }
  throw new Error(`${MOST_TABS} × ${key} do not lead to ${goal}`);
}

const hasFocus = (element: Locator) =>
  eventually(() => element.evaluate((each) => each.matches(':focus')), `${element} has the focus`, 5_000);

const expectChecked = (radio: Locator) => eventually(() => radio.isChecked(), `${radio} is checked`, 10_000);
