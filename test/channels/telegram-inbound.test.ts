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

test('of 300 kB of text the first 65,536 characters go through, and a marker', () => {
  const text = 'x😀'.repeat(100_000);
  const chat = { id: 1, type: 'private' };
  const from = { id: 1, first_name: 'A' };
  const events = inbound([{ update_id: 1, message: { message_id: 1, date: 1, chat, from, text } }], ME);
  const [event] = events;
  const read = event?.kind === 'message' ? event.text : '';
  expect(read).toBe(`${text.slice(0, 65_536)}\n\n<<truncated due to message-max-chars=65536>>`);
});

test('a file is heard beside a text, too', () => {
  const chat = { id: 1, type: 'private' };
  const from = { id: 1, first_name: 'A' };
  const message = { message_id: 1, date: 1, chat, from, text: 'look', document: { file_id: 'f' } };
  expect(inbound([{ update_id: 1, message }], ME)).toMatchObject([
    { text: 'look', attachments: [{ kind: 'document', source: 'f' }] },
  ]);
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
  const files = ['photo', 'live_photo', 'voice', 'video', 'video_note', 'animation', 'audio', 'document'];
  const others = ['rich_message', 'paid_media', 'poll', 'checklist', 'location', 'gift', 'external_reply'];
  const marks = ['entities', 'caption', 'sender_chat', 'quote', 'forward_origin', 'media_group_id'];
  const fields = [...Object.keys(message), ...marks, ...files, ...others];
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

describe('a rich message', () => {
  const TYPES = ['paragraph', 'heading', 'list', 'blockquote', 'table', 'details', 'photo', 'bold', 'later'];
  const { tree } = fc.letrec((tie) => ({
    tree: fc.oneof(
      { maxDepth: 6 },
      fc.constantFrom('one', 'two', '', 7, null),
      fc.array(tie('tree'), { maxLength: 3 }),
      fc.record(
        {
          type: fc.constantFrom(...TYPES),
          text: tie('tree'),
          blocks: tie('tree'),
          items: tie('tree'),
          cells: tie('tree'),
          caption: tie('tree'),
          size: fc.oneof(fc.integer(), fc.double(), fc.constant('1')),
        },
        { requiredKeys: [] },
      ),
    ),
  }));
  const said = (rich_message: unknown) => {
    const chat = { id: 100001, type: 'private' };
    const message = { message_id: 1, date: 1, chat, from: { id: 100001, first_name: 'Anna' }, rich_message };
    return inbound([{ update_id: 1, message }], ME);
  };

  test('is something whatever its blocks look like, and never throws', () => {
    fc.assert(
      fc.property(tree, (blocks) => {
        expect(said({ blocks })).toHaveLength(1);
      }),
      { numRuns: 500 },
    );
  });

  test('keeps every word of its blocks, also of kinds that are not known, in their order', () => {
    const word = fc.stringMatching(/^[a-z]{3,8}$/);
    const marked = fc.record({ type: fc.constantFrom('bold', 'code', 'url', 'a_future_mark'), text: word });
    const text = fc.array(fc.oneof(word, marked), { minLength: 1, maxLength: 4 });
    const block = fc.record({ type: fc.constantFrom('paragraph', 'heading', 'pre', 'a_future_block'), text });
    fc.assert(
      fc.property(fc.array(block, { minLength: 1, maxLength: 5 }), (blocks) => {
        const words = blocks.flatMap((each) =>
          each.text.map((part) => (typeof part === 'string' ? part : part.text)),
        );
        const [event] = said({ blocks });
        const got = event?.kind === 'message' ? event.text.replaceAll(/[^a-z]/g, '') : '';
        expect(got).toBe(words.join(''));
      }),
    );
  });

  test('nested without end is cut off', () => {
    let block: object = { type: 'paragraph', text: 'deep' };
    for (let n = 0; n < 3_000; n++) block = { type: 'blockquote', blocks: [block] };
    expect(said({ blocks: [block, { type: 'paragraph', text: 'shallow' }] })).toMatchObject([
      { text: 'shallow' },
    ]);
  });
});

describe('what somebody forwards', () => {
  const forward_origin = { type: 'user', date: 1, sender_user: { id: 9, first_name: 'Cara' } };
  const from = { id: 100001, first_name: 'Anna' };
  const text = '/reset@luna_moon_bot and @coterie_bot';
  const entities = [{ type: 'bot_command', offset: 0, length: 20 }];
  const heardBy = (bot: typeof LUNA | typeof ME, chat: object) =>
    inbound(
      [{ update_id: 1, message: { message_id: 7, date: 1, chat, from, text, entities, forward_origin } }],
      bot,
      [ME, LUNA],
    );

  test('names no persona in a group, and its commands stay as they are', () => {
    const [message] = heardBy(ME, { id: -1001234567890, type: 'supergroup', title: 'A group' });
    expect(message).toMatchObject({ text, mentionsBot: false, forwardedFrom: 'Cara' });
    expect(message?.kind === 'message' && message.addresses).toBeUndefined();
  });

  test('is told from the words of whoever forwards it, also where it is answered', () => {
    const chat = { id: -1001234567890, type: 'supergroup', title: 'A group' };
    const replied = {
      message_id: 6,
      date: 1,
      from: { id: 100002, first_name: 'Ben' },
      text: 'hm',
      forward_origin,
    };
    const message = { message_id: 7, date: 1, chat, from, text: 'well?', reply_to_message: replied };
    const hidden = { type: 'hidden_user', date: 1 };
    const reply_to_message = { ...replied, forward_origin: hidden };
    expect(inbound([{ update_id: 1, message }], ME)).toMatchObject([
      { replyTo: { senderName: 'Ben', text: 'hm', forwardedFrom: 'Cara' } },
    ]);
    expect(inbound([{ update_id: 1, message: { ...message, reply_to_message } }], ME)).toMatchObject([
      { replyTo: { forwardedFrom: '' } },
    ]);
  });

  test("to a persona's own bot is still for that persona", () => {
    expect(heardBy(LUNA, { id: 100001, type: 'private', first_name: 'Anna' })).toMatchObject([
      { text, mentionsBot: false, addresses: ['luna'], forwardedFrom: 'Cara' },
    ]);
  });
});
