/** The place Memory in a real browser: a real gateway, with files that people, personas and other programs write. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import axe from 'axe-core';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { type ChatBody, type FakeModel, lastUserText, startFakeModel } from '../fakes/model.js';
import { eventually, type Home, makeHome, type Running, run } from '../harness/gateway.js';
import { describeInChromium, launchChromium } from './board.js';

const SCRIPT = `<script>document.title = 'taken'</script><img src=x onerror="document.title = 'taken'">`;
const MEMORY = '# Memory\n\n## Tier 1\n\n- tea\n\n## Tier 2\n\n- moss\n\n## Tier 3\n\n- rain\n';

let model: FakeModel;
let home: Home;
let gateway: Running;
let url: string;
let browser: Browser;
const opened: { page: Page; faults: string[] }[] = [];

/** Writes into tier 3 what it is asked to remember. */
function reply(body: ChatBody) {
  const isDone = body.messages.some(({ role }) => role === 'tool');
  if (!lastUserText(body).includes('remember') || isDone) return { text: 'Good.' };
  const given = { tier: 3, content: '- rain\n- likes roses' };
  return { calls: [{ id: 'c1', name: 'write_tiered_memory', arguments: given }] };
}

beforeAll(async () => {
  model = await startFakeModel({ reply });
  home = await makeHome({
    ...{ board: { port: 0 }, timezone: 'UTC', memory: { long_term_max_chars: 2_000 } },
    model: { base_url: model.url, name: 'fake', context_tokens: 100_000 },
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
    expect(faults.filter((fault) => !/status of (?:409|503)/.test(fault))).toEqual([]);
  }
});

const onDisk = (file: string) => readFile(join(home.folder, 'groups', file), 'latin1');
const put = (file: string, text: string) => home.write(`groups/${file}`, text);

async function open(hash: string, options: BrowserContextOptions = {}): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  const faults: string[] = [];
  page.on('pageerror', (error) => faults.push(String(error)));
  page.on('console', (message) => message.type() === 'error' && faults.push(message.text()));
  opened.push({ page, faults });
  await page.goto(`${url}/${hash}`);
  return page;
}

const field = (page: Page, name = 'MEMORY.md') => page.getByRole('textbox', { name, exact: true });
const preview = (page: Page) => page.getByRole('region', { name: 'Preview' });
const tab = (page: Page, name: string) => page.getByRole('tab', { name }).click();
const says = (page: Page, words: string) => page.getByRole('status').filter({ hasText: words }).waitFor();

async function save(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Save', exact: true }).click();
}

async function edit(page: Page, change: (text: string) => string, name = 'MEMORY.md'): Promise<void> {
  await field(page, name).fill(change(await field(page, name).inputValue()));
}

async function shows(page: Page, text: string, name = 'MEMORY.md'): Promise<void> {
  await eventually(async () => (await field(page, name).inputValue()).includes(text), `${text} in ${name}`);
}

describeInChromium('a file', () => {
  it('is edited and saved, with a preview that grows along, and undone in the history', async () => {
    await put('board_main/default/MEMORY.md', MEMORY);
    const page = await open('#/memory');
    await shows(page, '- tea');
    expect(await page.getByRole('combobox', { name: 'Chat' }).inputValue()).toBe('board_main');
    expect(await page.getByRole('combobox', { name: 'Persona' }).inputValue()).toBe('default');
    await edit(page, (text) => text.replace('- tea', '- **green** tea'));
    await preview(page).getByText('green').waitFor();
    await save(page);
    await says(page, 'Saved');
    expect(await onDisk('board_main/default/MEMORY.md')).toBe(MEMORY.replace('- tea', '- **green** tea'));
    await tab(page, 'History');
    await page.getByText('+ - **green** tea').waitFor();
    await page.getByRole('button', { name: 'Undo' }).first().click();
    await says(page, 'Undone');
    expect(await onDisk('board_main/default/MEMORY.md')).toBe(MEMORY);
    await page.getByText('Undone', { exact: true }).waitFor();
  });

  it('changes under the eyes of who looks when a persona writes, and the history says who did', async () => {
    await put('board_main/default/MEMORY.md', MEMORY);
    const page = await open('#/memory/board_main/default/memory');
    await shows(page, '- rain');
    await fetch(`${url}/api/board/chats/board_main/messages`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ id: 'remember-1', text: 'Please remember that I like roses', files: [] }),
    });
    await shows(page, '- likes roses');
    await preview(page).getByText('likes roses').waitFor();
    await page.goto(`${url}/#/memory/board_main/default?file=default%2FMEMORY.md&tier=3&line=-+likes+roses`);
    await page.locator('.preview .found', { hasText: 'likes roses' }).waitFor();
    await tab(page, 'History');
    const entry = page.getByRole('listitem').filter({ hasText: 'likes roses' }).first();
    await entry.getByRole('button', { name: 'Undo' }).click();
    await says(page, 'Undone');
    expect(await onDisk('board_main/default/MEMORY.md')).toBe(MEMORY);
  });

  it('in two tabs asks the second, and loses nothing', async () => {
    await put('board_main/default/MEMORY.md', MEMORY);
    const [first, second] = [await open('#/memory'), await open('#/memory')];
    for (const page of [first, second]) await shows(page, '- tea');
    await edit(first, (text) => text.replace('- tea', '- coffee'));
    await edit(second, (text) => text.replace('- tea', '- cocoa'));
    await save(first);
    await says(first, 'Saved');
    await save(second);
    const dialog = second.getByRole('dialog', { name: 'Changed meanwhile' });
    expect(await dialog.getByRole('textbox', { name: 'Yours' }).inputValue()).toContain('- cocoa');
    expect(await dialog.getByRole('textbox', { name: 'On disk' }).inputValue()).toContain('- coffee');
    await second.keyboard.press('Escape');
    await dialog.waitFor({ state: 'hidden' });
    expect(await field(second).inputValue()).toContain('- cocoa');
    expect(await onDisk('board_main/default/MEMORY.md')).toContain('- coffee');
    await save(second);
    await dialog.getByRole('button', { name: 'Keep mine' }).click();
    await says(second, 'Saved');
    expect(await onDisk('board_main/default/MEMORY.md')).toBe(MEMORY.replace('- tea', '- cocoa'));
    await put('board_main/default/MEMORY.md', MEMORY.replace('- tea', '- water'));
    await edit(second, (text) => text.replace('- cocoa', '- milk'));
    await save(second);
    await dialog.getByRole('button', { name: 'Take theirs' }).click();
    await shows(second, '- water');
    expect(await second.getByRole('button', { name: 'Save', exact: true }).isDisabled()).toBe(true);
  });

  it('of Windows keeps its line ends, its byte order mark and bytes of another encoding', async () => {
    const bytes = Buffer.from('\xef\xbb\xbf## Tier 1\r\n- caf\xe9\r\n- t\xc3\xa9\r\n- rain', 'latin1');
    await put('board_main/windows/MEMORY.md', '');
    await writeFile(join(home.folder, 'groups/board_main/windows/MEMORY.md'), bytes);
    const page = await open('#/memory/board_main/windows/memory');
    await shows(page, '- té');
    await field(page).press('Control+End');
    await field(page).pressSequentially(' and sun\n- new');
    await save(page);
    await says(page, 'Saved');
    expect(await onDisk('board_main/windows/MEMORY.md')).toBe(`${bytes.toString('latin1')} and sun\r\n- new`);
  });

  it('over its budget shows where a prompt ends', async () => {
    await put('board_main/long/MEMORY.md', `## Tier 1\n\n${'- a line of memory\n'.repeat(200)}- the end\n`);
    const page = await open('#/memory/board_main/long/memory');
    const meter = page.getByRole('meter', { name: 'Budget' });
    const words = '3,820 of 2,000 characters: prompts stop at line 107';
    expect(await meter.getAttribute('aria-valuetext')).toBe(words);
    await preview(page).getByText('Prompts stop here, at line 107').waitFor();
    await page.locator('.beyond', { hasText: 'the end' }).waitFor();
    await field(page).fill('## Tier 1\n\n- short\n');
    expect(await meter.getAttribute('aria-valuetext')).toBe('18 of 2,000 characters');
  });

  it('of 2 MB opens, is edited and saved', async () => {
    await put('board_main/huge/MEMORY.md', `## Tier 1\n\ntea\n\n${'- moss — "✿"\n'.repeat(130_000)}`);
    const page = await open('#/memory/board_main/huge/memory');
    await shows(page, 'tea');
    await field(page).press('Control+Home');
    await field(page).pressSequentially('# Mine\n');
    await save(page);
    await says(page, 'Saved');
    expect((await onDisk('board_main/huge/MEMORY.md')).startsWith('# Mine\n## Tier 1\n\ntea\n')).toBe(true);
  });

  it('that is script stays words, in text, preview, history and names', async () => {
    const name = SCRIPT.replaceAll('"', '');
    await put('board_main/scripted/PERSONA.md', `---\nname: "${name}"\n---\n${SCRIPT}\n`);
    await put('board_main/scripted/MEMORY.md', `## Tier 1\n\n${SCRIPT}\n[x](javascript:alert(1))\n`);
    const page = await open('#/memory/board_main/scripted/memory');
    await shows(page, '<script>');
    await preview(page).getByText('<script>').waitFor();
    const chosen = page.getByRole('combobox', { name: 'Persona' }).locator('option:checked');
    expect(await chosen.textContent()).toBe(name);
    expect(await preview(page).locator('img, script, a').count()).toBe(0);
    await edit(page, (text) => `${text}\n${SCRIPT} again\n`);
    await save(page);
    await says(page, 'Saved');
    await tab(page, 'History');
    await page.getByText(' again').waitFor();
    await tab(page, 'Persona');
    await shows(page, '<script>', 'PERSONA.md');
    expect(await page.locator('main script, main img').count()).toBe(0);
  });

  it('that cannot be read says why, and others stay usable', async () => {
    await put('board_main/broken/MEMORY.md/x', '');
    await put('board_main/broken/PERSONA.md', 'Sings.\n');
    const page = await open('#/memory/board_main/broken/memory');
    await page
      .getByRole('alert')
      .filter({ hasText: 'a directory stands where a file is expected' })
      .waitFor();
    await tab(page, 'Persona');
    await shows(page, 'Sings.', 'PERSONA.md');
  });
});

describeInChromium('the place', () => {
  it('has the persona’s file, the library, principles and the days, each under its name', async () => {
    await put('telegram_-1/luna/PERSONA.md', '---\ntemperature: hot\n---\nSings.\n');
    await put('telegram_-1/memory/2026-01-02.md', '- it snowed\n');
    const page = await open('#/memory/telegram_-1/luna/persona');
    await shows(page, 'Sings.', 'PERSONA.md');
    await page.getByText('"temperature" should be a number').waitFor();
    await page.getByRole('combobox', { name: 'File' }).selectOption('personas/luna.md');
    await field(page, 'luna.md').fill('Hums.\n');
    await save(page);
    await says(page, 'Saved');
    expect(await onDisk('personas/luna.md')).toBe('Hums.\n');
    await tab(page, 'Principles');
    await field(page, 'AGENTS.md').waitFor();
    await tab(page, 'Daily log');
    await page.getByRole('combobox', { name: 'Day' }).selectOption('memory/2026-01-02.md');
    await shows(page, '- it snowed', '2026-01-02.md');
    expect(await page.getByRole('combobox', { name: 'Chat' }).inputValue()).toBe('telegram_-1');
  });

  it('asks before one leaves words that are not saved, and keeps them over its tabs', async () => {
    await put('board_main/default/MEMORY.md', MEMORY);
    const page = await open('#/memory');
    await shows(page, '- tea');
    await edit(page, (text) => text.replace('- tea', '- not yet'));
    await tab(page, 'History');
    await tab(page, 'Memory');
    await shows(page, '- not yet');
    const leave = page.getByRole('dialog', { name: 'Leave without saving?' });
    await page.getByRole('link', { name: 'Work' }).click();
    await leave.waitFor();
    await page.keyboard.press('Escape');
    await shows(page, '- not yet');
    await page.getByRole('link', { name: 'Work' }).click();
    await leave.getByRole('button', { name: 'Discard and leave' }).click();
    await page.getByRole('heading', { level: 1, name: 'Work' }).waitFor();
    await page.getByRole('link', { name: 'Memory' }).click();
    await shows(page, '- tea');
  });

  it('fits a phone of 320 px and keeps no readers out, in light and dark', async () => {
    await put('board_main/default/MEMORY.md', `${MEMORY}\n${'long'.repeat(200)}\n`);
    for (const [colorScheme, width] of [
      ['light', 320],
      ['dark', 1280],
    ] as const) {
      const page = await open('#/memory', { colorScheme, viewport: { width, height: 700 } });
      await shows(page, '- tea');
      // The page's policy lets no script in but its own.
      const session = await page.context().newCDPSession(page);
      await session.send('Runtime.evaluate', { expression: axe.source });
      for (const name of ['Memory', 'Daily log', 'Persona', 'History']) {
        await tab(page, name);
        await page.getByRole('tabpanel', { name }).locator('select, textarea, p').first().waitFor();
        const over =
          'document.querySelector("main").scrollWidth - document.querySelector("main").clientWidth';
        expect(await page.evaluate(over), `${width} ${name}`).toBe(0);
        const { result } = await session.send('Runtime.evaluate', {
          expression: `axe.run().then(({ violations }) => JSON.stringify(violations
            .filter(({ impact }) => ['serious', 'critical'].includes(impact))
            .map(({ id, nodes }) => [id, nodes.map(({ html }) => html)])))`,
          awaitPromise: true,
        });
        expect(result.value, `${colorScheme} ${width} ${name}`).toBe('[]');
      }
    }
  });
});
