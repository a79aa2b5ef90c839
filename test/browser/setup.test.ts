/** The setup in a real browser: a server on this machine is found, tried and saved; Telegram is connected beside it. */
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { type FakeModel, startFakeModel } from '../fakes/model.js';
import { llamacpp } from '../fakes/model-servers/llamacpp.js';
import { ANNA } from '../fakes/telegram-chats.js';
import { discordPlatform } from '../harness/discord.js';
import { eventually } from '../harness/gateway.js';
import { type Stage, stage } from '../harness/telegram.js';
import { describeInChromium, launchChromium } from './board.js';

const BASE = '# mine\nboard: { port: 0 }\nlog: { format: json }\n';
/** Where llama.cpp listens. */
const USUAL_PORT = 8080;

let browser: Browser;
beforeAll(async () => {
  browser = await launchChromium();
});
afterAll(() => browser.close());

let on: Stage;
let nearby: FakeModel | null = null;
const pages: Page[] = [];
afterEach(async () => {
  for (const page of pages.splice(0)) await page.close();
  await nearby?.close();
  nearby = null;
  await on.close();
});

async function open(config: string) {
  on = await stage();
  await on.home.write('config.yaml', config);
  const gateway = await on.start();
  const page = await browser.newPage();
  pages.push(page);
  const faults: string[] = [];
  page.on('pageerror', (error) => faults.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error' && /policy|trusted/i.test(message.text())) faults.push(message.text());
  });
  await page.goto(await gateway.url());
  return { gateway, page, faults };
}

describeInChromium('the setup', () => {
  it('comes by itself, finds a server, tries and saves it, and does not come again', async () => {
    nearby = await startFakeModel({ port: USUAL_PORT, server: llamacpp({ nCtx: 32_768 }) });
    const { page, faults } = await open(BASE);
    await page.getByRole('heading', { level: 1, name: 'Setup' }).waitFor();
    const model = page.getByRole('region', { name: 'Model' });
    await model.getByRole('button', { name: /^Use http:\/\/127\.0\.0\.1:8080/ }).click();
    expect(await model.getByLabel('Address').inputValue()).toBe('http://127.0.0.1:8080/v1');
    expect(await model.getByLabel('Model', { exact: true }).inputValue()).toBe('local');
    await model.getByRole('button', { name: 'Try' }).click();
    await model.getByRole('status').filter({ hasText: 'works' }).waitFor();
    await model.getByRole('button', { name: 'Save' }).click();
    await model.getByRole('status').filter({ hasText: 'in effect' }).waitFor({ timeout: 10_000 });
    expect(await on.home.read('config.yaml')).toBe(
      `${BASE}model:\n  base_url: http://127.0.0.1:8080/v1\n  name: local\n`,
    );
    await page.goto(page.url().replace(/#.*/, ''));
    await page.reload();
    await page.getByRole('heading', { level: 1, name: 'Chat' }).waitFor();
    expect(faults).toEqual([]);
  });

  it('is skipped, and found again in the menu', async () => {
    const { page } = await open(BASE);
    const skip = page.getByRole('button', { name: 'Skip' });
    const save = page.getByRole('region', { name: 'Model' }).getByRole('button', { name: 'Save' });
    const [a, b] = [await skip.boundingBox(), await save.boundingBox()];
    expect(a?.height).toBe(b?.height);
    expect(a?.width).toBeGreaterThanOrEqual(b?.width ?? Number.POSITIVE_INFINITY);
    await page.route('**/setup/leave', (route) => route.abort());
    await skip.click();
    await page.getByRole('alert').filter({ hasText: 'did not answer' }).waitFor();
    await page.unroute('**/setup/leave');
    await skip.click();
    await page.getByRole('heading', { level: 1, name: 'Chat' }).waitFor();
    await page.goto(page.url().replace(/#.*/, ''));
    await page.reload();
    await page.getByRole('heading', { level: 1, name: 'Chat' }).waitFor();
    await page.getByRole('link', { name: 'Setup' }).click();
    await page.getByRole('heading', { level: 1, name: 'Setup' }).waitFor();
  });

  it('says what the server said, and connects Telegram, which answers', async () => {
    const { page, gateway } = await open(`${BASE}conversation: { debounce_ms: 0 }\n`);
    await on.home.write(
      'config.yaml',
      `${BASE}channels:\n  telegram:\n    api_root: ${on.telegram.url}\n    access: { direct: open }\n`,
    );
    const model = page.getByRole('region', { name: 'Model' });
    on.model.reply({ status: 404, body: { error: { message: 'model "nope" not found' } } });
    await model.getByLabel('Address').fill(on.model.url);
    await model.getByLabel('Model', { exact: true }).fill('nope');
    await model.getByRole('button', { name: 'Try' }).click();
    await model.getByRole('alert').filter({ hasText: '404: model "nope" not found' }).waitFor();

    const platform = page.getByRole('region', { name: 'Platform' });
    await platform.getByLabel('Telegram token').fill('1:wrong');
    await platform.getByRole('button', { name: 'Check' }).click();
    await platform.getByRole('alert').filter({ hasText: '401' }).waitFor();
    await platform.getByLabel('Telegram token').fill(on.telegram.token);
    await platform.getByRole('button', { name: 'Check' }).click();
    await platform.getByRole('status').filter({ hasText: /@\w+/ }).waitFor();
    await platform.getByRole('button', { name: 'Save' }).click();
    on.telegram.say({ text: 'hi' });
    await eventually(() => on.sentTo(ANNA.id).length > 0, 'Anna is answered', 10_000);
    await platform.getByText('connected', { exact: true }).waitFor();
    expect(await page.content()).not.toContain(on.telegram.token);
    expect(gateway.err()).not.toContain(on.telegram.token);
  });

  it('checks a Discord bot, and leads to its invitation', async () => {
    const { discord, close } = await discordPlatform();
    try {
      const { page } = await open(`${BASE}channels:\n  discord: { api_root: ${discord.url} }\n`);
      const platform = page.getByRole('region', { name: 'Platform' });
      await platform.getByLabel('Discord token').fill('wrong.token.of-nobody');
      await platform.getByRole('button', { name: 'Check' }).click();
      await platform.getByRole('alert').filter({ hasText: 'Discord' }).waitFor();
      await platform.getByLabel('Discord token').fill(discord.token);
      await platform.getByRole('button', { name: 'Check' }).click();
      const status = platform.getByRole('status').filter({ hasText: discord.bot.id });
      const invite = status.getByRole('link', { name: 'Invite the bot' });
      expect(await invite.getAttribute('href')).toMatch(
        /^https:\/\/discord\.com\/oauth2\/authorize\?client_id=\d+&/,
      );
      expect(await invite.getAttribute('rel')).toContain('noreferrer');
      expect(await page.content()).not.toContain(discord.token);
    } finally {
      await close();
    }
  });

  it('makes a persona', async () => {
    const { page } = await open(BASE);
    const region = page.getByRole('region', { name: 'Persona' });
    await region.getByLabel('Name').fill('Luna');
    await region.getByLabel('Character').fill('Kind, and short of words.');
    await region.getByRole('button', { name: 'Create' }).click();
    await region.getByRole('status').filter({ hasText: 'Luna' }).waitFor();
    expect(await on.home.read('groups/board_main/luna/PERSONA.md')).toContain('short of words');
  });
});
