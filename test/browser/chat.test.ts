/** The place Chat in a real browser, before the real gateway: by role and name, as a reader's software would use it. */
import type { Browser, BrowserContextOptions, Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { type FakeModel, lastUserText, type ModelScript, startFakeModel } from '../fakes/model.js';
import { eventually, type Home, makeHome, type Running, run } from '../harness/gateway.js';
import { describeInChromium, launchChromium } from './board.js';

let browser: Browser;
let model: FakeModel;
let home: Home;
let gateway: Running;
let url: string;
let port: number;
const pages: Page[] = [];
const faults: string[] = [];

beforeAll(async () => {
  browser = await launchChromium();
}, 60_000);
afterAll(() => browser?.close());
beforeEach(async () => {
  model = await startFakeModel({ reply: (body) => `You said: ${lastUserText(body)}` });
  home = await makeHome(configuration(0));
  await start();
  port = Number(new URL(url).port);
});
afterEach(async () => {
  await Promise.all(pages.splice(0).map((page) => page.context().close()));
  await gateway?.stop();
  await model?.close();
  await home?.remove();
  expect(faults.splice(0)).toEqual([]);
});

function configuration(at: number) {
  return {
    ...{ board: { port: at }, conversation: { debounce_ms: 0 } },
    model: { base_url: model.url, name: 'fake' },
    tools: { allow: ['memory', 'shell'], shell: { sandbox: 'none' } },
  };
}

async function start(): Promise<void> {
  gateway = run(home);
  url = await gateway.url();
}

async function open(options: BrowserContextOptions = {}) {
  const page = await (await browser.newContext(options)).newPage();
  pages.push(page);
  page.on('pageerror', (error) => faults.push(error.message));
  await page.goto(url);
  const field = page.getByRole('textbox', { name: 'Message' });
  await field.waitFor();
  return { page, field, log: page.getByRole('log', { name: 'Conversation' }) };
}

async function say(field: Locator, text: string): Promise<void> {
  await field.fill(text);
  await field.press('Enter');
}

const isAtEnd = (log: Locator) =>
  log.evaluate((list) => list.scrollHeight - list.scrollTop - list.clientHeight < 60);

/** Writes the first part, and the rest when that is let happen. */
function halves(first: string, rest: string): { script: ModelScript; go(): void } {
  let go = () => {};
  const until = new Promise<void>((resolve) => {
    go = resolve;
  });
  const text = first + rest.padEnd(first.length);
  return { script: { text, chunkSize: first.length, hold: { after: 1, until } }, go };
}

describeInChromium('a conversation on the page', () => {
  it('shows an answer growing, busy until its end, with what is finished left in place', async () => {
    const { script, go } = halves('One is done.\n\n```js\nconst a = 1;\n```\n\nAnd th', 'en the end.');
    model.reply(script);
    const { page, field, log } = await open();
    await say(field, 'Hello');
    const answer = log.getByRole('article', { name: /^default/ });
    await answer.getByText('One is done.').waitFor();
    expect(await answer.getAttribute('aria-busy')).toBe('true');
    await page.getByRole('button', { name: 'Stop' }).waitFor();
    const first = await answer.getByText('One is done.').elementHandle();
    go();
    await answer.getByText('And then the end.').waitFor();
    await page.getByRole('button', { name: 'Stop' }).waitFor({ state: 'detached' });
    expect(await answer.getAttribute('aria-busy')).not.toBe('true');
    expect(await first?.evaluate((element) => element.isConnected)).toBe(true);
    await answer.getByText('const').first().waitFor();
    await answer.getByRole('button', { name: 'Copy code' }).click();
    await answer.getByText('Copied').waitFor();
  });

  it('stays where one reads, and leads back to the newest', async () => {
    model.reply(Array.from({ length: 80 }, (_, n) => `Line ${n}.`).join('\n\n'));
    const { page, field, log } = await open();
    await say(field, 'Tell me a lot');
    await log.getByText('Line 79.').waitFor();
    await eventually(() => isAtEnd(log), 'the end is in sight');
    await log.evaluate((list) => {
      list.scrollTop -= 600;
    });
    const newest = page.getByRole('button', { name: 'Newest' });
    await newest.waitFor();
    const top = await log.evaluate((list) => list.scrollTop);
    await fetch(`${url}/api/board/chats/board_main/messages`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ id: 'elsewhere', text: 'From another tab', files: [] }),
    });
    await log.getByText('From another tab').waitFor();
    expect(Math.abs((await log.evaluate((list) => list.scrollTop)) - top)).toBeLessThan(2);
    await newest.click();
    await eventually(() => isAtEnd(log), 'the end is in sight again');
    await newest.waitFor({ state: 'detached' });
  });

  it('sends nothing while an input method composes', async () => {
    const { page, field, log } = await open();
    const keys = await page.context().newCDPSession(page);
    await field.focus();
    await keys.send('Input.imeSetComposition', { text: 'ni hao', selectionStart: 6, selectionEnd: 6 });
    await field.press('Enter');
    await keys.send('Input.insertText', { text: '你好' });
    expect(await log.getByRole('article').count()).toBe(0);
    await page.waitForTimeout(20);
    await field.press('Enter');
    await log.getByRole('article', { name: /^You/ }).getByText('你好').waitFor();
    expect(await log.getByRole('article', { name: /^You/ }).count()).toBe(1);
  });

  it('runs and follows nothing that a message says', async () => {
    const hostile = `<script>document.title = 'taken'</script> <img src=x onerror="document.title = 'taken'"> [x](javascript:document.title='taken') ![p](https://evil.invalid/p.png) <svg onload="document.title='taken'">`;
    model.reply(hostile);
    const { page, field, log } = await open();
    const asked: string[] = [];
    page.on('request', (request) => asked.push(request.url()));
    await say(field, hostile);
    const answer = log.getByRole('article', { name: /^default/ });
    await answer.getByText('onerror').waitFor();
    for (const link of await answer.getByRole('link').all()) {
      expect(await link.getAttribute('href')).toMatch(/^https:/);
    }
    expect(await log.locator('script, svg[onload], img').count()).toBe(0);
    expect(asked.filter((each) => !each.startsWith(url))).toEqual([]);
    expect(await page.title()).toBe('Chat · coterie');
  });

  it('asks before a tool runs, and takes both buttons away once it is decided', async () => {
    model.reply((body) =>
      body.messages.some(({ role }) => role === 'tool')
        ? 'It ran.'
        : { calls: [{ id: 'c1', name: 'shell', arguments: { command: 'echo "<b>hi</b>"' } }] },
    );
    const { field, log } = await open();
    const other = await open();
    await say(field, 'Run it');
    const group = log.getByRole('group', { name: 'Approval' });
    await group.getByText('echo').waitFor();
    expect(await group.getByRole('button').allInnerTexts()).toEqual(['Deny', 'Approve']);
    await other.log.getByRole('button', { name: 'Approve' }).click();
    await log.getByText('It ran.').waitFor();
    await group.getByRole('button').first().waitFor({ state: 'detached' });
    const call = log.getByRole('group', { name: 'shell' });
    expect(await call.getAttribute('open')).toBe(null);
  });
});

describeInChromium('a button below a message', () => {
  it('that the gateway does not take says so, and works when pressed again', async () => {
    const { page, field, log } = await open();
    await page.request.post(`${url}/api/board/chats/board_main/personas`, {
      data: { name: 'Luna', character: '' },
    });
    await say(field, '/persona');
    const button = log.getByRole('button', { name: 'default', exact: true });
    await button.waitFor();
    await page.route('**/choices', (route) => route.abort());
    await button.click();
    await page.getByRole('alert').filter({ hasText: 'did not answer' }).waitFor();
    await page.unroute('**/choices');
    await button.click();
    await button.waitFor({ state: 'detached' });
    expect(await page.getByRole('alert').count()).toBe(0);
  });
});

describeInChromium('files of a message', () => {
  it('go all, and with it: it waits for those that are still on their way', async () => {
    const { page, field, log } = await open();
    let go = () => {};
    const until = new Promise<void>((resolve) => {
      go = resolve;
    });
    await page.route('**/api/board/files?*', async (route) => {
      if (route.request().url().includes('third')) await until;
      await route.continue();
    });
    const files = ['first.txt', 'second.txt', 'third\u202etxt.exe'].map((name) => ({
      ...{ name, mimeType: 'text/plain', buffer: Buffer.from('x') },
    }));
    await page.locator('input[type=file]').setInputFiles(files);
    await page.getByRole('button', { name: 'Remove second.txt' }).waitFor();
    await page.getByRole('status').filter({ hasText: 'on their way' }).waitFor();
    await say(field, 'with three files');
    expect(await field.inputValue()).toBe('with three files');
    go();
    await page.getByRole('button', { name: /^Remove third/ }).waitFor();
    await field.press('Enter');
    const mine = log.getByRole('article').filter({ hasText: 'with three files' }).first();
    await mine.getByRole('link').nth(2).waitFor();
    expect(await mine.textContent()).not.toContain('\u202e');
    expect(await field.inputValue()).toBe('');
  });

  it('leave the words where they are when the page is loaded again on their way', async () => {
    const { page, field } = await open();
    await field.fill('words');
    await page.route('**/api/board/files?*', () => {});
    await page
      .locator('input[type=file]')
      .setInputFiles({ name: 'a.txt', mimeType: 'text/plain', buffer: Buffer.alloc(1_000_000) });
    await page.getByRole('status').filter({ hasText: 'on their way' }).waitFor();
    await page.reload();
    await field.waitFor();
    expect(await field.inputValue()).toBe('words');
    // More than the browser keeps: a visit elsewhere must not end in a fault.
    await field.fill('x'.repeat(6_000_000));
    await page.getByRole('link', { name: 'Memory' }).click();
    await page.getByRole('heading', { level: 1, name: 'Memory' }).waitFor();
    await page.getByRole('link', { name: 'Chat' }).click();
    await field.waitFor();
    expect(await page.getByRole('button', { name: 'Reload' }).count()).toBe(0);
    await field.fill('words');
    expect(await page.getByRole('status').filter({ hasText: 'on their way' }).count()).toBe(0);
    await page.unroute('**/api/board/files?*');
    await field.press('Enter');
    await page.getByText('You said: words').waitFor();
  });
});

describeInChromium('a message that is typed while the gateway is away', () => {
  it('waits in the browser, over a reload, and arrives once', async () => {
    const { page, field, log } = await open();
    await say(field, 'before');
    await log.getByText('You said: before').waitFor();
    await gateway.stop('SIGKILL');
    await page.getByRole('status', { name: 'Connection' }).filter({ hasNotText: 'Connected' }).waitFor();
    for (const text of ['one', 'two', 'three']) await say(field, text);
    await eventually(async () => (await log.getByText('Waiting').count()) === 3, 'three wait');
    await home.configure(configuration(port));
    await start();
    for (const text of ['one', 'two', 'three']) {
      await log.getByRole('article', { name: /^You/ }).getByText(text, { exact: true }).waitFor();
    }
    await eventually(async () => (await log.getByText('Waiting').count()) === 0, 'none waits');
    await page.reload();
    await log.getByText('three', { exact: true }).first().waitFor();
    const own = await log.getByRole('article', { name: /^You/ }).allInnerTexts();
    expect(own.map((text) => text.split('\n').at(-1))).toEqual(['before', 'one', 'two', 'three']);
  });

  it('keeps the words in the field over a reload', async () => {
    const { page, field } = await open();
    await field.fill('half a thought');
    await page.reload();
    await eventually(async () => (await field.inputValue()) === 'half a thought', 'the words are there');
  });
});

describeInChromium('personas and commands', () => {
  it('makes a persona, which becomes the one that answers, and changes back by keys alone', async () => {
    const { page, field, log } = await open();
    const plus = page.getByRole('button', { name: 'New persona' });
    await plus.click();
    const dialog = page.getByRole('dialog', { name: 'New persona' });
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    expect(await plus.evaluate((button) => button.matches(':focus'))).toBe(true);
    await plus.press('Enter');
    await dialog.getByLabel('Name').fill('<b>Zoe</b>');
    await dialog.getByLabel('Character').fill('Calm.');
    await dialog.getByRole('button', { name: 'Create' }).click();
    const radios = page.getByRole('radiogroup', { name: 'Persona' });
    const made = radios.getByRole('radio', { name: 'Zoe' });
    await made.and(page.getByRole('radio', { checked: true })).waitFor();
    await say(field, 'Who is it?');
    await log.getByRole('article', { name: /Zoe/ }).last().getByText('Who is it?').waitFor();
    await made.focus();
    await page.keyboard.press('ArrowLeft');
    await page.keyboard.press('Enter');
    await radios.getByRole('radio', { name: 'default', checked: true }).waitFor();
  });

  it('completes commands, and lets arrows, Enter and Escape choose', async () => {
    const { page, field, log } = await open();
    const list = page.getByRole('listbox', { name: 'Commands' });
    await field.pressSequentially('/');
    await list.getByRole('option').first().waitFor();
    await field.pressSequentially('who');
    await field.press('Enter');
    expect(await field.inputValue()).toBe('/whoami');
    await field.press('Enter');
    await log
      .getByRole('article', { name: /^coterie/ })
      .getByText('board_owner')
      .waitFor();
    await field.pressSequentially('/');
    await list.waitFor();
    await field.press('Escape');
    await list.waitFor({ state: 'detached' });
  });
});

describeInChromium('the page on any screen', () => {
  it('needs no sideways scrolling at 320 px, nor with letters twice as large', async () => {
    model.reply(`A \`word\` ${'x'.repeat(300)}\n\n| a | b |\n|---|---|\n| ${'y'.repeat(200)} | z |`);
    const { page, field, log } = await open({ viewport: { width: 320, height: 640 } });
    await say(field, 'Hello');
    await log.getByText('xxx').waitFor();
    const isNarrow = () => page.evaluate<boolean>('document.documentElement.scrollWidth <= innerWidth');
    expect(await isNarrow()).toBe(true);
    await page.locator('html').evaluate((root) => {
      root.style.fontSize = '200%';
    });
    expect(await isNarrow()).toBe(true);
    expect(await log.evaluate((list) => list.scrollWidth <= list.clientWidth)).toBe(true);
    await page.getByRole('button', { name: 'Menu' }).click();
    await page.getByRole('link', { name: 'Memory' }).click();
    await page.getByRole('heading', { level: 1, name: 'Memory' }).waitFor();
    await page.locator('main:focus').waitFor();
  });
});
