/** Messages that are edited and taken back, and drafts with their button. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Part, Recipient } from '../../src/core/channel.js';
import type { Fault, SentMessage } from '../fakes/telegram.js';
import { ANNA } from '../fakes/telegram-chats.js';
import { sendOptions } from '../harness/sending.js';
import { type Stage, stage } from './telegram-stage.js';

const TO_ANNA: Recipient = { address: String(ANNA.id), threadId: null, kind: 'direct' };
const GROUP: Recipient = { address: '-1001234567890', threadId: '45', kind: 'group' };
const plain = (text: string): Part => ({ text, marks: [] });

let on: Stage;
beforeEach(async () => {
  on = await stage({ personaTokens: {} });
});
afterEach(() => on.close());

describe('an edit', () => {
  const options = sendOptions({ key: '7' });
  let id: string;
  let message: SentMessage;
  const edit = (part: Part) => on.channel.edit(TO_ANNA, id, part, options);

  beforeEach(async () => {
    const sent = await on.channel.send(TO_ANNA, plain('The answer'), options);
    if (sent.kind !== 'sent') throw new Error('not sent');
    id = sent.platformMessageId;
    message = on.fake.sent[0] as SentMessage;
  });

  test('puts another text with its marks in the place of the first', async () => {
    const part: Part = { text: 'The answer is 4', marks: [{ kind: 'bold', offset: 14, length: 1 }] };
    expect(await edit(part)).toEqual({ kind: 'sent', platformMessageId: id });
    expect(message).toMatchObject({
      text: 'The answer is 4',
      entities: [{ type: 'bold', offset: 14, length: 1 }],
    });
    expect(on.fake.edits).toMatchObject([{ messageId: 1, chatId: ANNA.id, text: 'The answer is 4' }]);
  });

  test('that changes nothing is done', async () => {
    expect(await edit(plain('The answer'))).toEqual({ kind: 'sent', platformMessageId: id });
    expect(on.fake.edits).toEqual([]);
  });

  test('of a message that somebody deleted is refused', async () => {
    on.fake.vanish(message);
    expect(await edit(plain('more'))).toMatchObject({
      kind: 'refused',
      reason: expect.stringContaining('message to edit not found'),
    });
  });

  test('in a topic names no topic', async () => {
    const sent = await on.channel.send(GROUP, plain('a'), options);
    if (sent.kind !== 'sent') throw new Error('not sent');
    expect(await on.channel.edit(GROUP, sent.platformMessageId, plain('b'), options)).toMatchObject({
      kind: 'sent',
    });
    expect(on.fake.callsOf('editMessageText')).toEqual([
      {
        ...{ chat_id: -1001234567890, message_id: Number(sent.platformMessageId), text: 'b' },
        link_preview_options: { is_disabled: true },
      },
    ]);
  });

  const outcomes: [string, Fault, object][] = [
    [
      'a flood of a minute',
      { status: 429, description: 'Too Many Requests', parameters: { retry_after: 60 } },
      { kind: 'unreachable', taken: 'no', retryAfterMs: 60_000 },
    ],
    ['too old', { status: 400, description: "Bad Request: message can't be edited" }, { kind: 'refused' }],
    ['a blocked bot', { status: 403, description: 'Forbidden: blocked' }, { kind: 'refused' }],
    ['a break in between', { drop: 'after' }, { kind: 'unreachable', taken: 'unknown' }],
    ['a fault of the server', { status: 500 }, { kind: 'unreachable', taken: 'no' }],
  ];
  test.each(outcomes)('%s', async (_name, fault, expected) => {
    on.fake.fail('editMessageText', fault);
    expect(await edit(plain('more'))).toMatchObject(expected);
  });

  test('that broke is known to be done when it is tried again', async () => {
    on.fake.fail('editMessageText', { drop: 'after' });
    expect(await edit(plain('more'))).toMatchObject({ kind: 'unreachable' });
    expect(await edit(plain('more'))).toMatchObject({ kind: 'sent' });
    expect(on.fake.edits).toHaveLength(1);
  });

  test('refused for its markup: plain, at once', async () => {
    on.fake.fail('editMessageText', { status: 400, description: "Bad Request: can't parse entities: oh" });
    const part: Part = { text: 'more', marks: [{ kind: 'bold', offset: 0, length: 4 }] };
    expect(await edit(part)).toMatchObject({ kind: 'sent' });
    expect(message).toMatchObject({ text: 'more', entities: [] });
  });

  test('after which another text is shown is refused', async () => {
    on.fake.settings.alter = (text) => text.slice(0, -1);
    expect(await edit(plain('all of it'))).toMatchObject({ kind: 'refused' });
    on.fake.settings.alter = (text) => text.replaceAll('\t', ' ');
    expect(await edit(plain('a\ttab'))).toMatchObject({ kind: 'sent' });
  });

  test('to a file, and of an id that is none, is refused without asking', async () => {
    const file = { path: '/nowhere', name: 'a.md' };
    expect(await edit({ ...plain('more'), file })).toMatchObject({ kind: 'refused' });
    expect(await on.channel.edit(TO_ANNA, 'stop-5', plain('more'), options)).toMatchObject({
      kind: 'refused',
    });
    expect(await on.channel.edit(TO_ANNA, '99:5', plain('more'), options)).toMatchObject({ kind: 'refused' });
    expect(on.fake.callsOf('editMessageText')).toEqual([]);
  });

  test('keeps the name before the text where the appearance shows it', async () => {
    const appearance = { personaId: 'luna', name: 'Luna', avatar: null };
    const shown = { ...options, speaker: 'luna', appearance, leads: true };
    expect(await on.channel.edit(TO_ANNA, id, plain('I say'), shown)).toMatchObject({ kind: 'sent' });
    expect(message).toMatchObject({
      text: 'Luna\nI say',
      entities: [{ type: 'bold', offset: 0, length: 4 }],
    });
  });

  test('taken back; twice, or when Telegram cannot be reached, nothing is thrown', async () => {
    await on.channel.remove(TO_ANNA, id, options);
    expect(message.gone).toBe(true);
    await on.channel.remove(TO_ANNA, id, options);
    on.fake.fail('deleteMessage', { drop: 'before' });
    await on.channel.remove(TO_ANNA, id, options);
    await on.channel.remove(TO_ANNA, 'nothing', options);
    expect(on.fake.callsOf('deleteMessage')).toHaveLength(3);
  });
});

describe('a draft', () => {
  const options = sendOptions({ key: '7' });
  const preview = (text: string, to = TO_ANNA, key = '7') =>
    on.channel.preview?.(to, plain(text), { ...options, key });

  beforeEach(async () => {
    await on.close();
    on = await stage({ personaTokens: {}, streaming: 'draft' });
  });

  test('is shown only where the operator wants drafts', async () => {
    const { channel, close } = await stage({ streaming: 'edit' });
    expect(channel).not.toHaveProperty('preview');
    await close();
  });

  test('has one id for one reply, never zero, and a button', async () => {
    expect(await preview('Let')).toBe(true);
    expect(await preview('Let me', { ...TO_ANNA, threadId: '5' })).toBe(true);
    await preview('Other', TO_ANNA, '8');
    const [first, second, third] = on.fake.drafts;
    expect(first).toMatchObject({ chatId: ANNA.id, text: 'Let', canStop: true, threadId: null });
    expect(second).toMatchObject({ text: 'Let me', draftId: first?.draftId, threadId: 5 });
    expect(third?.draftId).not.toBe(first?.draftId);
    expect(on.fake.sent).toEqual([]);
  });

  test('is nothing for groups', async () => {
    expect(await preview('Let', GROUP)).toBe(false);
    expect(on.fake.callsOf('sendMessageDraft')).toEqual([]);
  });

  test('is not tried again where the server knows no such thing', async () => {
    on.fake.settings.drafts = false;
    expect(await preview('Let')).toBe(false);
    expect(await preview('Let', { ...TO_ANNA, address: '7' })).toBe(false);
    expect(on.fake.callsOf('sendMessageDraft')).toHaveLength(1);
  });

  test('is not tried again in a chat where it is refused', async () => {
    on.fake.fail('sendMessageDraft', { status: 400, description: 'Bad Request: TEXTDRAFT_PEER_INVALID' });
    expect(await preview('Let')).toBe(false);
    expect(await preview('Let')).toBe(false);
    expect(on.fake.callsOf('sendMessageDraft')).toHaveLength(1);
    on.fake.say({ from: { id: 7, first_name: 'Ben' }, text: 'hi' });
    expect(await preview('Let', { ...TO_ANNA, address: '7' })).toBe(true);
  });

  test.each<[string, Fault]>([
    ['a break', { drop: 'before' }],
    ['a fault of the server', { status: 502 }],
  ])('%s passes', async (_name, fault) => {
    on.fake.fail('sendMessageDraft', fault);
    expect(await preview('Let')).toBe(true);
    expect(await preview('Let me')).toBe(true);
    expect(on.fake.drafts).toMatchObject([{ text: 'Let me' }]);
  });

  test('its button is the command', async () => {
    await on.start();
    on.fake.say({ text: 'tell me' });
    await on.heard(1);
    await preview('Let me', { ...TO_ANNA, threadId: '5' });
    const updateId = on.fake.pressStop(ANNA.id);
    const [, stop] = await on.heard(2);
    expect(stop).toMatchObject({
      chat: { address: String(ANNA.id), kind: 'direct' },
      threadId: '5',
      platformMessageId: `stop-${updateId}`,
      sender: { address: String(ANNA.id), administrator: false },
      text: '/stop',
      replyTo: null,
    });
  });
});

describe('compose', () => {
  const words = 'Some **words**, again and again. '.repeat(600);
  test('keeps characters and a mark free', () => {
    const parts = on.channel.compose(words, 20);
    for (const part of parts) {
      expect(part.text.length).toBeLessThanOrEqual(4076);
      expect(part.marks.length).toBeLessThan(100);
    }
    const squeeze = (text: string) => text.replace(/[\s*]+/g, '');
    expect(squeeze(parts.map((part) => part.text).join(''))).toBe(squeeze(words));
  });

  test('what has a name before it is taken', async () => {
    const name = 'A rather long name of a persona';
    const appearance = { personaId: 'luna', name, avatar: null };
    for (const part of on.channel.compose(words, name.length + 1)) {
      const options = sendOptions({ speaker: 'luna', appearance, leads: true });
      expect(await on.channel.send(TO_ANNA, part, options)).toMatchObject({ kind: 'sent' });
    }
    expect(on.fake.callsOf('sendMessage')).toHaveLength(on.fake.sent.length);
  });
});
