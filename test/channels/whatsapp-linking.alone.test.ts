/** How a gateway gets to WhatsApp, and what its operator hears where it does not: versions, codes, the phone's refusals. */

import { DEFAULT_CONNECTION_CONFIG } from '@whiskeysockets/baileys';
import qrcode from 'qrcode';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { check } from '../../src/channels/whatsapp/credentials.js';
import { type Pairing, pairByPhone } from '../../src/channels/whatsapp/pair.js';
import { startFakeWhatsApp } from '../fakes/whatsapp.js';
import type { FakeWhatsApp } from '../fakes/whatsapp-words.js';
import { makeHome, run } from '../harness/gateway.js';
import { straight } from '../harness/straight.js';
import {
  eventually,
  type Gateway,
  type GatewayWishes,
  linked,
  memoryState,
  optionsFor,
  startGateway,
  testClock,
} from './whatsapp-gateway.js';

let fake: FakeWhatsApp;
let gateway: Gateway;

beforeEach(async () => {
  fake = await startFakeWhatsApp();
});

afterEach(async () => {
  await gateway?.stop();
  await fake.close();
});

const NEWER = DEFAULT_CONNECTION_CONFIG.version[2] + 1_000;
const lastError = () => gateway.channel.status().lastError;
const linesOf = (level: string) => gateway.lines.filter((line) => line.level === level);
const started = async (wishes: GatewayWishes) => {
  gateway = await startGateway(fake, wishes);
};
const connected = () => eventually(() => gateway.channel.status().connected, 'connected');
const again = async (wishes: GatewayWishes = {}) => {
  await gateway.stop();
  await started({ before: gateway, ...wishes });
};

function pairing(parts: Partial<Pairing> = {}): Promise<{ number: string }> {
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  const { signal } = new AbortController();
  const given = { log, signal, state: memoryState(), outward: straight, clock: testClock(), show() {} };
  return pairByPhone({ ...given, options: optionsFor(fake), phone: `+${fake.own.number}`, ...parts });
}

describe('a version of WhatsApp Web that was retired', () => {
  test('the newest is looked up once, and it goes on without a release; also after a restart', async () => {
    gateway = await linked(fake);
    fake.faults.retireBelow(NEWER);
    await again();
    await connected();
    expect(fake.lookUps()).toBe(1);
    expect(linesOf('warn')).toMatchObject([{ fields: { version: `2.3000.${NEWER}` } }]);
    expect(await gateway.channel.check()).toMatchObject({ warnings: [] });
    await again();
    await connected();
    expect(fake.lookUps()).toBe(1);
  });

  test('before it is linked: the QR code comes all the same', async () => {
    fake.faults.retireBelow(NEWER);
    await started({});
    await connected();
    expect(fake.lookUps()).toBe(1);
  });

  test('what was looked up outlives the link, also one that is made with a code', async () => {
    fake.faults.retireBelow(NEWER);
    const state = memoryState();
    await pairing({ state, show: (code) => void fake.enterCode(code) });
    expect(state.values.get('version')).toContain(String(NEWER));
    await started({ state });
    await connected();
    fake.faults.logOut();
    await eventually(() => gateway.qrs.length === 1, 'a code of the new link');
    await connected();
    expect(fake.lookUps()).toBe(1);
  });

  test.each([
    ['stall', /could not be looked up.*in time/],
    ['garbage', /could not be looked up.*does not tell it/],
    [503, /could not be looked up.*HTTP 503/],
  ] as const)(
    'a look-up that fails (%s) says what to set, and is not tried again soon',
    async (how, words) => {
      gateway = await linked(fake);
      fake.faults.retireBelow(NEWER);
      fake.faults.breakLookUp(how);
      await again();
      gateway.clock.quick.add(60_000);
      await fake.until(() => fake.lookUps() === 1, 'a look-up');
      if (how === 'stall') gateway.clock.expire(15_000);
      await eventually(() => linesOf('error').length >= 2, 'refused twice');
      expect(linesOf('error')[0]?.fields).toMatchObject({ reason: expect.stringMatching(words) });
      expect(lastError()).toMatch(/set channels\.whatsapp\.version to a newer version/);
      expect(await check(gateway.state)).toMatchObject({ warnings: [expect.stringContaining('(405)')] });
      expect(fake.lookUps()).toBe(1);
      await again();
      await eventually(() => linesOf('error').length === 1, 'refused again');
      expect(fake.lookUps()).toBe(1);
    },
  );

  test('where nothing newer is to be found, it says so', async () => {
    gateway = await linked(fake);
    fake.faults.refuseLogin(405);
    await again();
    await eventually(() => linesOf('error').length === 1, 'refused');
    expect(lastError()).toMatch(/a newer version is not to be found/);
  });

  test('the one that is configured is the one that is told; refused, it is pointed at, and nothing is looked up', async () => {
    fake.faults.retireBelow(NEWER);
    await started({ version: `2.3000.${NEWER}` });
    await connected();
    await again({ version: '2.3000.1' });
    await eventually(() => linesOf('error').length === 1, 'refused');
    expect(lastError()).toMatch(/2\.3000\.1, as too old \(405\); it stands in channels\.whatsapp\.version/);
    expect(fake.lookUps()).toBe(0);
  });
});

describe('a QR code of which nothing comes', () => {
  test('an account that wants a passkey: said before the next code is shown, in the log, the status and doctor', async () => {
    fake.faults.askPasskey(true);
    await started({});
    gateway.clock.quick.add(300_000);
    await eventually(() => gateway.qrs.length === 1, 'a code, which is scanned');
    fake.faults.codesRunOut();
    await eventually(() => linesOf('warn').length === 1, 'a warning');
    expect(gateway.qrs).toHaveLength(1);
    expect(linesOf('warn')[0]?.fields).toMatchObject({
      reason: expect.stringMatching(/passkey.*another number/),
    });
    expect(lastError()).toMatch(/passkey.*linked devices \(four at most\)/);
    expect(await check(gateway.state)).toMatchObject({
      identity: 'not linked',
      warnings: [expect.stringContaining('not linked to a phone yet'), expect.stringContaining('passkey')],
    });
    // Later it shows codes again, each time after a longer pause.
    await eventually(() => gateway.qrs.length === 2, 'another code');
    fake.faults.codesRunOut();
    await eventually(() => linesOf('warn').length === 2, 'another warning');
    expect(gateway.clock.slept).toEqual([60_000, 300_000]);
    fake.faults.askPasskey(false);
    await eventually(() => gateway.qrs.length === 3, 'another code');
    await connected();
    expect(await gateway.channel.check()).toMatchObject({ warnings: [] });
  });

  test('a phone with too many linked devices: said instead of the next code', async () => {
    fake.faults.tooManyDevices(true);
    await started({});
    await eventually(() => linesOf('warn').length === 1, 'a warning');
    expect(gateway.qrs).toHaveLength(1);
    expect(lastError()).toMatch(/took the link back at once \(401\).*remove one of its linked devices/);
    await eventually(() => [...gateway.state.values.keys()].join() === 'trouble', 'nothing but that is kept');
  });

  test('a code whose secret WhatsApp retires is shown anew, and can be scanned', async () => {
    await started({ unscanned: true });
    await eventually(() => gateway.qrs.length === 1, 'a code');
    const [old = ''] = gateway.qrs;
    fake.faults.refreshRegistration(old);
    await eventually(() => gateway.qrs.length === 2, 'the code anew');
    await expect(fake.scan(old)).rejects.toThrow('was retired');
    await fake.scan(gateway.qrs[1] ?? '');
    await connected();
  });
});

test('where nobody is at a terminal, the QR code is drawn beside the log, without control characters', async () => {
  const whatsapp = { enabled: true, web_socket_url: fake.url };
  const home = await makeHome({ log: { format: 'json' }, channels: { whatsapp } });
  const process = run(home);
  try {
    const border = '█'.repeat(29);
    await process.saw(new RegExp(`${border}[^]*  [^]*${border}\\s`));
    const [, text = ''] = /whatsapp qr: ([^"\s]+)/.exec(process.err()) ?? [];
    const drawn = process
      .err()
      .split('\n')
      .filter((line) => line.startsWith(border.slice(0, 4)));
    const { size, data } = qrcode.create(text).modules;
    expect(modulesIn(drawn, size)).toEqual(
      Array.from({ length: size }, (_, row) => [...data.slice(row * size, (row + 1) * size)].map(Boolean)),
    );
  } finally {
    await process.stop();
    await home.remove();
  }
});

/** Which modules are dark: every line draws two rows, in light, with a margin of four around them. */
function modulesIn(lines: string[], size: number): boolean[][] {
  const rows = lines.slice(2).flatMap((line) => {
    const characters = [...line.slice(4, 4 + size)];
    return ['▄ ', '▀ '].map((dark) => characters.map((character) => dark.includes(character)));
  });
  return rows.slice(0, size);
}

describe('a code for the phone of which nothing comes', () => {
  test('refused by WhatsApp: it is not shown at all, and why is said', async () => {
    const codes: string[] = [];
    fake.faults.refuseCode(400);
    const refused = pairing({ show: (code) => void codes.push(code) });
    await expect(refused).rejects.toThrow(/no code for this number \(400\).*country code.*QR code/);
    fake.faults.refuseCode(429);
    await expect(pairing()).rejects.toThrow(/too many codes.*\(429\).*wait some hours/);
    expect(codes).toEqual([]);
  });

  test('an account that wants a passkey, or goes on waiting: said instead of another code', async () => {
    const codes: string[] = [];
    fake.faults.askPasskey(true);
    const half = pairing({
      show(code) {
        codes.push(code);
        void fake.enterCode(code);
      },
    });
    await expect(half).rejects.toThrow(/passkey, which a gateway cannot.*another number/);
    expect(codes).toHaveLength(1);
  });

  test('a phone with too many linked devices: said, and the link is not kept', async () => {
    fake.faults.tooManyDevices(true);
    const state = memoryState();
    const taken = pairing({ state, show: (code) => void fake.enterCode(code).catch(() => {}) });
    await expect(taken).rejects.toThrow(/took the link back.*linked devices/);
    expect([...state.values.keys()]).toEqual([]);
  });

  test('codes that nobody types are followed by others', async () => {
    const codes: string[] = [];
    const paired = pairing({ show: (code) => void codes.push(code) });
    await eventually(() => codes.length === 1, 'a code');
    fake.faults.codesRunOut();
    await eventually(() => codes.length === 2, 'another');
    await fake.enterCode(codes[1] ?? '');
    expect(await paired).toEqual({ number: `+${fake.own.number}` });
  });
});
