/** The line breaks, the gateway ends, the network goes: everything that was typed meanwhile arrives, once and in order. */
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { eventually } from '../harness/gateway.js';
import {
  articles,
  type Board,
  connection,
  describeInChromium,
  isUp,
  launchChromium,
  log,
  message,
  startBoard,
  type as typed,
} from './board.js';

describeInChromium('the page', () => {
  let browser: Browser;
  let board: Board;
  beforeAll(async () => {
    browser = await launchChromium();
  });
  afterAll(() => browser.close());
  afterEach(async () => {
    await board.closePages();
    await board.close();
  });

  const own = async (page: Page) => {
    const texts = await articles(page).and(page.locator('.own')).allInnerTexts();
    return texts.map((text) => /number \d+/.exec(text)?.[0] ?? text);
  };
  const numbers = (from: number, to: number) =>
    Array.from({ length: to - from + 1 }, (_, n) => `number ${from + n}`);
  /** Of the model’s requests, each own message once. */
  const asked = () => {
    const all = JSON.stringify(board.model.requests.at(-1)?.body.messages ?? []);
    return [...all.matchAll(/(?<!echo: )number \d+/g)].map(([text]) => text);
  };
  const isAnswered = (page: Page, text: string) =>
    articles(page)
      .filter({ hasText: new RegExp(`echo: [^]*${text}$`) })
      .waitFor();

  for (const [how, signal] of [
    ['restarted', 'SIGTERM'],
    ['killed', 'SIGKILL'],
  ] as const) {
    it(`keeps what is typed while the gateway is ${how}, and brings it once, in order`, async () => {
      board = await startBoard(browser, { keepsPort: true });
      const page = await board.open();
      await isUp(page);
      await typed(page, 'number 1');
      await isAnswered(page, 'number 1');
      for (const round of [0, 1, 2]) {
        const first = 2 + 3 * round;
        // Sent just when it ends, while it is away, and just when it comes.
        await typed(page, `number ${first}`);
        await board.gateway.stop(signal);
        await connection(page)
          .filter({ hasText: /Reconnecting|Offline/ })
          .waitFor();
        await typed(page, `number ${first + 1}`);
        await articles(page)
          .filter({ hasText: `number ${first + 1}` })
          .filter({ hasText: 'Waiting' })
          .waitFor();
        // A reload in between loses nothing either: the browser holds it. The page itself cannot come.
        const back = board.start();
        await typed(page, `number ${first + 2}`);
        await back;
        await isUp(page);
        await isAnswered(page, `number ${first + 2}`);
      }
      await eventually(
        async () => (await log(page).getByText('Waiting').count()) === 0,
        'nothing waits any more',
      );
      expect(await own(page)).toEqual(numbers(1, 10));
      expect(asked().filter((text, n, all) => all.indexOf(text) === n)).toEqual(numbers(1, 10));
      await page.reload();
      await isUp(page);
      await isAnswered(page, 'number 10');
      expect(await own(page)).toEqual(numbers(1, 10));
    });
  }

  it('says that it is offline, keeps what is typed over a reload, and brings it when the network is back', async () => {
    board = await startBoard(browser, { keepsPort: true });
    const page = await board.open();
    await isUp(page);
    await page.context().setOffline(true);
    await typed(page, 'number 1');
    await typed(page, 'number 2');
    await articles(page).filter({ hasText: 'number 2' }).filter({ hasText: 'Waiting' }).waitFor();
    await message(page).fill('half a thou');
    await page.waitForTimeout(4_000);
    expect(board.model.count()).toBe(0);
    // As if the browser had ended and come back: what waits is its own, not the tab's.
    await page.context().setOffline(false);
    await page.reload();
    await isUp(page);
    await isAnswered(page, 'number 2');
    expect(await own(page)).toEqual(['number 1', 'number 2']);
    expect(await message(page).inputValue()).toBe('half a thou');
  });

  it('is the same in ten tabs: all load, all follow, and a message of each arrives once', async () => {
    board = await startBoard(browser);
    const first = await board.open();
    const tabs = [first];
    for (let n = 1; n < 10; n++) tabs.push(await board.openIn(first.context()));
    for (const tab of tabs) await isUp(tab);
    for (const [n, tab] of tabs.entries()) {
      await typed(tab, `number ${n + 1}`);
      await isAnswered(first, `number ${n + 1}`);
    }
    for (const tab of tabs) {
      await isAnswered(tab, 'number 10');
      expect(await own(tab)).toEqual(numbers(1, 10));
    }
  });

  it('is told by two tabs with one queue: what waits in both arrives once', async () => {
    board = await startBoard(browser, { keepsPort: true });
    const one = await board.open();
    const other = await board.openIn(one.context());
    await isUp(one);
    await isUp(other);
    await board.gateway.stop('SIGKILL');
    for (let n = 1; n <= 10; n++) await typed(n % 2 === 1 ? one : other, `number ${n}`);
    await board.start();
    for (const tab of [one, other]) {
      await isUp(tab);
      await eventually(async () => (await log(tab).getByText('Waiting').count()) === 0, 'nothing waits');
      // In the tab that did not send it, one is gone from the queue a moment before its row comes.
      await eventually(
        async () => String((await own(tab)).toSorted()) === String(numbers(1, 10).toSorted()),
        'all ten are there, once',
      );
    }
  });
});
