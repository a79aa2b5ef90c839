/** Telegram's flood control: what it says of waiting counts for everything that is done in a chat. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Part, Recipient, SendOptions } from '../../src/core/channel.js';
import type { Fault } from '../fakes/telegram.js';
import { ANNA } from '../fakes/telegram-chats.js';
import { sendOptions } from '../harness/sending.js';
import { type Stage, stage } from './telegram-stage.js';

const TO_ANNA: Recipient = { address: String(ANNA.id), threadId: null, kind: 'direct' };
const inChat = (id: number): Recipient => ({ address: String(id), threadId: null, kind: 'direct' });
const plain = (text: string): Part => ({ text, marks: [] });
const flood = (seconds: number): Fault => ({
  status: 429,
  description: `Too Many Requests: retry after ${seconds}`,
  parameters: { retry_after: seconds },
});

let on: Stage;
beforeEach(async () => {
  on = await stage({ personaTokens: {}, streaming: 'draft' }, { oneClock: true });
  for (const id of [1, 2, 3]) on.fake.say({ from: { id, first_name: 'Ben' }, text: 'hi' });
});
// The fake does not close where it was called during a wait.
afterEach(() => on.close());

const send = (text: string, to = TO_ANNA, options: Partial<SendOptions> = {}) =>
  on.channel.send(to, plain(text), sendOptions(options));
const called = () => on.fake.calls.length;

async function inSent(text: string): Promise<string> {
  const sent = await send(text);
  if (sent.kind !== 'sent') throw new Error('not sent');
  return sent.platformMessageId;
}

describe('a wait of no time, again and again', () => {
  test('in a chat is asked against less and less', async () => {
    on.fake.fail('sendMessage', flood(0), { times: 100 });
    const before = called();
    for (let tries = 0; tries < 60; tries += 1) {
      expect(await send('hi')).toMatchObject({ kind: 'unreachable', taken: 'no' });
      await on.clock.advance(500);
    }
    // After 1, 2, 4, 8 and 16 seconds.
    expect(called() - before).toBeLessThanOrEqual(6);
  });

  test('of getUpdates, too', async () => {
    on.fake.fail('getUpdates', flood(0), { times: 100 });
    await on.start();
    const before = called();
    for (let seconds = 0; seconds < 30; seconds += 1) await on.clock.advance(1_000);
    expect(called() - before).toBeLessThanOrEqual(6);
  });
});

describe('a wait that Telegram asks for', () => {
  test.each<[string, () => Promise<unknown>]>([
    ['sendMessage', () => send('more')],
    ['sendMessageDraft', async () => on.channel.preview?.(TO_ANNA, plain('more'), sendOptions())],
    ['sendChatAction', () => on.channel.setTyping(TO_ANNA)],
    ['editMessageText', () => on.channel.edit(TO_ANNA, '1', plain('more'), sendOptions())],
  ])('of %s is one of sends, edits, drafts and typing; then all go on', async (method, refused) => {
    await inSent('first');
    on.fake.fail(method, flood(30));
    await refused();
    const before = called();
    for (const ms of [1_000, 28_000]) {
      await on.clock.advance(ms);
      expect(await send('again')).toMatchObject({
        kind: 'unreachable',
        taken: 'no',
        reason: expect.stringContaining('wait'),
      });
      expect(await on.channel.edit(TO_ANNA, '1', plain('again'), sendOptions())).toMatchObject({
        kind: 'unreachable',
        taken: 'no',
        retryAfterMs: ms === 1_000 ? 29_000 : 1_000,
      });
      await on.channel.setTyping(TO_ANNA);
      await on.channel.remove(TO_ANNA, '1', sendOptions());
    }
    expect(called()).toBe(before);
    await on.clock.advance(1_000);
    expect(await send('again')).toMatchObject({ kind: 'sent' });
  });

  test('may take hours', async () => {
    on.fake.fail('sendMessage', flood(10_072));
    expect(await send('one')).toMatchObject({ kind: 'unreachable', retryAfterMs: 10_072_000 });
    await on.clock.advance(10_000_000);
    expect(await send('one')).toMatchObject({ kind: 'unreachable', retryAfterMs: 72_000 });
    await on.clock.advance(72_000);
    expect(await send('one')).toMatchObject({ kind: 'sent' });
  });

  test('keeps a refused draft from becoming an edited message', async () => {
    on.fake.fail('sendMessageDraft', flood(5));
    const preview = (text: string) => on.channel.preview?.(TO_ANNA, plain(text), sendOptions());
    expect(await preview('Let')).toBe(true);
    await on.clock.advance(1_000);
    expect(await preview('Let me')).toBe(true);
    expect(on.fake.callsOf('sendMessageDraft')).toHaveLength(1);
    await on.clock.advance(4_000);
    expect(await preview('Let me say')).toBe(true);
    expect(on.fake.drafts).toMatchObject([{ text: 'Let me say' }]);
  });

  test('is one of reactions, too', async () => {
    const { messageId } = on.fake.say({ text: 'hi' });
    const react = () => on.channel.react(TO_ANNA, String(messageId), '👍', sendOptions());
    on.fake.fail('sendMessage', flood(30));
    await send('hello');
    await on.clock.advance(1_000);
    expect(await react()).toMatchObject({ kind: 'unreachable', retryAfterMs: 29_000 });
    expect(on.fake.callsOf('setMessageReaction')).toEqual([]);
    await on.clock.advance(29_000);
    on.fake.fail('setMessageReaction', flood(30));
    expect(await react()).toMatchObject({ kind: 'unreachable', retryAfterMs: 30_000 });
    await on.clock.advance(1_000);
    expect(await send('more')).toMatchObject({ kind: 'unreachable', retryAfterMs: 29_000 });
  });

  test('in one chat is none of the others', async () => {
    on.fake.fail('sendMessage', flood(30));
    await send('one', inChat(1));
    expect(await send('two', inChat(2))).toMatchObject({ kind: 'sent' });
  });

  test('in two chats at once is one of the bot', async () => {
    on.fake.fail('sendMessage', flood(30), { times: 2 });
    await send('one', inChat(1));
    await on.clock.advance(10_000);
    await send('two', inChat(2));
    const before = called();
    expect(await send('three', inChat(3))).toMatchObject({ kind: 'unreachable', retryAfterMs: 30_000 });
    expect(called()).toBe(before);
    await on.clock.advance(30_000);
    for (const id of [1, 2, 3]) expect(await send('more', inChat(id))).toMatchObject({ kind: 'sent' });
  });

  test('in two chats, of which one waits for hours, is no reason for all others to wait as long', async () => {
    on.fake.fail('sendMessage', flood(3));
    await send('one', inChat(1));
    await on.clock.advance(5_000);
    on.fake.fail('sendMessage', flood(10_000));
    await send('two', inChat(2));
    expect(await send('three', inChat(3))).toMatchObject({ kind: 'sent' });
    expect(await send('four', inChat(1))).toMatchObject({ kind: 'sent' });
    expect(await send('five', inChat(2))).toMatchObject({ kind: 'unreachable', retryAfterMs: 10_000_000 });
  });

  test('in two chats with an hour between is one of each', async () => {
    on.fake.fail('sendMessage', flood(10_000));
    await send('one', inChat(1));
    await on.clock.advance(3_600_000);
    on.fake.fail('sendMessage', flood(30));
    await send('two', inChat(2));
    expect(await send('three', inChat(3))).toMatchObject({ kind: 'sent' });
  });

  test("of one bot is none of another's", async () => {
    await on.close();
    on = await stage({}, { oneClock: true });
    on.fake.join(on.luna, ANNA.id);
    on.fake.fail('sendMessage', flood(30), { bot: on.luna.id });
    const asLuna = { speaker: 'luna' };
    expect(await send('hi', TO_ANNA, asLuna)).toMatchObject({ kind: 'unreachable' });
    expect(await send('hi')).toMatchObject({ kind: 'sent' });
    // Nor does the main bot speak for her: the limit is there to be kept.
    expect(await send('hi', TO_ANNA, asLuna)).toMatchObject({ kind: 'unreachable' });
    expect(on.fake.sent).toHaveLength(1);
  });
});

describe('a call that Telegram holds back', () => {
  beforeEach(() => {
    on.fake.settings.perChatPerSecond = 0.25;
  });

  test('is the limit itself: what comes next waits as long', async () => {
    await send('one');
    const second = send('two');
    await on.clock.asleep(4_000);
    await on.clock.advance(4_000);
    expect(await second).toMatchObject({ kind: 'sent' });
    const before = called();
    expect(await send('three')).toMatchObject({ kind: 'unreachable', taken: 'no', retryAfterMs: 4_000 });
    await on.channel.setTyping(TO_ANNA);
    expect(called()).toBe(before);
    await on.clock.advance(4_000);
    expect(await send('three')).toMatchObject({ kind: 'sent' });
  });

  test('beyond eight seconds it is refused, and then left alone', async () => {
    await send('one');
    const texts = ['two', 'three', 'four'];
    const sending = Promise.all(texts.map((text) => send(text)));
    await on.fake.until(() => on.fake.callsOf('sendMessage').length === 4);
    await on.clock.asleep(8_000);
    await on.clock.advance(8_000);
    const results = await sending;
    expect(results.map(({ kind }) => kind).toSorted()).toEqual(['sent', 'sent', 'unreachable']);
    const before = called();
    await on.clock.advance(1_000);
    expect(await send('four')).toMatchObject({ kind: 'unreachable', taken: 'no' });
    expect(called()).toBe(before);
  });

  test('is no upload that took its time', async () => {
    on.fake.settings.perChatPerSecond = Number.POSITIVE_INFINITY;
    const folder = await mkdtemp(join(tmpdir(), 'coterie-floods-'));
    try {
      const path = join(folder, 'a.txt');
      await writeFile(path, 'x');
      on.fake.settings.answerDelayMs = 50;
      const sending = on.channel.send(
        TO_ANNA,
        { ...plain(''), file: { path, name: 'a.txt' } },
        sendOptions(),
      );
      await on.fake.until(() => on.fake.sent.length === 1);
      await on.clock.advance(5_000);
      expect(await sending).toMatchObject({ kind: 'sent' });
      expect(await send('more')).toMatchObject({ kind: 'sent' });
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});

describe('a file with a text too long to stand below it', () => {
  test('that waits after its text is sent does not say the text again', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'coterie-floods-'));
    try {
      const path = join(folder, 'a.txt');
      await writeFile(path, 'x');
      const part: Part = { text: 'word '.repeat(400).trim(), marks: [], file: { path, name: 'a.txt' } };
      const attempt = () => on.channel.send(TO_ANNA, part, sendOptions({ key: 'k' }));
      on.fake.fail('sendDocument', flood(3));
      expect(await attempt()).toMatchObject({ kind: 'unreachable', retryAfterMs: 3_000 });
      await on.clock.advance(3_000);
      expect(await attempt()).toMatchObject({ kind: 'sent' });
      expect(on.fake.sent.map(({ text, document }) => [text.length, document?.name])).toEqual([
        [part.text.length, undefined],
        [0, 'a.txt'],
      ]);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
