/** What WhatsApp lets the account do: to whom it may write (tokens, restrictions), and whether people see it as online. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { check } from '../../src/channels/whatsapp/credentials.js';
import { alertsIn, createRestrictions } from '../../src/channels/whatsapp/restrictions.js';
import { startFakeWhatsApp } from '../fakes/whatsapp.js';
import type { FakeWhatsApp, Peer } from '../fakes/whatsapp-words.js';
import { eventually, type Gateway, linked, memoryState, messages, testClock } from './whatsapp-gateway.js';

let fake: FakeWhatsApp;
let gateway: Gateway;
let undo: () => void;
let people = 0;

beforeAll(async () => {
  fake = await startFakeWhatsApp();
  undo = await fake.serveMediaHere();
  gateway = await linked(fake);
});

afterAll(async () => {
  await gateway.stop();
  undo();
  await fake.close();
});

const somebody = (): Peer => {
  people += 1;
  return fake.peer(people);
};
let keys = 0;
const send = (peer: Peer, text: string) => {
  keys += 1;
  return gateway.send(peer.pn, text, { key: String(keys) });
};
/** WhatsApp hears nothing of a try while the chat rests. */
async function untilSent(peer: Peer, text: string): Promise<void> {
  while ((await send(peer, text)).kind !== 'sent') await new Promise((resolve) => setTimeout(resolve, 20));
}
const hour = 3_600_000;

describe('online', () => {
  test('right after linking, and when it learns its name, nobody sees it so; the name is told', async () => {
    expect(fake.online()).toBe(false);
    expect(gateway.channel.names()).toEqual([]);
    const anna = somebody();
    fake.ownPhoneSays({ to: anna, text: 'by hand' });
    await fake.until(
      () => fake.presences.some(({ to, state }) => to === null && state === 'available'),
      'the name',
    );
    await fake.until(() => !fake.online(), 'unseen again');
    expect(gateway.channel.names()).toEqual(['Own']);
  });

  test('at the next login it says once that it is not online, and knows its name', async () => {
    const before = fake.presences.length;
    await gateway.stop();
    expect(gateway.channel.names()).toEqual(['Own']);
    gateway = await linked(fake, { before: gateway });
    await fake.until(() => fake.presences.length > before, 'a presence');
    expect(fake.presences.slice(before)).toMatchObject([{ to: null, state: 'unavailable' }]);
    expect(gateway.channel.names()).toEqual(['Own']);
  });
});

describe('tokens', () => {
  test('come with the history after linking, of which nothing becomes a message', async () => {
    const [anna, ben] = [somebody(), somebody()];
    fake.faults.demandTokens(true);
    const batches = gateway.batches.length;
    fake.syncHistory([
      { with: anna, text: 'from long ago', token: true },
      { with: ben, text: 'from long ago, too', token: false },
    ]);
    await eventually(() => [...gateway.state.values.keys()].includes(`tctoken-${anna.lid}`), 'the token');
    expect(await send(anna, 'hello again')).toMatchObject({ kind: 'sent' });
    expect(await send(ben, 'and you')).toMatchObject({ kind: 'unreachable' });
    expect(gateway.batches.slice(batches)).toEqual([]);
    fake.say({ from: anna, text: 'there you are' });
    await eventually(
      () => messages(gateway).some(({ text }) => text === 'there you are'),
      'what is said now',
    );
    expect(messages(gateway).map(({ text }) => text)).not.toContain('from long ago');
    fake.giveToken(ben);
    await untilSent(ben, 'and you, at last');
    fake.faults.demandTokens(false);
  });

  test('also of who writes to us; they outlast a restart', async () => {
    const anna = somebody();
    fake.faults.demandTokens(true);
    fake.giveToken(anna);
    await eventually(() => [...gateway.state.values.keys()].includes(`tctoken-${anna.lid}`), 'the token');
    expect(await send(anna, 'one')).toMatchObject({ kind: 'sent' });
    await gateway.stop();
    gateway = await linked(fake, { before: gateway });
    expect(await send(anna, 'two')).toMatchObject({ kind: 'sent' });
    expect(fake.complaints).toEqual([]);
    fake.faults.demandTokens(false);
  });
});

describe('a chat that WhatsApp does not let us write into (463)', () => {
  test('rests, longer each time, without another try; the operator is told; other chats go on', async () => {
    const [anna, ben] = [somebody(), somebody()];
    fake.faults.demandTokens(true);
    fake.giveToken(ben);
    await eventually(() => [...gateway.state.values.keys()].includes(`tctoken-${ben.lid}`), 'the token');
    const refused = await send(anna, 'hello');
    expect(refused).toMatchObject({
      kind: 'unreachable',
      taken: 'no',
      reason: expect.stringContaining('463'),
    });
    expect(refused).toMatchObject({ retryAfterMs: expect.closeTo(hour / 6, -4) });
    expect(refused).toMatchObject({
      notice: {
        key: expect.stringMatching(/^whatsapp\.restricted\.\d{4}-\d\d-\d\d$/),
        text: expect.stringContaining('(463)'),
      },
    });
    // WhatsApp would count every further try against the account: it hears of none.
    fake.faults.demandTokens(false);
    expect(await send(anna, 'hello?')).toMatchObject({ kind: 'unreachable', taken: 'no' });
    expect(fake.sentTo(anna)).toEqual([]);
    expect(await send(ben, 'all well')).toMatchObject({ kind: 'sent' });
    const words = expect.stringMatching(/\(463\).*one chat.*write first.*ban/);
    expect(gateway.channel.status()).toMatchObject({ connected: true, lastError: words });
    expect(await check(gateway.state)).toMatchObject({ warnings: [words] });
    expect(gateway.lines.filter(({ level }) => level === 'warn').at(-1)).toMatchObject({
      fields: { chat: anna.pn, refusals: 1 },
    });
  });

  test('also rests after a restart', async () => {
    const anna = somebody();
    fake.faults.demandTokens(true);
    expect(await send(anna, 'hello')).toMatchObject({ kind: 'unreachable' });
    await gateway.stop();
    gateway = await linked(fake, { before: gateway });
    fake.faults.demandTokens(false);
    expect(await send(anna, 'hello?')).toMatchObject({ kind: 'unreachable', taken: 'no' });
    expect(fake.sentTo(anna)).toEqual([]);
  });

  test('an account that may begin no chats goes on with those that there are', async () => {
    const [known, stranger] = [somebody(), somebody()];
    fake.say({ from: known, text: 'hello' });
    await eventually(() => messages(gateway).some(({ sender }) => sender.address === known.pn), 'hello');
    const until = Date.now() + 9 * hour;
    fake.faults.restrict(until);
    await eventually(() => /until 2/.test(gateway.channel.status().lastError ?? ''), 'news of it');
    expect(await send(known, 'hello, you')).toMatchObject({ kind: 'sent' });
    const refused = await send(stranger, 'hello');
    expect(refused).toMatchObject({ kind: 'unreachable', taken: 'no' });
    fake.faults.restrict(null);
    await eventually(() => !/until 2/.test(gateway.channel.status().lastError ?? ''), 'news of its end');
  });

  test('opens when the token comes that was missing, and when WhatsApp lets the account begin chats again', async () => {
    const [anna, ben] = [somebody(), somebody()];
    fake.faults.demandTokens(true);
    expect(await send(anna, 'hello')).toMatchObject({ kind: 'unreachable' });
    fake.giveToken(anna);
    await untilSent(anna, 'hello again');
    fake.faults.demandTokens(false);
    fake.faults.restrict(Date.now() + 200 * hour);
    await eventually(() => /until 2/.test(gateway.channel.status().lastError ?? ''), 'news of it');
    // Whatever opens it, it is not asked for first after days.
    expect(await send(ben, 'hello')).toMatchObject({ retryAfterMs: expect.closeTo(hour / 6, -4) });
    fake.faults.restrict(null);
    await eventually(() => !/until 2/.test(gateway.channel.status().lastError ?? ''), 'news of its end');
    expect(await send(ben, 'hello again')).toMatchObject({ kind: 'sent' });
  });

  test('pauses grow to hours; what WhatsApp takes ends them', async () => {
    const time = { now: 1_779_000_000_000 };
    const log = { debug() {}, info() {}, warn() {}, error() {} };
    const state = memoryState();
    const restrictions = createRestrictions(state, { ...testClock(), now: () => time.now }, log);
    const pauses = Array.from({ length: 6 }, () => {
      const pause = restrictions.refused('a');
      expect(restrictions.leftFor('a')).toBe(pause);
      time.now += pause;
      expect(restrictions.leftFor('a')).toBe(0);
      return pause;
    });
    expect(pauses.map((ms) => ms / 60_000)).toEqual([10, 60, 240, 720, 720, 720]);
    expect(restrictions.leftFor('b')).toBe(0);
    expect(restrictions.reason()).toContain('one chat');
    // Nobody wanted to write into it any more.
    time.now += 3_600_001;
    expect(restrictions.reason()).toBeNull();
    restrictions.taken('a');
    expect(restrictions.reason()).toBeNull();
    await restrictions.settled();
    expect(await alertsIn(state)).toEqual([]);
    expect(restrictions.refused('a')).toBe(600_000);
  });
});

test('links in what is sent are never looked up: WhatsApp gets no preview from us', async () => {
  const anna = somebody();
  fake.say({ from: anna, text: 'hello' });
  expect(await send(anna, 'see https://example.com/a?b=secret')).toMatchObject({ kind: 'sent' });
  const { extendedTextMessage, conversation } = fake.sentTo(anna)[0]?.content ?? {};
  expect(extendedTextMessage?.text ?? conversation).toBe('see https://example.com/a?b=secret');
  expect(extendedTextMessage?.matchedText ?? null).toBeNull();
  expect(extendedTextMessage?.title ?? null).toBeNull();
});
