/** For everybody: axe on every place, small screens, large letters, less motion, input methods, and the wrong moment. */
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { eventually } from '../harness/gateway.js';
import { seriousFaults } from './axe.js';
import {
  articles,
  type Board,
  DESKTOP,
  describeInChromium,
  isUp,
  launchChromium,
  message,
  PHONE,
  PLACES,
  startBoard,
  TOO_WIDE,
  type as typed,
} from './board.js';
import { furnish } from './furnish.js';

describeInChromium('the page', () => {
  let browser: Browser;
  let board: Board;
  beforeAll(async () => {
    browser = await launchChromium();
    board = await startBoard(browser);
    await furnish(board);
  }, 60_000);
  afterAll(async () => {
    await board?.close();
    await browser?.close();
  });
  afterEach(() => board.closePages());

  /** Those of a place, as far as they lie behind a tab or an opened row. */
  async function eachView(page: Page, place: string, look: (what: string) => Promise<void>): Promise<void> {
    await page.goto(`${board.url}/#/${place}`);
    await isUp(page);
    await page.waitForTimeout(300);
    await look(place);
    for (const tab of await page.getByRole('tab').all()) {
      await tab.click();
      await page.waitForTimeout(200);
      await look(`${place}, ${await tab.textContent()}`);
    }
    if (place !== 'conversations') return;
    await page.goto(`${board.url}/#/conversations/board_main`);
    await page.getByRole('button', { name: 'Details' }).last().click();
    await page.getByRole('region', { name: 'Turn' }).getByRole('heading', { name: 'Calls' }).click();
    await look('conversations, a turn');
  }

  it.each(Object.entries({ phone: PHONE, desktop: DESKTOP }))(
    'has nothing serious for axe, in the light and in the dark, on a %s',
    async (_, viewport) => {
      const page = await board.open('', { viewport, bypassCSP: true });
      const found: string[] = [];
      for (const place of PLACES) {
        await eachView(page, place, async (what) => {
          for (const fault of await seriousFaults(page)) found.push(`${what}: ${fault}`);
        });
      }
      expect(found).toEqual([]);
    },
  );

  it('needs no scrolling sideways on 320 px, and its controls are large enough for a thumb', async () => {
    const page = await board.open('', {
      viewport: { width: 320, height: 640 },
      hasTouch: true,
      isMobile: true,
    });
    const wide: string[] = [];
    for (const place of PLACES) {
      await eachView(page, place, async (what) => {
        const px = await page.evaluate(TOO_WIDE);
        if (Number(px) > 0) wide.push(`${what}: ${px} px too wide`);
      });
    }
    expect(wide).toEqual([]);
    const menu = page.getByRole('button', { name: 'Menu' });
    const box = await menu.boundingBox();
    expect(Math.min(box?.width ?? 0, box?.height ?? 0)).toBeGreaterThanOrEqual(40);
    await menu.click();
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Chat' }).click();
    const field = await message(page).boundingBox();
    expect((field?.y ?? 0) + (field?.height ?? 0)).toBeLessThanOrEqual(640);
    // Smaller ones are zoomed to by phones.
    const letters = await page.evaluate(
      "parseFloat(getComputedStyle(document.querySelector('textarea')).fontSize)",
    );
    expect(letters).toBeGreaterThanOrEqual(16);
  });

  it('holds letters of 200 %: nothing is cut, and the field stays in reach', async () => {
    const page = await board.open('', { viewport: { width: 640, height: 800 } });
    const wide: string[] = [];
    for (const place of PLACES) {
      await eachView(page, place, async (what) => {
        await page.evaluate("document.documentElement.style.fontSize = '200%'");
        await page.waitForTimeout(100);
        const px = await page.evaluate(TOO_WIDE);
        if (Number(px) > 0) wide.push(`${what}: ${px} px too wide`);
      });
    }
    expect(wide).toEqual([]);
    await page.goto(`${board.url}/#/chat`);
    await typed(page, 'large letters');
    await articles(page).filter({ hasText: 'echo: large letters' }).waitFor();
    const field = await message(page).boundingBox();
    expect((field?.y ?? 0) + (field?.height ?? 0)).toBeLessThanOrEqual(800);
  });

  it('does not move for those who want less motion', async () => {
    const page = await board.open('', { reducedMotion: 'reduce' });
    for (const place of PLACES) {
      await page.goto(`${board.url}/#/${place}`);
      await isUp(page);
      if (place === 'chat') await message(page).fill('/');
      await page.waitForTimeout(300);
      const moving = await page.evaluate(
        'document.getAnimations().filter(({ playState }) => playState === "running").map(({ animationName, transitionProperty }) => animationName ?? transitionProperty)',
      );
      expect(moving, place).toEqual([]);
      const slow = await page.evaluate(`[...document.querySelectorAll('*')].flatMap((each) => {
        const { transitionDuration, animationName, animationDuration, scrollBehavior } = getComputedStyle(each);
        const moves = parseFloat(transitionDuration) > 0.011 || (animationName !== 'none' && parseFloat(animationDuration) > 0.011);
        return moves || scrollBehavior === 'smooth' ? [each.outerHTML.slice(0, 100)] : [];
      })`);
      expect(slow, place).toEqual([]);
    }
  });

  it('sends no half word of an input method, however the browser tells its Enter', async () => {
    const page = await board.open();
    await isUp(page);
    const before = board.model.count();
    const field = await message(page).elementHandle();
    const dispatch = (script: string) => field?.evaluate(`((each) => { ${script} })(document.activeElement)`);
    await message(page).fill('こんに');
    // Chromium and Firefox: the key belongs to the composition.
    await dispatch(`
      each.dispatchEvent(new CompositionEvent('compositionstart', { bubbles: true }));
      each.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', isComposing: true, keyCode: 229, bubbles: true, cancelable: true }));`);
    // Some Androids: only the code tells it.
    await dispatch(`
      each.dispatchEvent(new CompositionEvent('compositionend', { bubbles: true, data: 'こんに' }));
      each.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', keyCode: 229, bubbles: true, cancelable: true }));`);
    // Safari: the composition ends just before its key, which looks like any other.
    await dispatch(`
      each.dispatchEvent(new CompositionEvent('compositionstart', { bubbles: true }));
      each.dispatchEvent(new CompositionEvent('compositionend', { bubbles: true, data: 'こんに' }));
      each.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', keyCode: 13, bubbles: true, cancelable: true }));`);
    await page.waitForTimeout(300);
    expect(await message(page).inputValue()).toBe('こんに');
    expect(board.model.count()).toBe(before);
    // The real thing, as far as the browser's own protocol goes.
    const devtools = await page.context().newCDPSession(page);
    await devtools.send('Input.imeSetComposition', { text: 'ちは', selectionStart: 2, selectionEnd: 2 });
    expect(await message(page).inputValue()).toBe('こんにちは');
    await devtools.send('Input.insertText', { text: 'ちは' });
    await message(page).press('Shift+Enter');
    expect(await message(page).inputValue()).toBe('こんにちは\n');
    await message(page).press('Enter');
    await articles(page).filter({ hasText: 'echo: こんにちは' }).waitFor();
    expect(board.model.count()).toBe(before + 1);
  });

  it('keeps keys of one letter out of fields, and leads with / to search and message', async () => {
    const page = await board.open('#/conversations');
    await isUp(page);
    await page.keyboard.press('/');
    const search = page.getByRole('searchbox', { name: 'Search' });
    await eventually(() => search.evaluate((each) => each.matches(':focus')), 'the search has the focus');
    await page.keyboard.type('a/b?jkgnx');
    expect(await search.inputValue()).toBe('a/b?jkgnx');
    expect(page.url()).toContain('#/conversations');
  });

  it('lets two tabs edit one file: the second sees both texts, and nothing is lost', async () => {
    await board.home.write('groups/board_main/default/MEMORY.md', '# Memory\n\n## Tier 1\n\n- tea\n');
    const one = await board.open('#/memory/board_main/default/memory');
    const other = await board.openIn(one.context(), '#/memory/board_main/default/memory');
    const field = (page: Page) => page.getByRole('textbox', { name: 'MEMORY.md' });
    const save = (page: Page) => page.getByRole('button', { name: 'Save', exact: true }).click();
    for (const page of [one, other]) {
      await isUp(page);
      await eventually(async () => (await field(page).inputValue()).includes('- tea'), 'the file is there');
    }
    await field(other).fill('# Memory\n\n## Tier 1\n\n- tea of the second tab\n');
    await field(one).fill('# Memory\n\n## Tier 1\n\n- tea of the first tab\n');
    await save(one);
    await one.getByRole('status').filter({ hasText: 'Saved' }).waitFor();
    expect(await field(other).inputValue()).toContain('second tab');
    await save(other);
    const dialog = other.getByRole('dialog', { name: 'Changed meanwhile' });
    expect(await dialog.getByRole('textbox', { name: 'Yours' }).inputValue()).toContain('second tab');
    expect(await dialog.getByRole('textbox', { name: 'On disk' }).inputValue()).toContain('first tab');
    await other.keyboard.press('Escape');
    await dialog.waitFor({ state: 'hidden' });
    expect(await field(other).inputValue()).toContain('second tab');
    await save(other);
    await dialog.getByRole('button', { name: 'Keep mine' }).click();
    await dialog.waitFor({ state: 'hidden' });
    await eventually(
      async () => (await board.home.read('groups/board_main/default/MEMORY.md'))?.includes('second tab'),
      'the file is that of the second tab',
    );
  });
});
