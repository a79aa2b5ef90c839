/** The newest answer on the page, said anew, gone through, edited and taken back, in a real browser. */
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import type { RowPage } from '../../src/board/protocol.js';
import { lastUserText, type ModelReply } from '../fakes/model.js';
import { eventually } from '../harness/gateway.js';
import { seriousFaults } from './axe.js';
import {
  articles,
  type Board,
  describeInChromium,
  isUp,
  launchChromium,
  log,
  PHONE,
  startBoard,
  TOO_WIDE,
  type as typed,
} from './board.js';

let browser: Browser;
let board: Board;
let tries = 0;
let lastAsked = '';

const reply: ModelReply = (body) => {
  lastAsked = lastUserText(body);
  return `Try number ${++tries}.`;
};

/** What stands in the conversation, with who said it. */
const said = async (page: Page) =>
  (await articles(page).allTextContents()).map((text) => text.replace(/\d+:\d+\s?[AP]M/g, '').trim());

async function stands(page: Page, ...expected: RegExp[]): Promise<void> {
  let rows: string[] = [];
  const isSo = async () => {
    rows = await said(page);
    return rows.length === expected.length && rows.every((row, n) => expected[n]?.test(row));
  };
  await eventually(isSo, `${expected.join(' | ')} to stand there`).catch((error) => {
    throw new Error(`instead of that stood ${JSON.stringify(rows)}`, { cause: error });
  });
}

const versions = (page: Page) => log(page).getByRole('group', { name: 'Versions' });
const button = (page: Page, name: string) => log(page).getByRole('button', { name, exact: true });
const menu = (page: Page, name: string) => page.getByRole('button', { name, exact: true });

async function choose(page: Page, name: string): Promise<void> {
  await button(page, 'Change this answer').click();
  await menu(page, name).click();
}

describeInChromium('the newest answer of the page', () => {
  beforeAll(async () => {
    browser = await launchChromium();
  }, 60_000);
  afterAll(() => browser?.close());
  beforeEach(async () => {
    tries = 0;
    board = await startBoard(browser, { reply });
  }, 60_000);
  afterEach(async () => {
    await board.closePages();
    await board.close();
  });

  it('is said anew in its place, has its versions below it, and is the same after a reload', async () => {
    const page = await board.open('#/chat');
    const other = await board.open('#/chat');
    await isUp(page);
    await typed(page, 'hello');
    await stands(page, /^You.*hello$/, /Try number 1\./);
    expect(await versions(page).count()).toBe(0);

    await choose(page, 'Answer again');
    await stands(page, /hello$/, /Try number 2\./);
    await versions(page).getByText('2 / 2').waitFor();
    await button(page, 'Answer again').click();
    await versions(page).getByText('3 / 3').waitFor();
    await stands(page, /hello$/, /Try number 3\./);
    await stands(other, /hello$/, /Try number 3\./);

    // By the keyboard: the button keeps the focus when the answer changes.
    await button(page, 'Earlier version').focus();
    await page.keyboard.press('Enter');
    await versions(page).getByText('2 / 3').waitFor();
    await stands(page, /hello$/, /Try number 2\./);
    await eventually(
      async () => (await page.evaluate('document.activeElement.ariaLabel')) === 'Earlier version',
      'the focus at the button',
    );
    await page.keyboard.press('Enter');
    await versions(page).getByText('1 / 3').waitFor();
    expect(await button(page, 'Earlier version').getAttribute('aria-disabled')).toBe('true');
    await button(page, 'Later version').click();
    await versions(page).getByText('2 / 3').waitFor();
    expect(board.model.count()).toBe(3);

    await page.reload();
    await isUp(page);
    await stands(page, /hello$/, /Try number 2\./);
    await versions(page).getByText('2 / 3').waitFor();

    // Once one goes on, it is the answer.
    await typed(page, 'and now?');
    await stands(page, /hello$/, /Try number 2\./, /and now\?$/, /Try number 4\./);
    expect(await versions(page).count()).toBe(0);
    await eventually(async () => {
      const rows = ((await (await board.ask('GET', 'rows?room=board_main')).json()) as RowPage).rows;
      return rows.filter((row) => row.versions !== undefined).length === 1;
    }, 'one newest answer');
  });

  it('is continued, edited and taken back from its menu, also on a phone', async () => {
    const page = await board.open('#/chat', { viewport: PHONE, hasTouch: true, bypassCSP: true });
    await isUp(page);
    await typed(page, 'hello');
    await stands(page, /hello$/, /Try number 1\./);
    await choose(page, 'Continue');
    await stands(page, /hello$/, /Try number 1\.\s*Try number 2\./);

    await choose(page, 'Edit…');
    const dialog = page.getByRole('dialog', { name: 'Edit the answer' });
    await dialog.getByRole('textbox', { name: 'Answer' }).fill('My own\n\n**words**');
    await dialog.getByRole('button', { name: 'Replace' }).click();
    await stands(page, /hello$/, /My own\s*words/);
    await versions(page).getByText('2 / 2').waitFor();
    expect(await page.evaluate(TOO_WIDE)).toBeLessThanOrEqual(0);
    expect(await seriousFaults(page)).toEqual([]);

    await choose(page, 'Answer again, as I wish…');
    const field = page.getByRole('textbox', { name: 'Message', exact: true });
    await eventually(async () => (await field.inputValue()) === '/again ', 'the command in the field');
    await field.pressSequentially('shorter');
    await field.press('Enter');
    await stands(page, /hello$/, /Try number 3\./);
    expect(lastAsked).toContain('shorter');

    await button(page, 'Change this answer').click();
    await page.getByRole('link', { name: 'Details', exact: true }).click();
    await page.getByRole('region', { name: 'Turn' }).waitFor();
    await page.goto(`${board.url}/#/chat`);
    await choose(page, 'Take back the last exchange');
    await stands(page, /Taken back\./);
    await page.reload();
    await isUp(page);
    await stands(page, /Taken back\./);
    expect(await button(page, 'Change this answer').count()).toBe(0);
  });

  it('stays what it was where its next try fails or is stopped, in a page that was away, too', async () => {
    const page = await board.open('#/chat');
    await isUp(page);
    await typed(page, 'hello');
    await stands(page, /hello$/, /Try number 1\./);
    let go = () => {};
    const until = new Promise<void>((resolve) => {
      go = resolve;
    });
    board.model.reply({ text: 'Half of it, and the rest.', chunkSize: 11, hold: { after: 1, until } });
    await choose(page, 'Answer again');
    await stands(page, /hello$/, /Half of it/);
    expect(await button(page, 'Change this answer').count()).toBe(0);
    await page.getByRole('button', { name: 'Stop' }).click();
    await eventually(
      async () => (await said(page)).some((row) => row.includes('Try number 1.')),
      'the old answer',
    );
    go();
    expect((await said(page)).join('\n')).not.toContain('Half of it');
    expect((await said(page)).filter((row) => row.includes('Try number 1.')).length).toBe(1);

    // A page that was away does not keep what was taken back meanwhile.
    await page.context().setOffline(true);
    await page.evaluate('dispatchEvent(new Event("offline"))');
    const other = await board.open('#/chat');
    await isUp(other);
    await choose(other, 'Take back the last exchange');
    await articles(other).filter({ hasText: 'Taken back.' }).waitFor();
    await page.context().setOffline(false);
    await eventually(
      async () => !(await said(page)).join('\n').includes('Try number'),
      'nothing of it is left',
    );
  });
});
