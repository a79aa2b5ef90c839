import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { inbound } from '../../src/channels/telegram/inbound.js';
import type { InboundEvent } from '../../src/core/message.js';

const ME = { id: 424242, username: 'Coterie_Bot' };
const LUNA = { id: 555001, username: 'luna_moon_bot', personaId: 'luna' };
const FOLDER = join(import.meta.dirname, '../fixtures/telegram');

interface Fixture {
  updates: unknown[];
  events: InboundEvent[];
}

describe('what Telegram gives, and what it is to us', () => {
  const names = readdirSync(FOLDER).filter((name) => name.endsWith('.json'));
  test.each(names)('%s', (name) => {
    const { updates, events } = JSON.parse(readFileSync(join(FOLDER, name), 'utf8')) as Fixture;
    expect(inbound(updates, ME)).toEqual(events);
  });
});

test('300 kB of text go through as they are', () => {
  const text = 'x😀'.repeat(100_000);
  const chat = { id: 1, type: 'private' };
  const from = { id: 1, first_name: 'A' };
  const events = inbound([{ update_id: 1, message: { message_id: 1, date: 1, chat, from, text } }], ME);
  expect(events).toMatchObject([{ text }]);
});

test('what a message is does not depend on the bot that hears it, but for numbers and files', () => {
  const chat = { id: -1001234567890, type: 'supergroup', title: 'A group' };
  const from = { id: 100001, first_name: 'Anna' };
  const word = fc.constantFrom(
    'hi',
    '@coterie_bot',
    '@Luna_Moon_bot',
    '/help@luna_moon_bot',
    '@other_bot',
    '\n',
  );
  const replied = fc
    .constantFrom(undefined, ME.id, LUNA.id, 100001)
    .map((id) =>
      id === undefined
        ? {}
        : { reply_to_message: { message_id: 3, from: { id, first_name: 'X' }, text: 'y' } },
    );
  fc.assert(
    fc.property(fc.array(word, { minLength: 1 }), replied, (words, reply) => {
      const message = { message_id: 7, date: 1, chat, from, text: words.join(' '), ...reply };
      const ours = [ME, LUNA];
      const heard = inbound([{ update_id: 1, message }], ME, ours);
      expect(heard).toHaveLength(1);
      expect(inbound([{ update_id: 9, message }], LUNA, ours)).toEqual(heard);
    }),
  );
});

test('whatever stands in a field, nothing is thrown', () => {
  const chat = { id: 100001, type: 'private', first_name: 'Anna' };
  const from = { id: 100001, is_bot: false, first_name: 'Anna' };
  const message = { message_id: 1, date: 1, chat, from, text: '/a@coterie_bot', reply_to_message: {} };
  const files = ['photo', 'voice', 'video', 'video_note', 'animation', 'audio', 'document'];
  const fields = [...Object.keys(message), 'entities', 'caption', 'sender_chat', 'quote', ...files];
  const wrong = fc.dictionary(fc.constantFrom(...fields), fc.anything({ maxDepth: 2 }), { maxKeys: 3 });
  fc.assert(
    fc.property(
      wrong,
      fc.constantFrom('message', 'edited_message', 'stopped_message_generation'),
      (fields, kind) => {
        const update = { update_id: 1, [kind]: { ...message, ...fields } };
        expect(inbound([update], ME).length).toBeLessThanOrEqual(1);
        expect(inbound([update], LUNA, [ME, LUNA]).length).toBeLessThanOrEqual(1);
      },
    ),
    { numRuns: 500 },
  );
});
