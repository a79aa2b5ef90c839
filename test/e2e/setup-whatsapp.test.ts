/** WhatsApp's codes over HTTP, in the real process. */
import { afterEach, describe, expect, it } from 'vitest';
import { startFakeWhatsApp } from '../fakes/whatsapp.js';
import type { FakeWhatsApp } from '../fakes/whatsapp-words.js';
import { eventually } from '../harness/gateway.js';
import { type Stage, stage } from '../harness/telegram.js';

let on: Stage;
let whatsapp: FakeWhatsApp | null = null;
afterEach(async () => {
  await on.close();
  await whatsapp?.close();
  whatsapp = null;
});

describe('WhatsApp on the page', () => {
  const told = async (asked: Promise<Response>) => JSON.parse(await (await asked).text());

  async function ask(url: string, method: string, path: string, body?: unknown) {
    const sent =
      body === undefined
        ? {}
        : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
    return fetch(`${url}/api/board/setup${path}`, { method, ...sent });
  }

  it('is switched on, shows its code as a picture, and is linked by a code that is typed', async () => {
    on = await stage();
    whatsapp = await startFakeWhatsApp();
    const phone = whatsapp;
    await on.home.write(
      'config.yaml',
      `board: { port: 0 }\nlog: { format: json }\nchannels:\n  whatsapp:\n    web_socket_url: ${phone.url} # a fake\n`,
    );
    const gateway = await on.start(phone.environment);
    const url = await gateway.url();
    const state = async () => told(ask(url, 'GET', ''));
    expect((await state()).channels.whatsapp.state).toBe('none');
    expect((await ask(url, 'GET', '/whatsapp/code.svg')).status).toBe(404);
    expect((await ask(url, 'POST', '/whatsapp', {})).status).toBe(200);
    expect(await on.home.read('config.yaml')).toContain('# a fake\n    enabled: true\n');
    await eventually(async () => (await state()).link !== null, 'a code is shown');
    const picture = await ask(url, 'GET', '/whatsapp/code.svg');
    expect(picture.headers.get('content-type')).toBe('image/svg+xml');
    expect(await picture.text()).toMatch(/^<svg [^>]*viewBox/);

    const wrong = await told(ask(url, 'POST', '/whatsapp/code', { phone: 'call me' }));
    expect(wrong).toMatchObject({ works: false, says: expect.stringContaining('country code') });
    const given = await told(ask(url, 'POST', '/whatsapp/code', { phone: `+${phone.own.number}` }));
    expect(given).toMatchObject({ works: true, says: expect.stringMatching(/^[A-Z0-9]{4}-[A-Z0-9]{4}$/) });
    await phone.enterCode(given.says);
    await eventually(async () => (await state()).channels.whatsapp.isConnected, 'it is linked');
    expect((await state()).link).toBeNull();
    expect((await ask(url, 'GET', '/whatsapp/code.svg')).status).toBe(404);
    expect(await on.home.read('data/audit.jsonl')).toContain(
      `a code to link WhatsApp to +${phone.own.number} is asked for`,
    );
    await gateway.stop();
  });

  it('shows a code again where the one before was not typed', async () => {
    on = await stage();
    whatsapp = await startFakeWhatsApp();
    const phone = whatsapp;
    await on.home.write(
      'config.yaml',
      `board: { port: 0 }\nlog: { format: json }\nchannels:\n  whatsapp: { enabled: true, web_socket_url: "${phone.url}" }\n`,
    );
    const gateway = await on.start(phone.environment);
    const url = await gateway.url();
    const state = () => told(ask(url, 'GET', ''));
    await eventually(async () => (await state()).link, 'a code is shown');
    const given = await told(ask(url, 'POST', '/whatsapp/code', { phone: `+${phone.own.number}` }));
    expect(given.works).toBe(true);
    const codes = () =>
      [...gateway.err().matchAll(/whatsapp qr: ([^\s"\\]+)/g)].map(([, code]) => code ?? '');
    const before = codes().length;
    phone.faults.codesRunOut();
    await gateway.saw('WhatsApp is not linked');
    expect(await told(ask(url, 'POST', '/whatsapp', {}))).toMatchObject({ isSame: true });
    await ask(url, 'POST', '/again', {});
    const next = await eventually(() => codes()[before], 'another code is shown');
    await phone.scan(next);
    await eventually(async () => (await state()).channels.whatsapp.isConnected, 'it is linked');
    await gateway.stop();
  });
});
