import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { withoutMarkup } from '../../src/channels/telegram/failure.js';
import { compose, sendRequest } from '../../src/channels/telegram/outbound.js';
import type { Recipient } from '../../src/core/channel.js';
import { refusalOf } from '../fakes/telegram-limits.js';

const GOLDEN = join(import.meta.dirname, '../fixtures/telegram/outbound');
/** What stands in every request otherwise is no matter of these. */
const PREVIEWS = true;
const ANNA: Recipient = { address: '100001', threadId: null, kind: 'direct' };
const TOPIC: Recipient = { address: '-1001234567890', threadId: '45', kind: 'group' };

function golden(name: string): string {
  return readFileSync(join(GOLDEN, name), 'utf8');
}

test('a reply with everything in it, as requests to sendMessage', () => {
  const requests = compose(golden('reply.md')).map((part) => sendRequest(ANNA, part, PREVIEWS));
  expect(requests).toEqual(JSON.parse(golden('reply.json')));
  for (const request of requests) expect(refusalOf({ ...request })).toBeNull();
});

test('topic and reply', () => {
  expect(sendRequest(TOPIC, { text: 'hi', marks: [] }, PREVIEWS, 7)).toEqual({
    chat_id: -1001234567890,
    text: 'hi',
    message_thread_id: 45,
    reply_parameters: { message_id: 7, allow_sending_without_reply: true },
  });
  expect(sendRequest({ ...TOPIC, threadId: 'not a number' }, { text: 'hi', marks: [] }, PREVIEWS)).toEqual({
    chat_id: -1001234567890,
    text: 'hi',
  });
});

test("Telegram's quotes do not nest", () => {
  const [part] = compose('> a\n> > b');
  if (part === undefined) throw new Error('nothing was composed');
  expect(part.marks).toHaveLength(2);
  expect(sendRequest(ANNA, part, PREVIEWS).entities).toEqual([{ type: 'blockquote', offset: 0, length: 3 }]);
});

describe('what is refused is made plainer', () => {
  const request = {
    chat_id: 1,
    message_thread_id: 4,
    text: 'see here and there',
    entities: [
      { type: 'bold' as const, offset: 0, length: 8 },
      { type: 'text_link' as const, offset: 4, length: 4, url: 'https://a.example' },
      { type: 'text_link' as const, offset: 13, length: 5, url: 'https://b.example' },
    ],
  };
  test('without markup the addresses stay', () => {
    const text = 'see here (https://a.example) and there (https://b.example)';
    expect(withoutMarkup(request)).toEqual({ chat_id: 1, message_thread_id: 4, text });
  });
  test('unless the text became too long', () => {
    const text = 'x'.repeat(4090);
    expect(withoutMarkup({ ...request, text }).text).toBe(text);
  });
});

test('whatever Markdown it is, Telegram takes it', () => {
  const markup = fc
    .array(
      fc.oneof(
        fc.constantFrom(
          '**',
          '_',
          '`',
          '\n```\n',
          '~~',
          '$',
          '\\[',
          '\\)',
          '<br>',
          '<sup>2</sup>',
          '：',
          '[a](http://b.example)',
          '> ',
          '- ',
          '\n',
          '\n\n',
          '|a|b|\n|-|-|\n',
          ' ',
        ),
        fc.stringMatching(/^[a-z小😀 ]{1,300}$/u),
      ),
      { maxLength: 60 },
    )
    .map((pieces) => pieces.join(''));
  fc.assert(
    fc.property(markup, (source) => {
      const parts = compose(source);
      expect(parts.length > 0).toBe(source.trim() !== '');
      for (const part of parts) {
        const request = sendRequest(ANNA, part, PREVIEWS);
        expect(refusalOf({ ...request })).toBeNull();
        expect(request.entities?.length ?? 0).toBeLessThanOrEqual(100);
        expect(refusalOf({ ...withoutMarkup(request) })).toBeNull();
      }
    }),
    { numRuns: 300 },
  );
});

test('300 kB become messages in order', () => {
  const paragraph = `${'Some words, *again* and again. '.repeat(30)}\n\n`;
  const source = paragraph.repeat(Math.ceil(300_000 / paragraph.length));
  const parts = compose(source);
  const squeeze = (text: string) => text.replace(/\s+/g, '');
  expect(squeeze(parts.map((part) => part.text).join(''))).toBe(squeeze(source.replaceAll('*', '')));
});
