import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compose, contentOf, nonceOf, referenceTo, roomOf } from '../../src/channels/discord/outbound.js';

const LIMIT = 2000;
const QUIET = { linkPreviews: true };
const contents = (markdown: string) => compose(markdown).map((part) => contentOf(part, QUIET).content ?? '');
const counted = (text: string) => Array.from(text).length;

describe('cutting', () => {
  test('a fence over a cut is closed and opened again', () => {
    const shown = contents(`Look:\n\n\`\`\`js\n${'const a = 1;\n'.repeat(400)}\`\`\`\n\nThat was it.`);
    expect(shown.length).toBeGreaterThan(2);
    for (const text of shown) {
      expect(counted(text)).toBeLessThanOrEqual(LIMIT);
      expect((text.match(/```/g) ?? []).length % 2).toBe(0);
    }
    expect(shown.at(-1)).toMatch(/That was it\.$/);
  });

  test('characters are counted, not their halves', () => {
    // Each is two UTF-16 units; a message of 2,000 of them would be taken, one of 2,001 not.
    for (const text of contents('😀'.repeat(4_500))) {
      expect(counted(text)).toBeLessThanOrEqual(LIMIT);
      expect(text).not.toMatch(/\p{Surrogate}/u);
    }
  });

  test('the markup counts, too', () => {
    for (const text of contents('**a** _b_ '.repeat(1_000))) expect(counted(text)).toBeLessThanOrEqual(LIMIT);
    for (const text of contents('* '.repeat(3_000))) expect(counted(text)).toBeLessThanOrEqual(LIMIT);
  });

  test('whatever a model writes, no message is over the limit, and blank text is none', () => {
    expect(compose('  \n ')).toEqual([]);
    const bits = fc.constantFrom(
      '**',
      '_',
      '~~',
      '`',
      '```\n',
      '> ',
      '# ',
      '- ',
      '[a](https://e.org/)',
      '\n',
      '\n\n',
    );
    const piece = fc.oneof(bits, fc.string({ unit: 'binary', maxLength: 400 }), fc.lorem({ maxCount: 200 }));
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (all) => {
        for (const text of contents(all.join(''))) expect(counted(text)).toBeLessThanOrEqual(LIMIT);
      }),
      { numRuns: 60 },
    );
  });
});

test('nobody is called by it but whoever is answered', () => {
  const { allowed_mentions } = contentOf({ text: '@everyone <@1> <@&2>', marks: [] }, QUIET);
  expect(allowed_mentions).toEqual({ parse: [], replied_user: true });
});

test('a message carries what it answers where that may be an id', () => {
  const content = contentOf({ text: 'hi', marks: [] }, QUIET);
  expect(content).toEqual({ content: 'hi', allowed_mentions: { parse: [], replied_user: true } });
  expect(referenceTo('123')).toEqual({ message_reference: { message_id: '123', fail_if_not_exists: false } });
  expect(referenceTo('terminal-1')).toEqual({});
  expect(contentOf({ text: ' ', marks: [] }, QUIET)).not.toHaveProperty('content');
});

test('a key is one message of one database', () => {
  expect(nonceOf('7', 5)).toBe(nonceOf('7', 5));
  expect(nonceOf('7', 5)).not.toBe(nonceOf('7', 6));
  expect(nonceOf('7', 5)).not.toBe(nonceOf('8', 5));
  expect(nonceOf('k'.repeat(24), Date.UTC(2100, 0)).length).toBeLessThanOrEqual(25);
});

test('a thread is a channel of its own', () => {
  expect(roomOf({ address: '1', threadId: null })).toBe('1');
  expect(roomOf({ address: '1', threadId: '2' })).toBe('2');
});
