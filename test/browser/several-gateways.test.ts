/** The page of a gateway whose platforms another one holds: it says which, and where a phone is linked. */
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { describeWithPostgres, type PostgresServer, startPostgres } from '../harness/postgres.js';
import { type SeveralGateways, severalGateways } from '../harness/several-gateways.js';
import { describeInChromium, launchChromium } from './board.js';

/** Longer than the test: the second gateway asks for no share. */
const LEASE_SECONDS = 120;

(describeInChromium === describe.skip ? describe.skip : describeWithPostgres)('the page of two', () => {
  let server: PostgresServer;
  let browser: Browser;
  let on: SeveralGateways;
  let faults: string[];
  beforeAll(async () => {
    server = await startPostgres();
    browser = await launchChromium();
  });
  afterAll(async () => {
    await browser.close();
    await server.close();
  });
  beforeEach(async () => {
    faults = [];
    on = await severalGateways(server, { reply: 'well', leaseSeconds: LEASE_SECONDS });
    // Not linked, and with nobody to ask.
    const whatsapp = { enabled: true, web_socket_url: 'ws://127.0.0.1:9' };
    for (const name of ['a', 'b'])
      await on.configure(name, { channels: { telegram: on.ofTelegram(), whatsapp } });
  });
  afterEach(() => on.close());

  async function open(url: string, locale: string): Promise<Page> {
    const page = await (await browser.newContext({ locale })).newPage();
    page.on('pageerror', (error) => faults.push(String(error)));
    await page.goto(url);
    return page;
  }

  it('names the gateway that holds a platform, and leads there to link a phone', async () => {
    const a = on.start('a');
    await a.saw('coterie is up');
    const b = on.start('b');
    await b.saw('"event":"standby","lease":"channel:whatsapp"');
    await b.saw('coterie is up');
    const url = await b.url();

    const page = await open(`${url}/#/operations`, 'en-US');
    const channels = page.getByRole('region', { name: 'Channels', exact: true });
    const telegram = channels.getByRole('listitem').filter({ hasText: 'Telegram' });
    await telegram.getByText('At the gateway a, whose page says more').waitFor();
    expect(await channels.getByText('At the gateway a').count()).toBe(2);
    expect(await channels.textContent()).not.toMatch(/connect|since/i);

    await page.goto(`${url}/#/setup`);
    const platform = page.getByRole('region', { name: 'Platform' });
    await platform
      .getByText('The gateway a holds WhatsApp. Open Setup on its page to link a phone.')
      .waitFor();
    expect(await platform.getByText('at the gateway a', { exact: true }).count()).toBe(2);
    for (const name of ['Connect WhatsApp', 'Pairing code'])
      expect(await platform.getByRole('button', { name }).count()).toBe(0);
    const refused = await page.evaluate(async () => {
      const headers = { 'content-type': 'application/json' };
      const body = JSON.stringify({ phone: '+49 170 1234567' });
      return (await fetch('api/board/setup/whatsapp/code', { method: 'POST', headers, body })).json();
    });
    expect(refused).toEqual({
      works: false,
      says: 'The gateway a holds WhatsApp. Open its page to link the phone.',
    });

    const german = await open(`${url}/#/operations`, 'de-DE');
    await german.getByText('Beim Gateway a; mehr sagt dessen Seite').first().waitFor();
    await german.goto(`${url}/#/setup`);
    await german.getByText('WhatsApp ist beim Gateway a. Öffne dort die Einrichtung').waitFor();

    const atHolder = await open(`${await a.url()}/#/setup`, 'en-US');
    await atHolder.getByRole('button', { name: 'Pairing code' }).waitFor();
    expect(faults).toEqual([]);
  });
});
