/** The place Operations in a real browser: what is wrong and what to do, strangers' names and log lines as text. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import type { NewDelivery } from '../../src/core/channel.js';
import { systemClock } from '../../src/core/clock.js';
import { createZone } from '../../src/core/dates.js';
import type { NewJob } from '../../src/core/jobs.js';
import type { Store } from '../../src/core/store.js';
import { openSqliteStore } from '../../src/store/open.js';
import { eventually } from '../harness/gateway.js';
import { quietLog } from '../harness/quiet.js';
import { type Stage, stage } from '../harness/telegram.js';
import { MIGRATIONS } from '../store/place.js';
import { seriousFaults } from './axe.js';
import { describeInChromium, launchChromium } from './board.js';

const EVIL = '<img src=x onerror="window.taken=1"><script>window.taken=1</script>\u001b[31m';
const SECRETS = { board: { port: 0 }, access: { direct: 'pairing', owners: ['telegram_1'] } };
const SHOTS = process.env.COTERIE_SHOTS;

let browser: Browser;
beforeAll(async () => {
  browser = await launchChromium();
});
afterAll(() => browser.close());

let on: Stage;
const pages: Page[] = [];
const faults: string[] = [];
afterEach(async () => {
  for (const page of pages.splice(0)) {
    expect(await page.evaluate('window.taken')).toBeUndefined();
    await page.context().close();
  }
  await on.close();
  expect(faults.splice(0)).toEqual([]);
});

async function open(url: string, size = { width: 1280, height: 800 }): Promise<Page> {
  const page = await (await browser.newContext({ viewport: size, locale: 'en-US' })).newPage();
  pages.push(page);
  page.on('pageerror', (error) => faults.push(String(error)));
  page.on('dialog', (dialog) => {
    faults.push(dialog.message());
    void dialog.dismiss();
  });
  await page.goto(`${url}/#/operations`);
  await page.getByRole('region', { name: 'Configuration' }).waitFor();
  return page;
}

const region = (page: Page, name: string) => page.getByRole('region', { name, exact: true });

/** Another process's view of the gateway's store. */
async function withStore<T>(use: (store: Store) => Promise<T>): Promise<T> {
  const store = await openSqliteStore({
    file: join(on.home.folder, 'data/coterie.db'),
    ...{ migrationsFolder: MIGRATIONS, clock: systemClock, log: quietLog },
    zone: createZone('Europe/Berlin'),
  });
  return use(store).finally(() => store.close());
}

async function askToBeLetIn(id: string, name: string, code: string): Promise<void> {
  const now = Date.now();
  const to = { chatId: id, channel: 'telegram', address: id.split('_')[1] ?? '', threadId: null };
  const said: NewDelivery = {
    ...{ origin: `pairing:${code}`, personaId: null, speaker: 'coterie', part: 0, replyTo: null },
    body: { text: code, marks: [] },
  };
  const post = { ...to, kind: 'direct' as const, now, delivery: said };
  const limits = { answerEveryMs: 1, most: 99, mostPerHour: 99 };
  await withStore((store) =>
    store.requestPairing(
      { channel: 'telegram', senderId: id, now, ...limits },
      { name, code, expiresAt: now + 3_600_000, announcements: [], answer: post },
    ),
  );
}

async function schedule(prompt: string): Promise<void> {
  const now = Date.now();
  const job: NewJob = {
    ...{ id: 'job-1', chatId: 'telegram_7', room: 'telegram_7', personaId: 'default', prompt },
    ...{ kind: 'cron', value: '0 8 * * *', timezone: 'Europe/Berlin', followUp: false, senderId: '' },
    ...{ tainted: false, guarded: false, turnId: 'none', nextAt: now + 3_600_000, now },
  };
  await withStore((store) => store.addJob(job, { open: 9, followUps: 9, followUpsADay: 9 }));
}

describeInChromium('the place Operations', () => {
  it('says what is wrong with a channel and what to do, the worst first', async () => {
    on = await stage({ config: SECRETS });
    const gateway = await on.start();
    const page = await open(await gateway.url());
    const channels = region(page, 'Channels');
    await channels.getByText('Connected', { exact: true }).waitFor();
    const firstOf = () => page.getByRole('region').first().getAttribute('aria-labelledby');
    await askToBeLetIn('telegram_66', 'Eve', 'ABCDEFGH');
    await page.reload();
    await region(page, 'Pairings').getByText('ABCDEFGH').waitFor();
    // In every place.
    await page.getByRole('link', { name: 'Chat' }).click();
    const link = page.getByRole('link', {
      name: 'Operations',
      exact: true,
      description: 'something needs you',
    });
    await link.click();
    await region(page, 'Pairings').getByText('ABCDEFGH').waitFor();
    expect(await firstOf()).toBe(await region(page, 'Pairings').getAttribute('aria-labelledby'));
    // Another program with the same token reads until it is told to stop.
    const other = setInterval(
      () => void fetch(`${on.telegram.url}/bot${on.telegram.token}/getUpdates?timeout=30`).catch(() => null),
      100,
    );
    try {
      await channels
        .getByText('Another program reads this bot’s messages. Stop it; this one goes on by itself.')
        .waitFor();
      expect(await channels.textContent()).toMatch(/Not connected.*since.*Last error: Telegram answers 409/);
      expect(await firstOf()).toBe(await channels.getAttribute('aria-labelledby'));
    } finally {
      clearInterval(other);
    }
  }, 60_000);

  it('lets people in and refuses them, once, from whichever tab', async () => {
    on = await stage({ config: SECRETS });
    const gateway = await on.start();
    const url = await gateway.url();
    await askToBeLetIn('telegram_66', EVIL, 'ABCDEFGH');
    await askToBeLetIn('telegram_67', 'Mallory', 'BCDEFGHK');
    const [one, other] = [await open(url), await open(url)];
    const eve = (page: Page) =>
      region(page, 'Pairings').getByRole('listitem').filter({ hasText: 'telegram_66' });
    await eve(other).waitFor();
    expect(await eve(one).textContent()).toContain('<img src=x onerror="window.taken=1">');
    await eve(one).getByRole('button', { name: 'Approve' }).click();
    await region(one, 'Pairings').getByRole('status').filter({ hasText: 'may write now' }).waitFor();
    await eve(other).getByRole('button', { name: 'Approve' }).click();
    await region(other, 'Pairings').getByRole('alert').filter({ hasText: 'decided already' }).waitFor();
    await on.replies(66, 1);
    const mallory = region(one, 'Pairings').getByRole('listitem').filter({ hasText: 'telegram_67' });
    await mallory.getByRole('button', { name: 'Remove' }).click();
    await region(one, 'Pairings').getByRole('status').filter({ hasText: 'is refused' }).waitFor();
    await region(one, 'Pairings').getByText('Nobody is waiting.').waitFor();
    await region(one, 'Pairings').getByText('Let in: 2').click();
    await eve(one).getByRole('button', { name: 'Remove' }).click();
    await one.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
    await region(one, 'Pairings').getByRole('status').filter({ hasText: 'may not write any more' }).waitFor();
    expect(await withStore((store) => store.letIn())).toEqual([]);
    const audit = (await on.home.read('data/audit.jsonl')) ?? '';
    for (const what of [
      'telegram_66 is let in',
      'telegram_67 is refused',
      'approval of telegram_66 is taken',
    ])
      expect(audit.split(what)).toHaveLength(2);
  }, 60_000);

  it('pauses a task for good: it is paused after a restart, and goes on when told', async () => {
    on = await stage({ config: SECRETS });
    const gateway = await on.start();
    await schedule(EVIL);
    const page = await open(await gateway.url());
    const schedules = region(page, 'Schedules');
    await schedules.getByText('0 8 * * *').waitFor();
    await schedules.getByRole('button', { name: 'Pause' }).click();
    await schedules.getByText('Task 1 is paused.').waitFor();
    await gateway.stop('SIGKILL');
    const again = await on.start();
    const later = await open(await again.url());
    await region(later, 'Schedules').getByText('Paused', { exact: true }).waitFor();
    await region(later, 'Schedules').getByRole('button', { name: 'Continue' }).click();
    await region(later, 'Schedules').getByText('Next:').waitFor();
    await region(later, 'Schedules').getByRole('button', { name: 'Cancel' }).click();
    await later.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
    await region(later, 'Schedules').getByText('Nothing is scheduled.').waitFor();
  }, 60_000);

  it('shows log lines as text, and no secret anywhere, and fits a phone of 320 px', async () => {
    on = await stage({ config: { ...SECRETS, limits: { tokens_per_day: 100 } } });
    const gateway = await on.start();
    const url = await gateway.url();
    await schedule(EVIL);
    await withStore((store) =>
      store.spend({
        ...{ room: 'telegram_7', personaId: 'default', now: Date.now() },
        usage: { inputTokens: 70, outputTokens: 5 },
      }),
    );
    const page = await open(url, { width: 320, height: 640 });
    const log = region(page, 'Log');
    await log.getByText('coterie is up').waitFor();
    const wide = 'document.documentElement.scrollWidth - innerWidth';
    expect(await page.evaluate(wide)).toBeLessThanOrEqual(0);
    const usage = region(page, 'Usage');
    await usage.getByRole('img', { name: /75/ }).waitFor();
    expect(await usage.getByRole('table').count()).toBeGreaterThan(1);
    expect(await usage.textContent()).toContain('limits.tokens_per_day: 75 of 100 today (all chats)');
    await region(page, 'Configuration').getByText('token: ••••').first().waitFor();
    await region(page, 'Audit').getByText('the gateway began').first().waitFor();
    expect(await page.content()).not.toContain(on.telegram.token);
    expect(await seriousFaults(page)).toEqual([]);
    await log.getByLabel('Show from').selectOption('error');
    await eventually(async () => (await log.getByText('coterie is up').count()) === 0, 'the filter');
    if (SHOTS !== undefined) await shoot(url, SHOTS);
  }, 60_000);
});

/** For people to look at. */
async function shoot(url: string, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  await askToBeLetIn('telegram_66', EVIL, 'ABCDEFGH');
  for (const colorScheme of ['light', 'dark'] as const) {
    for (const [name, size] of [
      ['phone', { width: 390, height: 5_000 }],
      ['desktop', { width: 1280, height: 3_000 }],
    ] as const) {
      const page = await open(url, size);
      await page.emulateMedia({ colorScheme });
      await page.waitForTimeout(500);
      await page.screenshot({ path: join(folder, `${name}-${colorScheme}.png`) });
    }
  }
}
