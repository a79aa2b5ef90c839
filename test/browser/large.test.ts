/** Much of everything: a conversation of 50,000 messages, one message of 500 kB, a burst of answers. */
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import type { ChatBody } from '../fakes/model.js';
import { lastUserText } from '../fakes/model.js';
import { eventually } from '../harness/gateway.js';
import {
  articles,
  type Board,
  describeInChromium,
  isUp,
  launchChromium,
  log,
  message,
  seed,
  startBoard,
  type as typed,
} from './board.js';

const MANY = 50_000;
const LONG = `# Long\n\n${'many words that go on and on '.repeat(18_000)}the end`;
/** Generous, for a machine on which other tests run; the bench has the figures. */
const PATIENCE_MS = 5_000;

const reply = (body: ChatBody) =>
  lastUserText(body).includes('at length') ? { text: LONG, chunkSize: 2_000 } : 'a short answer';

describeInChromium('much', () => {
  let browser: Browser;
  let board: Board;
  beforeAll(async () => {
    browser = await launchChromium();
    board = await startBoard(browser, {
      reply,
      config: { limits: { message_chars: 1_000_000, answer_chars: 1_000_000 } },
    });
    await board.say('hello');
    const texts = Array.from(
      { length: MANY },
      (_, n) => `line ${n}.${n % 7 === 0 ? ' with **more** words'.repeat(n % 40) : ''}`,
    );
    seed(board.home, [
      { chat: 'telegram_-1', title: 'The long one', texts },
      { chat: 'board_main', texts },
    ]);
  }, 60_000);
  afterAll(async () => {
    await board?.close();
    await browser?.close();
  });
  afterEach(() => board.closePages());

  /** How many elements there are: the document must not grow with the conversation. */
  const size = (page: Page) => page.locator('*').count();
  const timed = async (what: () => Promise<unknown>) => {
    const began = performance.now();
    await what();
    return performance.now() - began;
  };

  for (const [where, hash] of [
    ['the chat', '#/chat'],
    ['conversations', '#/conversations/telegram_-1'],
  ] as const) {
    it(`of 50,000 messages in ${where}: it opens at once, scrolls, jumps, and stays small`, async () => {
      const page = await board.open('#/work');
      await isUp(page);
      const opening = await timed(async () => {
        await page.goto(`${board.url}/${hash}`);
        await articles(page)
          .filter({ hasText: `line ${MANY - 1}.` })
          .waitFor();
      });
      expect(opening).toBeLessThan(PATIENCE_MS);
      expect(await size(page)).toBeLessThan(6_000);
      const seen = new Set<string>();
      for (let n = 0; n < 30; n++) {
        await log(page).hover();
        await page.mouse.wheel(0, -3_000);
        await page.waitForTimeout(50);
        for (const text of await articles(page).allTextContents()) seen.add(/line \d+/.exec(text)?.[0] ?? '');
      }
      // Nothing between the first and the last that was seen is left out.
      const numbers = [...seen].filter((each) => each !== '').map((each) => Number(each.slice(5)));
      expect(numbers.length).toBeGreaterThan(400);
      expect(Math.max(...numbers) - Math.min(...numbers) + 1).toBe(numbers.length);
      expect(await size(page)).toBeLessThan(10_000);
      const first = page.getByRole('button', { name: 'First' });
      if ((await first.count()) > 0) {
        const jump = await timed(async () => {
          await first.click();
          await articles(page)
            .filter({ hasText: /line 0\./ })
            .waitFor();
        });
        expect(jump).toBeLessThan(PATIENCE_MS);
      }
      await page.getByRole('button', { name: 'Newest' }).click();
      await articles(page)
        .filter({ hasText: `line ${MANY - 1}.` })
        .waitFor();
      if (where === 'the chat') {
        await typed(page, 'and now?');
        await articles(page).filter({ hasText: 'a short answer' }).last().waitFor();
      }
    });
  }

  it('in one message: 500 kB are folded, and keystrokes stay quick beside them', async () => {
    const page = await board.open('#/chat/board_long');
    await isUp(page);
    await typed(page, `at length ${'x'.repeat(1000)} ${LONG}`);
    await eventually(
      async () => (await page.getByRole('button', { name: /^Show all \(/ }).count()) >= 2,
      'question and answer are there, folded',
      30_000,
    );
    await eventually(
      async () => (await log(page).locator('[aria-busy=true]').count()) === 0,
      'the end of the answer',
    );
    const typing = await timed(() => message(page).pressSequentially('quick words'));
    expect(typing).toBeLessThan(PATIENCE_MS);
    const unfolding = await timed(async () => {
      await page
        .getByRole('button', { name: /^Show all \(/ })
        .last()
        .click();
      await articles(page).last().getByText('the end').waitFor();
    });
    expect(unfolding).toBeLessThan(2 * PATIENCE_MS);
    await page.reload();
    await isUp(page);
    await page
      .getByRole('button', { name: /^Show all \(/ })
      .last()
      .waitFor();
  });
});
